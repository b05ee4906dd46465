"""Sparse vectors of many individuals side by side, from the entries of rows to what the core takes.

Adding up is exact in int64 and therefore the same in any order of rows. A vector's entries lie next to each other;
`firsts` (k,) is where each of the k vectors begins. Squared norms are integers, summed in two halves of 32 bits where
they could leave int64. A vector beyond the clip is scaled by itself: the only floats are its factor and its products,
elementwise, so the same whatever else is in the block. Whether the result is within the clip integers decide again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Integers, Touched, first, kept, uniform
from service.core.release import Contributions

SATURATED = 2**62
"""Stands for any squared norm of 2^62 or more: beyond every clip."""
_HALF_BITS = 32
_LOW_HALF = 2**_HALF_BITS - 1
_ATTEMPTS_MAX = 40
_WORD: Final = 2**32
Keys = NDArray[np.uint32] | NDArray[np.int64]


class BrokenInvariant(RuntimeError):
    """The plan or the memory is not what it promises to be: nothing is answered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowEntries:
    """The entries (m of them) of rows (k of them), row by row: any number of each."""

    counts: Integers  # (k,) of each row
    coordinates: Integers  # (m,)
    values: Integers  # (m,) grid steps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Vector entries (m of them), those of one individual next to each other.

    `one_value` is a fact of the query: with it, `values` is a zero-stride view.
    """

    owners: Integers  # (m,) slots or rows, not decreasing
    coordinates: Integers  # (m,)
    values: Integers  # (m,) grid steps
    one_value: bool = False

    def kept(self, which: NDArray[np.bool_]) -> "Entries":
        """The entries marked in `which` (m,)."""
        return Entries(
            owners=kept(which, self.owners),
            coordinates=kept(which, self.coordinates),
            values=kept(which, self.values),
            one_value=self.one_value,
        )

    def merged(self, dimension: int) -> "Entries":
        """One entry for each coordinate of each individual, in order; what cancels to zero is gone."""
        keys: Keys = self.owners
        added = self.values
        places = _Places(self.owners, dimension)
        if dimension > 1:
            keys = places.keys(self.owners, self.coordinates)
            if self.one_value:
                keys.sort()
            else:
                order = np.argsort(keys)
                keys, added = keys[order], self.values[order]
        starts = np.flatnonzero(_begins(keys))
        if self.one_value:
            values = np.diff(starts, append=keys.size) * first(self.values)
        else:
            values = np.add.reduceat(added, starts)
        if dimension == 1:
            merged = Entries(owners=self.owners[starts], coordinates=uniform(0, starts.size), values=values)
        else:
            owners, coordinates = places.of(keys[starts])
            merged = Entries(owners=owners, coordinates=coordinates, values=values)
        return merged if self.one_value else merged.kept(values != 0)

    def contributions(self, *, dimension: int, norm_squared_max: int, clip_binds: bool) -> Contributions:
        """The merged entries as the core takes them: every vector within the clip, by scaling if the clip binds.

        Raises BrokenInvariant if a vector is beyond a clip that cannot bind.
        """
        firsts = np.flatnonzero(_begins(self.owners))
        if clip_binds:
            values, norms = clipped(self.values, firsts, norm_squared_max)
        else:
            values, norms = self.values, norms_squared(self.values, firsts)
            if int(norms.max(initial=0)) > norm_squared_max:
                raise BrokenInvariant("a vector is longer than the declared bounds allow")
        entries = Entries(owners=self.owners, coordinates=self.coordinates, values=values).kept(values != 0)
        return Contributions(
            touched=Touched(self.owners[firsts][norms > 0]),
            norms_squared=norms[norms > 0],
            dimension=dimension,
            owners=np.cumsum(_begins(entries.owners)) - 1,
            coordinates=entries.coordinates,
            values=entries.values,
        )


def side_by_side(parts: Sequence[RowEntries], owners: Integers) -> "Entries":
    """The entries of the same rows in several parts, row by row; the rows are of `owners` (k,), not decreasing."""
    if len(parts) == 1:
        (part,) = parts
        return Entries(owners=np.repeat(owners, part.counts), coordinates=part.coordinates, values=part.values)
    counts = np.sum([part.counts for part in parts], axis=0)
    coordinates, values = np.empty((2, int(counts.sum())), dtype=np.int64)
    begins = np.cumsum(counts) - counts
    for part in parts:
        places = np.repeat(begins - np.cumsum(part.counts) + part.counts, part.counts)
        places += np.arange(places.size)
        coordinates[places], values[places] = part.coordinates, part.values
        begins += part.counts
    return Entries(owners=np.repeat(owners, counts), coordinates=coordinates, values=values)


def folded(parts: Iterable[Entries], dimension: int) -> Entries:
    """The sum of merged parts, as one merging of all would give it; at most twice `dimension` entries wait for more.

    The entries are one individual's, so that no more than `dimension` are left whenever some are added up.
    """
    held: list[Entries] = []
    for part in parts:
        held.append(part)
        if sum(each.values.size for each in held) > 2 * dimension:
            held = [_joined(held).merged(dimension)]
    return _joined(held).merged(dimension)


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


class _Places:
    """Owner and coordinate as one number: the owner counted from the first, then the coordinate in the low bits.

    In 32 bits where these suffice: half of what is sorted is then moved.
    """

    def __init__(self, owners: Integers, dimension: int) -> None:
        self._first = first(owners)
        self._bits = (dimension - 1).bit_length()
        last = int(owners[-1]) - self._first if owners.size > 0 else 0
        self._is_narrow = (last + 1) << self._bits <= _WORD

    def keys(self, owners: Integers, coordinates: Integers) -> Keys:
        """The numbers (m,), in the order of owners and coordinates."""
        keys = owners - self._first
        np.left_shift(keys, self._bits, out=keys)
        np.bitwise_or(keys, coordinates, out=keys)
        return keys.astype(np.uint32) if self._is_narrow else keys

    def of(self, keys: Keys) -> tuple[Integers, Integers]:
        """The owners and the coordinates of some numbers (k,)."""
        wide = keys.astype(np.int64, copy=False)
        return (wide >> self._bits) + self._first, wide & ((1 << self._bits) - 1)


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(
        owners=np.concatenate([part.owners for part in parts]),
        coordinates=np.concatenate([part.coordinates for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )


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


def _begins(keys: Keys) -> NDArray[np.bool_]:
    """Whether a run of equal keys (m,) begins at each of them."""
    begins = np.ones(keys.shape, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return begins
