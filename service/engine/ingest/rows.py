"""The rows of an upload; apart from its reader, so that code that passes rows on need not import what reads them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.arrays import Codes

Duplicates = Literal["keep", "drop", "reject"]
"""What to do with a row that is the same as an earlier one of its upload."""


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
    """Checked rows (n of them), in the order of the upload. Counts are by column, and for the curator alone.

    `places` (n,) are the places of the rows in the upload, from 0, where some were left out before.
    """

    keys: Keys
    codes: dict[str, Codes]  # (n,) each, in the dtype of the column's coding
    limits: NDArray[np.int64] | None  # (n,) units, DATASET_BUDGET = -1 for the dataset's; None: no budget column
    clipped: dict[str, int]
    out_of_domain: dict[str, int]
    nulls: dict[str, int]
    repeated: int = 0  # rows that are the same as an earlier one
    alike: int = 0  # keys that differ from another one only by leading zeros or a trailing `.0`
    places: NDArray[np.int64] | None = None

    def only(self, kept: NDArray[np.bool_]) -> "Rows":
        """Some of the rows (n,); the counts stay those of the whole upload."""
        left = np.flatnonzero(kept)
        return replace(
            self,
            keys=self.keys.taken(left),
            places=left if self.places is None else self.places[left],
            codes={name: codes[kept] for name, codes in self.codes.items()},
            limits=None if self.limits is None else self.limits[kept],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """The first rows of a file as CSV (RFC 4180), with a header; `left_out` says why by column."""

    csv: str
    rows: int
    text_columns: tuple[str, ...]  # whose values are texts, even where they look like numbers
    left_out: Mapping[str, str]
    is_whole: bool  # whether these are all rows of the file
