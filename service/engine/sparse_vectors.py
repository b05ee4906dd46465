"""Sparse vectors of many individuals side by side, from the entries of rows to the form that the core takes.

Adding up is exact in int64 and therefore the same in any order of rows. A vector's entries lie next to each other, and
`firsts` (k,) is where each of the k vectors begins. Squared norms are integers, summed in two halves of 32 bits where
they could leave int64. A vector beyond the clip is scaled without regard to other vectors. The only floats are its
factor and its products, elementwise, so that they are the same whatever else is in the block. A comparison of integers
makes sure that the result is within the clip.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers, Mask, first, halves, kept, uniform
from service.core.release import Contributions
from service.core.renyi_filter import Touched
from service.core.shortening import shortened

SATURATED: Final = 2**62
"""Stands for any squared norm of 2^62 or more: beyond every clip."""
_HALF_BITS: Final = 32
_WORD: Final = 2**32
Keys = NDArray[np.uint32] | Integers


class BrokenInvariant(RuntimeError):
    """The plan or the memory does not keep its invariants; nothing is answered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowEntries:
    """The m entries of k rows, row by row. A row has any number of entries."""

    counts: Integers  # (k,) of each row
    coordinates: Integers  # (m,)
    values: Integers  # (m,) grid steps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """The m entries of vectors, with the entries of one individual next to each other.

    `one_value` says that by the query all values are the same; `values` is then a zero-stride view.
    """

    owners: Integers  # (m,) slots or rows, not decreasing
    coordinates: Integers  # (m,)
    values: Integers  # (m,) grid steps
    one_value: bool = False

    def kept(self, which: Mask) -> "Entries":
        """The entries marked in `which` (m,)."""
        return Entries(
            owners=kept(which, self.owners),
            coordinates=kept(which, self.coordinates),
            values=kept(which, self.values),
            one_value=self.one_value,
        )

    def merged(self, dimension: int) -> "Entries":
        """One entry for each coordinate of each individual, in order; sums of zero are left out."""
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

    def contributions(
        self, *, dimension: int, norm_squared_max: int, clip_binds: bool, item_clips: "ItemClips | None" = None
    ) -> Contributions:
        """The merged entries in the form that the core takes; vectors are scaled to be within the clip, if it binds.

        With `item_clips` each select item's part of a vector is scaled to be within the item's clip. Raises
        BrokenInvariant if a vector is beyond a clip that cannot bind.
        """
        if clip_binds and item_clips is not None:
            return self._clipped_by_item(item_clips).contributions(
                dimension=dimension, norm_squared_max=norm_squared_max, clip_binds=False
            )
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

    def _clipped_by_item(self, clips: "ItemClips") -> "Entries":
        """The entries, scaled so that each item's part of each vector is within the item's clip; part after part."""
        items = clips.items(self.coordinates)
        parts = self.owners * np.int64(clips.norms_squared_max.size) + items
        order = np.argsort(parts, kind="stable")
        firsts = np.flatnonzero(_begins(parts[order]))
        values, _ = clipped(self.values[order], firsts, clips.norms_squared_max[items[order][firsts]])
        return Entries(owners=self.owners[order], coordinates=self.coordinates[order], values=values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ItemClips:
    """The clip of each of k select items, and the coordinates that belong to the item."""

    ends: Integers  # (k,) where each item's coordinates end, within a group
    norms_squared_max: Integers  # (k,) squared steps

    def items(self, coordinates: Integers) -> Integers:
        """The item (m,) that each of the coordinates (m,) belongs to."""
        items: Integers = np.searchsorted(self.ends, coordinates % self.ends[-1], side="right")
        return items


def side_by_side(parts: Sequence[RowEntries], owners: Integers) -> "Entries":
    """The entries that several parts have for the same rows, row by row; `owners` (k,) of rows do not decrease."""
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
    """The sum of merged parts of one individual, as if all were merged at once; holds few entries at a time.

    Parts are merged once they have more than twice `dimension` entries together. After that at most `dimension` are
    left.
    """
    held: list[Entries] = []
    for part in parts:
        held.append(part)
        if sum(each.values.size for each in held) > 2 * dimension:
            held = [_joined(held).merged(dimension)]
    return _joined(held).merged(dimension)


def norms_squared(values: Integers, firsts: Integers) -> Integers:
    """The squared norm (k,) of each vector, at most SATURATED. The `values` (m,) are at most 2^61 in size."""
    peak = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if peak * peak * int(_lengths(firsts, values.size).max(initial=0)) < SATURATED:
        return np.add.reduceat(values * values, firsts)
    magnitudes = np.minimum(np.abs(values), 2**31)
    high, low = halves(magnitudes * magnitudes, firsts)
    fits = high < SATURATED >> _HALF_BITS
    return np.where(fits, (np.where(fits, high, 0) << _HALF_BITS) + low, SATURATED)


def clipped(values: Integers, firsts: Integers, norm_squared_max: int | Integers) -> tuple[Integers, Integers]:
    """The vectors and their squared norms (k,); a vector beyond the clip is shortened to it (`core.shortening`).

    `norm_squared_max` is one clip for all vectors, or one for each (k,). Raises BrokenInvariant outside [0, 2^61].
    """
    if np.min(norm_squared_max, initial=0) < 0 or np.max(norm_squared_max, initial=0) > SATURATED // 2:
        raise BrokenInvariant("the clip is out of range")
    limits = np.broadcast_to(np.asarray(norm_squared_max, dtype=np.int64), firsts.shape)
    norms = norms_squared(values, firsts)
    beyond = norms > limits
    lengths = _lengths(firsts, values.size)
    entries = np.repeat(beyond, lengths)
    starts = np.cumsum(lengths[beyond]) - lengths[beyond]
    values = values.copy()
    # That no vector is beyond the clip saves no work: one individual's vector must not show in how long this takes.
    values[entries], norms[beyond] = shortened(values[entries], starts, limits[beyond])
    return values, norms


class _Places:
    """Owner and coordinate in one number: the owner, counted from the first owner, above the bits of the coordinate.

    The numbers have 32 bits where these suffice: sorting then moves half the bytes.
    """

    def __init__(self, owners: Integers, dimension: int) -> None:
        self._first = first(owners)
        self._bits = (dimension - 1).bit_length()
        last = int(owners[-1]) - self._first if owners.size > 0 else 0
        self._is_narrow = (last + 1) << self._bits <= _WORD

    def keys(self, owners: Integers, coordinates: Integers) -> Keys:
        """The numbers (m,) for owners and coordinates, which sort by owner and then by coordinate."""
        keys = owners - self._first
        np.left_shift(keys, self._bits, out=keys)
        np.bitwise_or(keys, coordinates, out=keys)
        return keys.astype(np.uint32) if self._is_narrow else keys

    def of(self, keys: Keys) -> tuple[Integers, Integers]:
        """The owners and the coordinates that some numbers (k,) stand for."""
        wide = keys.astype(np.int64, copy=False)
        return (wide >> self._bits) + self._first, wide & ((1 << self._bits) - 1)


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(
        owners=np.concatenate([part.owners for part in parts]),
        coordinates=np.concatenate([part.coordinates for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )


def _lengths(firsts: Integers, entries: int) -> Integers:
    return np.diff(firsts, append=entries)


def _begins(keys: Keys) -> Mask:
    """Tell for each of the keys (m,) whether a run of equal keys begins there."""
    begins = np.ones(keys.shape, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return begins
