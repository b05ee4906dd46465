"""Exact rounded Laplace noise, round(Lap(b)), and its charge to an individual with one number v, by t = |v| / b.

Rounding is a post-processing of the Laplace mechanism, so that every theorem about that mechanism holds. Discrete
Laplace noise is a different law: at b = 1 its divergence for one step is .4621, not .3679. Prices are chords of convex
functions. They are evaluated in integers, by the same steps for every number, so that every machine charges the same.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt
from typing import Final

import numpy as np

from service.arrays import Integers
from service.core import noise
from service.core.charge import UNITS_PER_RHO, ceilings

# For w >= _W_MIN the float -ln u is within ERROR of the true one, if log errs by less than 64 units in the last place.
# With 2^-19 <= u <= 1 and L = -ln u < 13.2, due to
#   log, the product with b and the distance to an integer:   L (2^-46 + 2^-52)   < 2^-42.2
#   undrawn bits of u, 2^-64, and its roundings, 2^-52 u:     2^-64 / u + 2^-52   < 2^-44.9
ERROR: Final = 2.0**-41
_W_MIN: Final = 2**44
_SQUARES: Final = np.arange(2**12, dtype=np.int64) ** 2
STEPS_MAX: Final = 2**31 - 1
"""The largest number of steps that `longest_steps` considers."""
_PARTS: Final = np.arange(1, 2**11 + 1)
"""The numbers of steps that are priced at once: three rounds of 2^11 numbers decide 31 bits."""
KNOT_BITS: Final = 46  # of a double, below its exponent and six leading bits, which tell one of 64 knots to an octave


def rounded_laplace(count: int, scale_steps: float, entropy: noise.Entropy) -> Integers:
    """`count` independent draws of round(Lap(scale_steps)), exactly, in grid steps: int64 of shape (count,).

    Each draw is a function of an infinite bit string, which gives a sign and U: round(-b ln U). Floats with a certified
    error decide it, or else decimal intervals and fresh words. No draw exceeds 133 b. Each chunk of up to 2^16 draws
    takes one word for each draw, then one for each refinement. Raises ValueError for a count below 1 or a scale outside
    [0.3, 2^32], EntropyFailure for a broken source.
    """
    if count < 1 or not noise.SIGMA_STEPS_MIN <= scale_steps <= noise.SIGMA_STEPS_MAX:
        raise ValueError(f"count must be positive and scale_steps from 0.3 to 2^32, got {count} and {scale_steps}")
    draws = np.empty(count, dtype=np.int64)
    for start in range(0, count, noise.CHUNK):
        chunk = draws[start : start + noise.CHUNK]
        words = noise.fresh_words(chunk.size, entropy)
        below = words & np.uint64(2**63 - 1)
        scaled = np.log((below.astype(np.float64) + 0.5) * 2.0**-63) * -scale_steps
        chunk[:] = nearest = np.rint(scaled)
        undecided = (np.abs(scaled - nearest) >= 0.5 - scale_steps * ERROR) | (below < _W_MIN)
        for place in np.flatnonzero(undecided).tolist():
            chunk[place] = _refined(int(below[place]), Decimal(scale_steps), entropy)
        chunk *= 1 - 2 * (words >> np.uint64(63)).astype(np.int64)
    return draws


def _refined(string: int, scale: Decimal, entropy: noise.Entropy) -> int:
    """The magnitude whose U begins with these 63 bits. U is extended by fresh words until the magnitude is decided."""
    for words in range(1, noise.WORDS_MAX):
        string = string << 64 | int(noise.fresh_words(1, entropy)[0])
        with localcontext(noise.DECIMAL):
            low = -scale * (Decimal(string + 1) / Decimal(2 ** (63 + 64 * words))).ln() + Decimal("0.5")
            high = low + scale / max(string, 1)  # since ln(1 + 1 / string) <= 1 / string
            least, most = floor(low - noise.DECIMAL_ERROR), floor(high + noise.DECIMAL_ERROR)
        if string > 0 and least == most:  # else U may still be zero, and ln U anything
            return least
    raise noise.EntropyFailure("the entropy source repeats itself")


LaplacePrices = Callable[[float], tuple[int, Integers | None]]
"""An accounting's prices at a scale in grid steps: the first knot, and segments (4, n).

The four rows are starts, offsets, slopes and shifts. Without segments the price is t itself. Otherwise the price from a
start on is (offset + x * slope) >> shift units modulo 2^64, where x is v^2 in the first segment and |v| in the others.
Prices do not decrease. Segment j + 1 starts at the first step whose t is not below the double with the bits first + j
above KNOT_BITS zeros. The last segment starts where prices saturate. Raises ValueError for a scale outside [0.3, 2^32].
"""


def laplace_charge_units(
    norms_squared: Integers, scale_steps: float, prices: LaplacePrices, *, norm_squared_max: int
) -> Integers:
    """Each individual's charge for a query with Laplace noise: the price of |v| / b in units, rounded up.

    `norms_squared` (k,), int64, are v^2 in squared grid steps. Returns (k,) int64 units, saturated. Raises TypeError
    unless they are int64. Raises ValueError for a norm that is negative, above the largest or no square, and the errors
    of `prices`. The root is exact, since the float root is off by less than 2^31.5 * 2^-52. Where no norm can be large,
    each small size is priced once and looked up.
    """
    first, segmented = prices(scale_steps)
    if norms_squared.dtype != np.int64 or norms_squared.ndim != 1:
        raise TypeError(f"norms_squared must be a row of int64, got {norms_squared.dtype} {norms_squared.shape}")
    steps = np.rint(roots := np.sqrt(np.abs(norms_squared)), out=roots).astype(np.int64)
    if norms_squared.max(initial=0) > norm_squared_max or (steps * steps != norms_squared).any():
        raise ValueError("a squared norm must be the square of one number, and not above the largest")
    if norm_squared_max <= _SQUARES[-1] and steps.size > _SQUARES.size:
        return laplace_charge_units(_SQUARES, scale_steps, prices, norm_squared_max=2**24).take(steps, mode="clip")
    if segmented is None:
        return ceilings(steps, UNITS_PER_RHO / Fraction(scale_steps), isqrt(norm_squared_max))
    starts, offsets, slopes, shifts = segmented
    roots *= (1 - 2.0**-50) / scale_steps  # at most t, and above t (1 - 2^-49): of the segment of t or the one before
    segments = np.right_shift(roots.view(np.int64), KNOT_BITS) - (first - 1)
    np.clip(segments, 0, starts.size - 2, out=segments)
    segments += steps >= starts[1:].take(segments, mode="clip")
    charges: Integers = np.where(segments == 0, norms_squared, steps) * slopes.take(segments, mode="clip")
    charges += offsets.take(segments, mode="clip")
    charges >>= shifts.take(segments, mode="clip")
    return charges


@lru_cache(maxsize=64)  # of a count each block asks for the same one
def laplace_worst_case_units(norm_squared: int, scale_steps: float, prices: LaplacePrices) -> int:
    """The charge of one squared norm up to 2^62, its root rounded up. Raises ValueError as `laplace_charge_units`."""
    square = (isqrt(norm_squared - 1) + 1) ** 2 if norm_squared > 0 else norm_squared
    return int(laplace_charge_units(np.array([square], np.int64), scale_steps, prices, norm_squared_max=square)[0])


@lru_cache(maxsize=64)  # each keeps the table of its scale in memory
def longest_steps(prices: LaplacePrices, units: int, scale_steps: float) -> int:
    """The largest number of steps, at most 2^31 - 1, that costs at most `units` at a scale. Prices do not decrease."""
    low, high = 0, STEPS_MAX
    while low < high:
        steps = low + (high - low) * _PARTS // _PARTS.size  # the last is high; all between, where they are so few
        charges = laplace_charge_units(steps * steps, scale_steps, prices, norm_squared_max=STEPS_MAX**2)
        paid = int(np.searchsorted(charges, units, side="right"))
        low, high = (int(steps[paid - 1]) if paid > 0 else low, int(steps[paid]) - 1 if paid < steps.size else high)
    return low
