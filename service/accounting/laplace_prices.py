"""The prices of Laplace noise under each accounting: a table of an upper bound, and its integers at any scale.

A query in which an individual has one number v, answered with noise Lap(b), is priced at t = |v| / b:

| accounting | amount | slope at most | source |
|---|---|---|---|
| pure DP | t | 1 | the definition |
| zero-concentrated DP | t + e^-t - 1 | 1 | Harrison and Manurangsi 2025 |
| Rényi DP of order a | D(t) / a | 1 / a | Mironov 2017, Proposition 6 |
| Gaussian DP | mu^2 / 2, where Phi(-mu / 2) = e^(-t / 2) / 2 | 2 | below |

with (a - 1) D(t) = ln(a / (2 a - 1) e^((a - 1) t) + (a - 1) / (2 a - 1) e^(-a t)). For Gaussian DP, let f be the
trade-off curve between Lap(0, b) and Lap(v, b), and G that of a Gaussian. The middle part of f has x f(x) = e^-t / 4.
Since Phi is log-concave, G has x G(x) <= Phi(-mu / 2)^2, which is the same number. The outer parts of f are straight,
and the convex G is below f at the ends of both parts: f >= G everywhere.

Each price is convex. D is the logarithm of a sum of exponentials. For Gaussian DP, let s = mu / 2 and let h = phi(s) /
Phi(-s) be the hazard: the slope of mu^2 / 2 is 2 s / h, which rises since h < s + 1 / s, up to 2. So chords between
knots bound a price from above. Where knots have the ratio r, here 65/64 at most, they exceed it by at most (r - 1)^2 /
(4 r) of it. Below the first knot a price is at most t^2 / 2, and for Gaussian DP at most pi / 4 t^2 < 355/452 t^2,
because ln(2 Phi(-s)) is below its tangent at 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import ceil, exp, floor, log2
from statistics import NormalDist
from typing import Final

import mpmath
import numpy as np

from service.accounting.conversions import MARGIN, Real
from service.arrays import Integers
from service.core.charge import CHARGE_UNITS_MAX, UNITS_PER_RHO
from service.core.laplace import KNOT_BITS
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN

_REALS: Final = mpmath.MPContext()  # of our own, as that of conversions
_REALS.dps = 100
_FEWER: Final = mpmath.MPContext()
"""The arithmetic for Gaussian DP. At most four of its 50 digits cancel in ln(2 Phi(-s)): 15 below the margin remain."""
_FEWER.dps = 50
_ROOT_2, _ROOT_2_PI, _LN_2 = _FEWER.sqrt(2), _FEWER.sqrt(2 * _FEWER.pi), _FEWER.log(2)
_NEAR: Final = 1e-11
_WORD: Final = 2**64
_SATURATED: Final = _WORD * (CHARGE_UNITS_MAX - 2**36)
"""The price at which charges saturate. Rounding slopes up takes prices before it to CHARGE_UNITS_MAX at most."""
_NORMAL: Final = NormalDist()
_OCTAVE: Final = 64
_DOUBLE_BIAS: Final = 1023
_FIRST_POWER: Final = -13
"""The first knot is t = 2^-13: there t^2 / 2 exceeds the price by t / 3 of it, and 355/452 t^2 by t / 2 of it."""


@dataclass(frozen=True, eq=False)  # each table is made once, and its numbers are not hashed for each query
class ChordPrices:
    """A price of t: quadratic * t^2 below the first knot, then chords between knots, then `slope` beyond the last knot.

    Knot k is the double whose bits are first + k above KNOT_BITS zeros. Called with a scale, an instance is the core's
    `LaplacePrices`.
    """

    first: int
    at: tuple[int, ...]  # the price at each knot in 2^-64 units, at the first that of the quadratic
    quadratic: Fraction  # of the amount
    slope: Fraction  # of the amount

    def __call__(self, scale_steps: float) -> tuple[int, Integers]:
        """The first knot and the segments (4, n). Raises ValueError for a scale outside [0.3, 2^32]."""
        _refuse(scale_steps)
        return _segments(self, scale_steps)

    @cached_property
    def knots(self) -> list[int]:
        """The t of each price, in 2^-64."""
        bits = np.arange(self.first, self.first + len(self.at), dtype=np.int64) << KNOT_BITS
        return [int(knot * _WORD) for knot in bits.view(np.float64).tolist()]

    @cached_property
    def chords(self) -> list[tuple[int, int, int, int]]:
        """A tuple for each chord: its value at t = 0 and its rise, both shifted, then its run and the shift.

        The run of a chord is a power of two, and its knot is a multiple of the run, so that all four are integers.
        """
        knots, chords = self.knots, []
        for knot, after, price, dearer in zip(knots, knots[1:], self.at, self.at[1:], strict=False):
            run, rise, shift = after - knot, dearer - price, _shift(dearer)
            chords.append((price - rise * (knot // run) << shift, rise << shift, run, shift))
        return chords


@lru_cache(maxsize=64)  # analysts ask again and again with the same noise
def _segments(prices: ChordPrices, scale_steps: float) -> tuple[int, Integers]:
    """The table at one scale: a parabola, the chords, the line beyond the last knot, and saturation.

    For each knot it has the first whole step that is not below the knot, the chord's value there and the chord's rise
    for each step, both rounded up. The shift leaves a segment's charges at least 60 bits. So rounding a slope adds less
    than 2^-27 of a charge, which is less than the step to the next segment, 2^-33 of it.
    """
    whole, part = scale_steps.as_integer_ratio()
    last, price, slope = prices.knots[-1], prices.at[-1], prices.slope * UNITS_PER_RHO
    # The last chord ends where charges saturate, or at 2^32 steps, which no root of 63 bits reaches.
    reach = min(ceil((_SATURATED - price) / slope), max(2**96 * part // whole - last, 0) + 1)
    starts = [-(-knot * whole // (part * _WORD)) for knot in (*prices.knots, last + reach)]
    shift = _shift(prices.at[0])
    squared = ceil(prices.quadratic * UNITS_PER_RHO * part**2 * 2**shift / whole**2)
    offsets, slopes, shifts = [(1 << shift) - 1], [squared], [shift]
    for (at_zero, rise, run, shift), start in zip(prices.chords, starts, strict=False):
        steps = whole * run  # over part, 2^-64
        per_step = -(-rise * part // steps)
        excess = per_step * steps - rise * part  # of rounding up, which the chord at its start has not
        offsets.append(-((_WORD * start * excess // steps - at_zero) // _WORD) + (1 << shift) - 1)
        slopes.append(per_step)
        shifts.append(shift)
    shift = _shift(dearer := price + ceil(slope * reach))
    rise = Fraction(dearer - price, reach) * part * 2**shift / whole
    exact = Fraction(price * 2**shift, _WORD) + rise * (starts[-2] - Fraction(last * whole, part * _WORD))
    offsets += [ceil(exact) - starts[-2] * ceil(rise) + (1 << shift) - 1, CHARGE_UNITS_MAX]
    rows = ([0, *starts], offsets, [*slopes, ceil(rise), 0], [*shifts, shift, 0])
    segments = np.array([[number % _WORD for number in row] for row in rows], dtype=np.uint64).view(np.int64)
    segments.flags.writeable = False  # shared by every query at this scale
    return prices.first, segments


def _shift(price: int) -> int:
    """The number of bits below the unit for charges up to this price: twice such a charge then fits 63 bits."""
    return min(61, max(0, 125 - price.bit_length()))


@cache
def gaussian_prices() -> ChordPrices:
    """The prices in Gaussian DP, up to t = 2^12: beyond that the true slope is within a ten-thousandth of 2."""
    return _table(_gaussian_price, _FIRST_POWER, 12, quadratic=Fraction(355, 452), slope=Fraction(2))


@cache
def concentrated_prices() -> ChordPrices:
    """The prices in zero-concentrated DP, up to t = 2^4."""
    return _table(lambda t: t + _REALS.expm1(-t), _FIRST_POWER, 4, quadratic=Fraction(1, 2), slope=Fraction(1))


@lru_cache(maxsize=16)
def renyi_prices(order: float) -> ChordPrices:
    """The prices in Rényi DP of an order above 1: D / a is t^2 / 2 where a t is small, straight where it is large."""
    power = floor(log2(order))
    first = min(_FIRST_POWER, -8 - power)
    slope = 1 / Fraction(order)
    return _table(lambda t: _renyi_price(order, t), first, 4 - power, quadratic=Fraction(1, 2), slope=slope)


@dataclass(frozen=True, slots=True)
class LinearPrices:
    """The price t itself, of pure DP: the core rounds up |v| / b, exactly."""

    def __call__(self, scale_steps: float) -> tuple[int, None]:
        """Return no segments, since the price is t itself. Raises ValueError for a scale outside [0.3, 2^32]."""
        _refuse(scale_steps)
        return 0, None


def laplace_prices_of(name: str) -> ChordPrices | LinearPrices:
    """The prices under an accounting by its name: gdp, zcdp, pure, or rdp and its order. Raises ValueError."""
    match name.split(" "):
        case ["gdp"]:
            return gaussian_prices()
        case ["zcdp"]:
            return concentrated_prices()
        case ["pure"]:
            return LinearPrices()
        case ["rdp", order]:
            return renyi_prices(float(order))
    raise ValueError(f"there is no accounting {name}")


def _refuse(scale_steps: float) -> None:
    if not SIGMA_STEPS_MIN <= scale_steps <= SIGMA_STEPS_MAX:
        raise ValueError(f"scale_steps must be between {SIGMA_STEPS_MIN} and 2^32, got {scale_steps}")


def _table(
    price: Callable[[Real], Real], first_power: int, last_power: int, *, quadratic: Fraction, slope: Fraction
) -> ChordPrices:
    """The price at each knot from 2^first_power to 2^last_power, rounded up with the margin."""
    first = _OCTAVE * (_DOUBLE_BIAS + first_power)
    knots = ChordPrices(first, (0,) * (_OCTAVE * (last_power - first_power) + 1), quadratic, slope).knots
    at = [ceil(quadratic * UNITS_PER_RHO * Fraction(knots[0] ** 2, _WORD))]
    prices = [price(_REALS.mpf(knot) / _WORD) for knot in knots[1:]]
    at += [int(_REALS.ceil(each * MARGIN * UNITS_PER_RHO * _WORD)) for each in prices]
    return ChordPrices(first, tuple(at), quadratic, slope)


def _gaussian_price(t: Real) -> Real:
    """The price 2 s^2, where ln(2 Phi(-s)) = -t / 2.

    Halley's steps begin with the result of floats and end 30 digits below the margin, so that every machine finds the
    same. With the hazard h the slope of the logarithm is -h, and the slope of h is h (h - s).
    """
    s = _FEWER.mpf(-_NORMAL.inv_cdf(exp(-float(t) / 2) / 2)) if t < 1000 else _FEWER.sqrt(t)
    step = s
    while abs(step) > s * _NEAR:
        tail = _FEWER.erfc(s / _ROOT_2) / 2
        above = _FEWER.log(tail) + _LN_2 + t / 2
        one_over_hazard = tail * _ROOT_2_PI * _FEWER.exp(s * s / 2)
        step = above * one_over_hazard / (1 + above * (1 - s * one_over_hazard) / 2)
        s += step
    return 2 * s * s


def _renyi_price(order: float, t: Real) -> Real:
    """The price D(t) / a."""
    a = _REALS.mpf(order)
    growing = a / (2 * a - 1) * _REALS.exp((a - 1) * t)
    falling = (a - 1) / (2 * a - 1) * _REALS.exp(-a * t)
    return _REALS.log(growing + falling) / (a - 1) / a
