"""The charge of a Gaussian linear query to one individual: ||v||^2 / (2 sigma^2) of zCDP rho, in units, rounded up.

Feldman and Zrnic (2021), Example 2.6: a query whose vector for an individual is v, answered with noise N(0, sigma^2 I),
costs that individual rho = ||v||^2 / (2 sigma^2). Here ||v||^2 is an integer (the vector is on the grid) and sigma is a
double, that is a fraction, so that the price of one squared step is a fraction too and its ceiling is a matter of
integers. A float product with a safety factor would be simpler and would charge a unit too much whenever the exact
charge is a whole number, which for whole sigmas is often: a limit of exactly k charges would then buy k - 1 answers.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.core.units import CHARGE_UNITS_MAX, UNITS_PER_RHO

_SIGMA_RANGE: Final = (2.0**-64, 2.0**64)
# A float estimate est = fl(fl(norm) * fl(price)) carries three roundings of 2^-53 each: |est - true| < est * 2^-51.
_SLACK: Final = 2.0**-50
_SATURATED: Final = 2.0**62 * (1 + 2.0**-49)
# A candidate is off by at most 2^62 * (2^-49 + 2^-51) + 1, so that times a denominator below this it stays below 2^63.
_DENOMINATOR_MAX: Final = 2**49


def charge_units(norms_squared: NDArray[np.int64], sigma_steps: float) -> NDArray[np.int64]:
    """Each individual's charge for a query: ceil(norm^2 * 2^40 / (2 sigma^2)), exactly, saturated at CHARGE_UNITS_MAX.

    `norms_squared` (k,), int64, squared grid steps, not negative; `sigma_steps` in grid steps. Returns (k,) int64
    units. Raises TypeError for norms that are not int64, ValueError for a negative norm and for a sigma outside
    [2^-64, 2^64].
    """
    price = _price_of_one(sigma_steps)
    if norms_squared.dtype != np.int64 or norms_squared.ndim != 1:
        raise TypeError(
            f"norms_squared must be a row of int64, got {norms_squared.dtype} in {norms_squared.ndim} dimensions"
        )
    if norms_squared.min(initial=0) < 0:
        raise ValueError("a squared norm must not be negative")
    estimates = norms_squared.astype(np.float64)
    estimates *= float(price)
    by = _by_remainder if price.denominator < _DENOMINATOR_MAX else _by_estimate
    charges = by(norms_squared, price, estimates)
    charges[estimates > _SATURATED] = CHARGE_UNITS_MAX
    return np.minimum(charges, CHARGE_UNITS_MAX, out=charges)


def worst_case_units(norm_squared: int, sigma_steps: float) -> int:
    """`charge_units` of one squared norm of any size: the public price of a query whose vectors are clipped to it.

    Monotone in the norm, so no individual within the clip is charged more. Same units and errors as `charge_units`.
    """
    if norm_squared < 0:
        raise ValueError("a squared norm must not be negative")
    return min(_ceiling(norm_squared, _price_of_one(sigma_steps)), CHARGE_UNITS_MAX)


@lru_cache(maxsize=256)  # analysts ask again and again with the same noise, and a Fraction takes long to make
def _price_of_one(sigma_steps: float) -> Fraction:
    """Units per squared step, 2^40 / (2 sigma^2), exact for the double given."""
    low, high = _SIGMA_RANGE
    if not low <= sigma_steps <= high:
        raise ValueError(f"sigma_steps must be between 2^-64 and 2^64, got {sigma_steps}")
    return Fraction(UNITS_PER_RHO // 2) / Fraction(sigma_steps) ** 2


def _ceiling(norm_squared: int, price: Fraction) -> int:
    return -(-norm_squared * price.numerator // price.denominator)


def _by_remainder(
    norms_squared: NDArray[np.int64], price: Fraction, estimates: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Exact ceilings when the price has a small denominator, which is when many charges are whole numbers.

    For a candidate c, norm * numerator - c * denominator is known modulo 2^64; being below 2^63 in size it is known.
    Saturated entries come out as anything at all; the caller overwrites them.
    """
    candidates = np.minimum(estimates, CHARGE_UNITS_MAX).astype(np.int64)
    products = norms_squared.view(np.uint64) * np.uint64(price.numerator % 2**64)
    products -= candidates.view(np.uint64) * np.uint64(price.denominator)
    remainders = products.view(np.int64)
    candidates -= np.floor_divide(np.negative(remainders, out=remainders), price.denominator, out=remainders)
    return candidates


def _by_estimate(
    norms_squared: NDArray[np.int64], price: Fraction, estimates: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Exact ceilings when whole charges are rare: the float decides, except near an integer, where integers do."""
    below = np.floor(np.minimum(estimates, CHARGE_UNITS_MAX))
    above_floor = estimates - below
    slack = estimates * _SLACK
    charges = below.astype(np.int64)
    charges += 1
    undecided = (above_floor <= slack) | (1 - above_floor <= slack)
    undecided &= estimates <= _SATURATED
    doubtful = np.flatnonzero(undecided)
    norms, positions = np.unique(norms_squared[doubtful], return_inverse=True)
    # An equal norm is priced once; saturation is the caller's, but what does not fit an int64 must not reach one.
    exact = [min(_ceiling(norm, price), CHARGE_UNITS_MAX) for norm in norms.tolist()]
    charges[doubtful] = np.array(exact, dtype=np.int64)[positions]
    return charges
