"""One number of the exact vector sum, and the most by which each individual's vector can change it.

Feldman and Zrnic (2021), Example 2.7: let g be L-Lipschitz in the vector v of an individual, and let the zero vector
stand for its absence. Then g of the sum with Gaussian noise costs the individual L^2 ||v||^2 / (2 sigma^2). Both
functions here, maximum and norm, are 1-Lipschitz. Let S be the sum with v, in whole steps of the grid.

Maximum: at each j, S_j - |v_j| <= (S - v)_j <= S_j + |v_j|, so that |max(S) - max(S - v)| <= max_j |v_j|. This bound is
charged. It is a whole number and never more than the norm.

Norm: | ||S|| - ||S - v|| | <= ||v|| by the triangle inequality. An answer has whole steps, so the norm is rounded,
once. Let r(x) be a whole number less than a step from x, such as the nearest one, or the one below. Then |r(||S||) -
r(||S - v||)| is below ||v|| + 2, and as a whole number at most ceil(||v||) + 1. This bound is charged. For an r that is
monotone and moves with whole steps, ceil(||v||) would do. With the additional step the charge holds for any way of
rounding, and is larger by at most 2^-16 of a charge at the clip, since the grid is so fine that the clip has 2^18 steps
or more.

Both functions take the same steps whatever the numbers are: all coordinates are looked at, and a root has a digit for
each bit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from service.arrays import Integers, Words, first, halves, uniform
from service.core.outer_products import OuterProducts
from service.core.release import Block, Contributions
from service.engine.sparse_vectors import BrokenInvariant
from service.query.reduction import ROUNDING_STEPS, Reduce

_HALF_BITS: Final = 32
_HALF: Final = 2**_HALF_BITS - 1
_ROOT_BITS: Final = 64
_AT_A_TIME: Final = 2**16  # coordinates that are squared at a time
_WHOLE: Final = np.zeros(1, dtype=np.int64)  # where the one vector begins


def priced(blocks: Iterable[Block], reduce: Reduce) -> Iterator[Contributions]:
    """The blocks with the squares (p,) of what each individual is charged for, in place of squared norms.

    For the maximum, an individual's entries must be at different coordinates. Raises BrokenInvariant for products.
    """
    for block in blocks:
        if isinstance(block, OuterProducts):
            raise BrokenInvariant("products are not reduced")
        yield replace(block, norms_squared=_CHARGED[reduce](block))


def reduced(total: Integers, reduce: Reduce) -> int:
    """The number that `reduce` makes of an exact sum (dimension,) of int64 steps; its squared norm is at most 2^122."""
    return _OF_SUM[reduce](total)


def _largest(total: Integers) -> int:
    return int(total.max())


def _length(total: Integers) -> int:
    """The L2 norm to the nearest step."""
    return root(4 * squared(total)) + 1 >> 1


def squared(total: Integers) -> int:
    """The exact sum of squares of k numbers (k,) of at most 2^63 in size, k at most 2^31, in halves of 32 bits."""
    return sum(_squared(total[start : start + _AT_A_TIME]) for start in range(0, total.size, _AT_A_TIME))


def root(number: int) -> int:
    """The largest whole number whose square is at most `number` < 2^128. The work is the same for every number."""
    found = 0
    for bit in reversed(range(_ROOT_BITS)):
        tried = found | 1 << bit
        found = (found, tried)[tried * tried <= number]
    return found


def _squared(numbers: Integers) -> int:
    magnitudes = np.abs(numbers).view(np.uint64)
    high, low = magnitudes >> np.uint64(_HALF_BITS), magnitudes & np.uint64(_HALF)
    above, between, below = _summed(high * high), _summed(high * low), _summed(low * low)
    return (above << 2 * _HALF_BITS) + (between << _HALF_BITS + 1) + below


def _summed(squares: Words) -> int:
    high, low = halves(squares, _WHOLE)
    return (int(high[0]) << _HALF_BITS) + int(low[0])


def _peaks(block: Contributions) -> Integers:
    """The square (p,) of the largest entry of each individual."""
    if block.owners is None:
        return block.norms_squared  # of one entry
    firsts = np.flatnonzero(np.diff(block.owners, prepend=-1))
    if firsts.size != block.touched.size:
        raise BrokenInvariant("an individual that is touched has no entry")
    if firsts.size == 0:
        return block.norms_squared
    return np.square(np.maximum.reduceat(np.abs(block.values), firsts))


def _lengths(block: Contributions) -> Integers:
    """The square (p,) of each norm, rounded up and plus a step; worked out once if the query makes all norms equal."""
    if not block.one_norm:
        return lengths_squared(block.norms_squared)
    one = lengths_squared(np.array([first(block.norms_squared)]))
    return uniform(first(one), block.touched.size)


def lengths_squared(norms_squared: Integers) -> Integers:
    """The square (p,) of each norm, rounded up and plus a step, of squared norms (p,) of at most 2^61.

    The root in doubles is off by less than a half, and a comparison of whole numbers corrects it.
    """
    lengths = np.rint(np.sqrt(norms_squared)).astype(np.int64)
    lengths += lengths * lengths < norms_squared
    lengths += ROUNDING_STEPS
    return np.square(lengths)


_CHARGED: Final[Mapping[str, Callable[[Contributions], Integers]]] = {"max": _peaks, "norm": _lengths}
_OF_SUM: Final[Mapping[str, Callable[[Integers], int]]] = {"max": _largest, "norm": _length}
