"""The contributions of one block's individuals to a query: sparse integer vectors and their squared norms.

The squared norms are those of the very integers that are summed, so the charge is for what is added (theory: the true
charge). Everyone else has the zero vector: adds nothing, pays nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import first, is_uniform, kept
from service.core.touched import Touched


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The individuals of a block that a query touches, at p places, and m vector entries, all int64.

    Arrays may be zero-stride views where all elements are equal. Entries of one individual at one coordinate add up;
    entries at places that are not touched are ignored. `one_norm` is a fact of the query: with it, every touched
    individual has the same norm, whatever the data; without it, norms that are equal are so by chance, and nothing
    about a release may take another form for it. Raises ValueError when lengths disagree, the dimension is not
    positive, or the norms under `one_norm` are no such view.
    """

    touched: Touched
    norms_squared: NDArray[np.int64]  # (p,) squared grid steps, positive where touched, and in range elsewhere too
    dimension: int
    owners: NDArray[np.int64] | None  # (m,) entry e is of place owners[e]; None: one entry each, in order
    coordinates: NDArray[np.int64]  # (m,) in [0, dimension) where touched
    values: NDArray[np.int64]  # (m,) grid steps
    one_norm: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together; what needs a pass over the entries is left to tests."""
        places = (self.touched.size,)
        owned = places if self.owners is None else self.owners.shape
        if self.norms_squared.shape != places or not (owned == self.coordinates.shape == self.values.shape):
            raise ValueError("one norm for each place, one coordinate and one value for each entry")
        if self.dimension < 1:
            raise ValueError(f"dimension must be positive, got {self.dimension}")
        if self.one_norm and not is_uniform(self.norms_squared):
            raise ValueError("norms that are one by the query must be a view of one number")

    def add_to(self, total: NDArray[np.int64], active: NDArray[np.bool_]) -> None:
        """Add the vectors of the places marked in `active` (p,) to `total` (dimension,), in place and exactly.

        int64 addition is associative, so no order of individuals or blocks changes a bit; that the final total fits is
        the plan's public overflow bound. A single coordinate needs no scatter.
        """
        entries = active if self.owners is None else active[self.owners]
        if self.dimension == 1 and is_uniform(self.values):
            total[0] += first(self.values) * np.count_nonzero(entries)
        elif self.dimension == 1:
            total[0] += np.dot(self.values, entries.astype(np.int64))
        else:
            np.add.at(total, kept(entries, self.coordinates), kept(entries, self.values))
