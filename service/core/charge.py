"""The charge of a Gaussian linear query to one individual: ||v||^2 / (2 sigma^2) of zCDP rho, in units, rounded up.

Feldman and Zrnic (2021), Example 2.6: a query whose vector for an individual is v, answered with noise N(0, sigma^2 I),
costs that individual rho = ||v||^2 / (2 sigma^2). Here ||v||^2 is an integer, because the vector is on the grid. Sigma
is a double and hence a fraction, so that the price of one squared step is a fraction too. Rounding a charge up then
takes integers alone.

The ledger's unit is 2^-40 of zCDP rho, in int64. Binary floats cannot hold a budget: six charges of 0.01 add up to
0.060000000000000005. Integers add exactly in any order, so that spent + charge <= limit is decided exactly. Charges are
rounded up, limits down.
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from service.arrays import Integers, Reals, Words

UNITS_PER_RHO: Final = 2**40
# A charge saturates here: more than any limit, so unaffordable, and a spent total plus it still fits an int64.
CHARGE_UNITS_MAX: Final = 2**62
LIMIT_UNITS_MAX: Final = 2**61  # the largest limit (2^21 rho); spent totals stay below a limit, and so below it too
# A float estimate est = fl(fl(norm) * fl(price)) carries three roundings of 2^-53 each: |est - true| < est * 2^-51.
_SATURATED: Final = 2.0**62 * (1 + 2.0**-49)
_HALF_OFF: Final = 2**50  # below it an estimate is off by less than a half, the nearest integer to it by less than one
_OFF_MAX: Final = 2.0**12
_DEAR: Final = 2**11  # of a dearer squared step no limit buys 2^50, and of a cheaper one 2^10 times it fits 128 bits
_DENOMINATOR_NARROW: Final = 2**62
_WORD: Final = 2**64
_HALF_BITS, _HALF = np.uint64(32), np.uint64(2**32 - 1)


def charge_units(norms_squared: Integers, sigma_steps: float, *, norm_squared_max: int | None = None) -> Integers:
    """Each individual's charge for a query: ceil(norm^2 * 2^40 / (2 sigma^2)), exactly, saturated at CHARGE_UNITS_MAX.

    `norms_squared` (k,), int64, are squared grid steps, not negative; `sigma_steps` is in grid steps. Returns (k,)
    int64 units. No norm may exceed `norm_squared_max`. Where it is given, the way of computing depends on it and sigma
    alone. Raises TypeError unless norms are int64. Raises ValueError for a norm that is negative or above the largest,
    and for a sigma beyond 2^±64.
    """
    price = price_of_step(sigma_steps)
    if norms_squared.dtype != np.int64 or norms_squared.ndim != 1:
        raise TypeError(f"norms_squared must be a row of int64, got {norms_squared.dtype} {norms_squared.shape}")
    largest = int(norms_squared.max(initial=0)) if norm_squared_max is None else norm_squared_max
    if norms_squared.min(initial=0) < 0 or norms_squared.max(initial=0) > largest:
        raise ValueError("a squared norm must not be negative, nor above the largest")
    return ceilings(norms_squared, price, largest)


def ceilings(numbers: Integers, price: Fraction, largest: int) -> Integers:
    """The charges ceil(number * price) of `numbers` (k,) from 0 to `largest`: exact, saturated, (k,) int64 units."""
    if largest * price.numerator <= price.denominator:
        return np.greater(numbers, 0).astype(np.int64)
    estimates = np.multiply(numbers, float(price))
    rounds = wide_rounds(largest, price)
    if rounds == 0:
        return _narrowly(numbers, price, estimates)
    charges = _widely(numbers, price, estimates, rounds)
    charges[estimates > _SATURATED] = CHARGE_UNITS_MAX
    return np.minimum(charges, CHARGE_UNITS_MAX, out=charges)


def norm_within(room_units: Integers, sigma_steps: float, *, norm_squared_max: int) -> Integers:
    """The largest squared norm, at most `norm_squared_max`, whose charge fits each room: `charge_units` inverted.

    `room_units` (k,) int64. Returns (k,) int64 squared grid steps: floor(room * 2 sigma^2 / 2^40). The charges decide,
    since they increase with the norm. Raises ValueError for a negative room, and the errors of `charge_units`.
    """
    if room_units.min(initial=0) < 0:
        raise ValueError("a room must not be negative")
    price = price_of_step(sigma_steps)
    estimates = room_units / float(price)
    norms = np.rint(np.minimum(estimates, norm_squared_max)).astype(np.int64)
    if price.numerator > _DEAR * price.denominator or norm_squared_max < _HALF_OFF:  # off by less than a half
        return norms - (charge_units(norms, sigma_steps, norm_squared_max=norm_squared_max) > room_units)
    room = room_units.view(np.uint64)
    norms += _quotients(*_excess(room, norms.view(np.uint64), price), price.numerator)
    norms += np.right_shift(_excess(room, norms.view(np.uint64), price)[0].view(np.int64), 63)
    is_beyond = estimates > norm_squared_max * (1 + 2.0**-49)
    return np.where(is_beyond, norm_squared_max, np.minimum(norms, norm_squared_max))


def wide_rounds(largest: int, price: Fraction) -> int:
    """The public number of rounds in 128 bits for numbers up to `largest`: 0, 1 or 2, each as long as three charges."""
    if largest * price.numerator >= _HALF_OFF * price.denominator:
        return 2
    return int(largest * price.numerator > price.denominator >= _DENOMINATOR_NARROW)


def worst_case_units(norm_squared: int, sigma_steps: float) -> int:
    """`charge_units` of one squared norm of any size: the public price of a query whose vectors are clipped to it.

    Monotone in the norm, so no individual within the clip is charged more. Same units and errors as `charge_units`.
    """
    if norm_squared < 0:
        raise ValueError("a squared norm must not be negative")
    price = price_of_step(sigma_steps)
    return min(-(-norm_squared * price.numerator // price.denominator), CHARGE_UNITS_MAX)


def units_down(rho: Fraction) -> int:
    """The largest number of units not above `rho`. Raises ValueError when it is negative or above LIMIT_UNITS_MAX."""
    units = rho.numerator * UNITS_PER_RHO // rho.denominator
    if units < 0:
        raise ValueError(f"rho must not be negative, got {rho}")
    if units > LIMIT_UNITS_MAX:
        raise ValueError(f"rho must be at most {LIMIT_UNITS_MAX // UNITS_PER_RHO}, got {rho}")
    return units


def rho_of_units(units: int) -> Decimal:
    """The rho that `units` stand for, exactly, with as few digits as it has. Raises ValueError for negative units."""
    if units < 0:
        raise ValueError(f"units must not be negative, got {units}")
    twos = min(40, (units & -units).bit_length() - 1) if units > 0 else 40
    places = 40 - twos
    # The constructor is exact, whereas arithmetic would round to the caller's decimal context.
    return Decimal(f"{(units >> twos) * 5**places}E-{places}")


@lru_cache(maxsize=256)  # analysts ask again and again with the same noise, and a Fraction takes long to make
def price_of_step(sigma_steps: float) -> Fraction:
    """Units per squared step, 2^40 / (2 sigma^2), exact for the double given."""
    if not 2.0**-64 <= sigma_steps <= 2.0**64:
        raise ValueError(f"sigma_steps must be between 2^-64 and 2^64, got {sigma_steps}")
    return Fraction(UNITS_PER_RHO // 2) / Fraction(sigma_steps) ** 2


def _narrowly(norms_squared: Integers, price: Fraction, estimates: Reals) -> Integers:
    """Exact ceilings below 2^50: the nearest integer c to the estimate, or c + 1 where the true charge is above c.

    The estimate is off by less than 1/2 and c by less than 1. So c * denominator - norm * numerator is known from its
    value modulo 2^64. Its sign says on which side of c the true charge is.
    """
    charges = np.rint(estimates, out=estimates).astype(np.int64)
    excess = charges * np.int64(price.denominator)
    excess -= norms_squared * np.array(price.numerator % _WORD, dtype=np.uint64).view(np.int64)
    np.right_shift(excess, 63, out=excess)  # -1 where the true charge is above c
    charges -= excess
    return charges


def _widely(norms_squared: Integers, price: Fraction, estimates: Reals, rounds: int) -> Integers:
    """Exact ceilings for any price, in 128 bits, by the same steps for every norm. Saturated ones have any value here.

    The denominator is below 2^106, as the odd part of sigma^2 is. Where the denominator has a power of two beside that
    part, the price is 1 over the denominator, and above 2^-62 here. An estimate of 2^62 is off by 2^11. Then c is
    corrected by the quotient of the excess, and that quotient is off by less than 1/2 + 2^-39.
    """
    charges = np.rint(np.minimum(estimates, _SATURATED)).astype(np.int64)
    norms = norms_squared.view(np.uint64)
    if rounds > 1:
        charges -= _quotients(*_excess(charges.view(np.uint64), norms, price), price.denominator)
    high, _ = _excess(charges.view(np.uint64), norms, price)
    charges -= np.right_shift(high.view(np.int64), 63)
    return charges


def _quotients(high: Words, low: Words, divisor: int) -> Integers:
    """The signed 128-bit numbers (k,), each in two words, over `divisor`: rounded, (k,), at most _OFF_MAX in size."""
    high += low >> np.uint64(63)  # the low word is read as signed: of a small number no digit is lost
    quotients = (high.view(np.int64) * float(_WORD) + low.view(np.int64)) / float(divisor)
    rounded: Integers = np.rint(np.clip(quotients, -_OFF_MAX, _OFF_MAX)).astype(np.int64)
    return rounded


def _excess(charges: Words, norms_squared: Words, price: Fraction) -> tuple[Words, Words]:
    """Charges * denominator - norms^2 * numerator modulo 2^128, (k,), in two words: high and low."""
    high, low = _product(charges, price.denominator)
    other_high, other_low = _product(norms_squared, price.numerator)
    high -= other_high
    high -= low < other_low
    low -= other_low
    return high, low


def _product(numbers: Words, factor: int) -> tuple[Words, Words]:
    """Numbers * factor modulo 2^128, (k,), in two words: high and low. Long multiplication by halves of 32 bits."""
    factor_high, factor_low = np.uint64(factor // _WORD % _WORD), np.uint64(factor % _WORD)
    left, right = numbers >> _HALF_BITS, numbers & _HALF
    upper, lower = factor_low >> _HALF_BITS, factor_low & _HALF
    middle = left * lower
    middle += (right * lower) >> _HALF_BITS
    cross = right * upper
    cross += middle & _HALF
    high = left * upper
    high += middle >> _HALF_BITS
    high += cross >> _HALF_BITS
    high += numbers * factor_high
    return high, numbers * factor_low
