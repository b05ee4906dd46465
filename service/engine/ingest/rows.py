"""The rows of an upload; apart from its reader, so that code that passes rows on need not import what reads them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Codes


class Keys(Sequence[str]):
    """The keys of an upload; a slice of them is a list."""

    @abstractmethod
    def taken(self, rows: NDArray[np.int64]) -> "Keys":
        """The keys of some rows, in their order."""

    @abstractmethod
    def distinct(self) -> tuple["Keys", NDArray[np.int64]]:
        """Each key once, in the order of its first row, and the number of each row's (n,) among these."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Checked rows (n of them), in the order of the upload. Counts are by column, and for the curator alone."""

    keys: Keys
    codes: dict[str, Codes]  # (n,) each, in the dtype of the column's coding
    limits: NDArray[np.int64] | None  # (n,) units, DATASET_BUDGET = -1 for the dataset's; None: no budget column
    clipped: dict[str, int]
    out_of_domain: dict[str, int]
    nulls: dict[str, int]

    def only(self, kept: NDArray[np.bool_]) -> "Rows":
        """Some of the rows (n,); the counts stay those of the whole upload."""
        return replace(
            self,
            keys=self.keys.taken(np.flatnonzero(kept)),
            codes={name: codes[kept] for name, codes in self.codes.items()},
            limits=None if self.limits is None else self.limits[kept],
        )
