"""Sparse vectors of many individuals side by side, from the entries of rows to what the core takes.

Adding up is exact in int64 and therefore the same in any order of rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.contribution import Contributions
from service.core.uniform import is_uniform
from service.engine.clipping import clipped, norms_squared
from service.engine.invariants import BrokenInvariant

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Vector entries (m of them), those of one individual next to each other; `values` may be a zero-stride view."""

    owners: Integers  # (m,) slots or rows, not decreasing
    coordinates: Integers  # (m,)
    values: Integers  # (m,) grid steps

    def kept(self, which: NDArray[np.bool_]) -> "Entries":
        """The entries marked in `which` (m,)."""
        if which.all():
            return self
        return Entries(owners=self.owners[which], coordinates=self.coordinates[which], values=self.values[which])

    def moved(self, slots: int) -> "Entries":
        """The same with every owner `slots` further on, in place: the arrays are this object's own, and large."""
        if slots != 0:
            np.add(self.owners, slots, out=self.owners)
        return self

    def of(self, owners: NDArray[np.unsignedinteger]) -> "Entries":
        """The same for owners that are places in `owners`."""
        slots = owners[self.owners].astype(np.int64)
        return Entries(owners=slots, coordinates=self.coordinates, values=self.values)

    def merged(self, dimension: int) -> "Entries":
        """One entry for each coordinate of each individual, in order; what cancels to zero is gone."""
        if self.values.size == 0:
            return self
        keys = self.owners if dimension == 1 else self.owners * np.int64(dimension) + self.coordinates
        if is_uniform(self.values):
            keys = keys if dimension == 1 else np.sort(keys)
            starts = np.flatnonzero(_begins(keys))
            values = np.diff(starts, append=keys.size) * self.values[0]
        else:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            starts = np.flatnonzero(_begins(keys))
            values = np.add.reduceat(self.values[order], starts)
        owners, coordinates = np.divmod(keys[starts], np.int64(dimension))
        return Entries(owners=owners, coordinates=coordinates, values=values).kept(values != 0)

    def contributions(self, *, dimension: int, norm_squared_max: int, clip_binds: bool) -> Contributions:
        """What the core takes, of entries that are merged: every vector within the clip, by scaling if the clip binds.

        Raises BrokenInvariant if a vector is beyond a clip that cannot bind.
        """
        firsts = np.flatnonzero(_begins(self.owners))
        if clip_binds:
            values, norms = clipped(self.values, firsts, norm_squared_max)
        else:
            values, norms = self.values, norms_squared(self.values, firsts)
            if norms.size > 0 and int(norms.max()) > norm_squared_max:
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


def _begins(keys: Integers) -> NDArray[np.bool_]:
    """Whether a run of equal keys (m,) begins at each of them."""
    begins = np.ones(keys.shape, dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return begins
