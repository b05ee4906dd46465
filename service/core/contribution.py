"""The contributions of one block's individuals to a query: sparse integer vectors and their squared norms.

The squared norms are those of the very integers that are summed, so the charge is for what is added (theory: the true
charge). Everyone not listed has the zero vector: adds nothing, pays nothing, and is never looked at.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import first, is_uniform, kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The individuals of a block that a query touches: k individuals, m vector entries, all int64.

    Arrays may be zero-stride views where all elements are equal. Entries of one individual at one coordinate add up.
    `one_norm` is a fact of the query: with it, every touched individual has the same norm, whatever the data; without
    it, norms that are equal are so by chance, and nothing about a release may take another form for it. Raises
    ValueError when lengths disagree, the dimension is not positive, or the norms under `one_norm` are no such view.
    """

    slots: NDArray[np.int64]  # (k,) strictly increasing
    norms_squared: NDArray[np.int64]  # (k,) squared grid steps, positive
    dimension: int
    owners: NDArray[np.int64] | None  # (m,) entry e is of slots[owners[e]]; None: one entry each, in order
    coordinates: NDArray[np.int64]  # (m,) in [0, dimension)
    values: NDArray[np.int64]  # (m,) grid steps
    one_norm: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together; what needs a pass over the entries is left to `check`."""
        owned = self.slots if self.owners is None else self.owners
        if self.slots.shape != self.norms_squared.shape or not (
            owned.shape == self.coordinates.shape == self.values.shape
        ):
            raise ValueError("one norm for each slot, one coordinate and one value for each entry")
        if self.dimension < 1:
            raise ValueError(f"dimension must be positive, got {self.dimension}")
        if self.one_norm and not is_uniform(self.norms_squared):
            raise ValueError("norms that are one by the query must be a view of one number")

    def add_to(self, total: NDArray[np.int64], active: NDArray[np.bool_]) -> None:
        """Add the vectors of the individuals marked in `active` (k,) to `total` (dimension,), in place and exactly.

        int64 addition is associative, so no order of individuals or blocks changes a bit; that the final total fits is
        the plan's public overflow bound. An inactive individual adds zero; a single coordinate needs no scatter; equal
        values are counted by coordinate and multiplied, which is the same sum.
        """
        entries = active if self.owners is None else active[self.owners]
        if self.dimension == 1:
            total[0] += self._dot(entries)
        elif is_uniform(self.values) and self.values.size >= self.dimension:
            total += first(self.values) * np.bincount(kept(entries, self.coordinates), minlength=self.dimension)
        else:
            np.add.at(total, self.coordinates, self.values * entries)

    def _dot(self, entries: NDArray[np.bool_]) -> int:
        if is_uniform(self.values):
            return first(self.values) * int(np.count_nonzero(entries))
        return int(np.dot(self.values, entries))

    def check(self) -> None:
        """Recompute every squared norm from the entries, in Python's integers: for tests, not for every answer.

        Raises ValueError naming the first promise of the fields above that is broken.
        """
        count, entries = self.slots.size, self.values.size
        owners = np.arange(entries) if self.owners is None else self.owners
        vectors: list[dict[int, int]] = [{} for _ in range(count)]
        promises = {
            "slots": count == 0 or (self.slots[0] >= 0 and bool((np.diff(self.slots) > 0).all())),
            "owners": bool(((owners >= 0) & (owners < count)).all()),
            "coordinates": bool(((self.coordinates >= 0) & (self.coordinates < self.dimension)).all()),
        }
        for name, is_kept in promises.items():
            if not is_kept:
                raise ValueError(f"{name} are out of order or out of range")
        for owner, coordinate, value in zip(
            owners.tolist(), self.coordinates.tolist(), self.values.tolist(), strict=True
        ):
            vectors[owner][coordinate] = vectors[owner].get(coordinate, 0) + value
        norms = [sum(value**2 for value in vector.values()) for vector in vectors]
        if norms != self.norms_squared.tolist() or 0 in norms:
            raise ValueError("norms_squared are not the positive squared norms of the entries")
