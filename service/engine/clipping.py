"""Squared norms of sparse integer vectors, and the scaling of those beyond the clip, one individual at a time.

A vector's entries lie next to each other; `firsts` (k,) is where each of the k vectors begins. Norms are integers,
summed in two halves of 32 bits where they could leave int64. The only floats are a vector's factor and its products:
elementwise, so the same whatever else is in the block. Whether the result is within the clip integers decide again.
"""

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Integers
from service.engine.errors import BrokenInvariant

SATURATED = 2**62
"""Stands for any squared norm of 2^62 or more: beyond every clip."""

_HALF_BITS = 32
_LOW_HALF = 2**_HALF_BITS - 1
_ATTEMPTS_MAX = 40


def norms_squared(values: Integers, firsts: Integers) -> Integers:
    """The squared norm (k,) of each vector, saturated. |values| (m,) are at most 2^61."""
    peak = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if peak * peak * int(_lengths(firsts, values.size).max(initial=0)) < SATURATED:
        return np.add.reduceat(values * values, firsts)
    magnitudes = np.minimum(np.abs(values), 2**31)
    high, low = _halves(magnitudes * magnitudes, firsts)
    fits = high < SATURATED >> _HALF_BITS
    return np.where(fits, (np.where(fits, high, 0) << _HALF_BITS) + low, SATURATED)


def clipped(values: Integers, firsts: Integers, norm_squared_max: int) -> tuple[Integers, Integers]:
    """The vectors and their squared norms (k,); a vector beyond the clip is scaled into it and truncated toward zero.

    Raises BrokenInvariant for a `norm_squared_max` outside [0, 2^61], or if a vector cannot be brought within it.
    """
    if not 0 <= norm_squared_max <= SATURATED // 2:
        raise BrokenInvariant("the clip is out of range")
    norms = norms_squared(values, firsts)
    beyond = norms > norm_squared_max
    lengths = _lengths(firsts, values.size)
    entries = np.repeat(beyond, lengths)
    starts = np.cumsum(lengths[beyond]) - lengths[beyond]
    values = values.copy()
    # That no vector is beyond the clip saves no work: one individual's vector must not show in how long this takes.
    values[entries], norms[beyond] = _scaled(values[entries], starts, norm_squared_max)
    return values, norms


def _scaled(values: Integers, firsts: Integers, norm_squared_max: int) -> tuple[Integers, Integers]:
    """Vectors all beyond the clip, times clip / norm."""
    owners = np.repeat(np.arange(firsts.size), _lengths(firsts, values.size))
    magnitudes = np.abs(values)
    # A vector beyond 32 bits loses low bits first, so that squares fit 64; the clip is below 31 bits: it stays beyond.
    bits = np.frexp(np.maximum.reduceat(magnitudes, firsts).astype(np.float64))[1]
    small = (magnitudes >> np.maximum(bits - _HALF_BITS, 0).astype(np.int64)[owners]).astype(np.uint64)
    high, low = _halves(small * small, firsts)
    factors = np.sqrt(float(norm_squared_max)) / np.sqrt(high * float(2**_HALF_BITS) + low)
    for attempt in range(_ATTEMPTS_MAX):
        cut = (small * factors[owners]).astype(np.int64)
        norms = np.add.reduceat(cut * cut, firsts)
        beyond = norms > norm_squared_max
        if not beyond.any():
            return np.sign(values) * cut, norms
        factors[beyond] *= 1 - 2.0 ** (attempt - 50)
    raise BrokenInvariant("a vector cannot be brought within the clip")


def _halves(
    squares: NDArray[np.int64] | NDArray[np.uint64], firsts: Integers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums (k,) of 64-bit squares as high * 2^32 + low with low below 2^32; at most 2^31 squares a vector."""
    low = np.add.reduceat(squares & squares.dtype.type(_LOW_HALF), firsts).astype(np.int64)
    high = np.add.reduceat(squares >> squares.dtype.type(_HALF_BITS), firsts).astype(np.int64)
    return high + (low >> _HALF_BITS), low & _LOW_HALF


def _lengths(firsts: Integers, entries: int) -> Integers:
    return np.diff(firsts, append=entries)
