"""Sparse vectors of many individuals side by side, from the entries of rows to what the core takes.

Adding up is exact in int64 and therefore the same in any order of rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import first, kept, uniform
from service.core.contribution import Contributions
from service.engine.clipping import clipped, norms_squared
from service.engine.errors import BrokenInvariant

Integers = NDArray[np.int64]


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
        keys, added = self.owners, self.values
        if dimension > 1:
            keys = self.owners * np.int64(dimension) + self.coordinates
            if self.one_value:
                keys = np.sort(keys)
            else:
                order = np.argsort(keys, kind="stable")
                keys, added = keys[order], self.values[order]
        starts = np.flatnonzero(_begins(keys))
        if self.one_value:
            values = np.diff(starts, append=keys.size) * first(self.values)
        else:
            values = np.add.reduceat(added, starts)
        if dimension == 1:
            merged = Entries(owners=keys[starts], coordinates=uniform(0, starts.size), values=values)
        else:
            owners, coordinates = np.divmod(keys[starts], np.int64(dimension))
            merged = Entries(owners=owners, coordinates=coordinates, values=values)
        return merged.kept(values != 0)

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
            slots=self.owners[firsts][norms > 0],
            norms_squared=norms[norms > 0],
            dimension=dimension,
            owners=np.cumsum(_begins(entries.owners)) - 1,
            coordinates=entries.coordinates,
            values=entries.values,
        )


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


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(
        owners=np.concatenate([part.owners for part in parts]),
        coordinates=np.concatenate([part.coordinates for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )


def _begins(keys: Integers) -> NDArray[np.bool_]:
    """Whether a run of equal keys (m,) begins at each of them."""
    begins = np.ones(keys.shape, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return begins
