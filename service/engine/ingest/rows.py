"""The rows of an upload; in a module apart, so that code that passes rows on need not import the reader."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

import numpy as np

from service.arrays import Codes, Integers, Mask
from service.engine.ingest.names import ColumnNames
from service.query.keys import Key

Duplicates = Literal["keep", "drop", "reject"]
"""The treatment of a row that repeats an earlier one of its upload."""
DecimalMark = Literal[".", ","]
"""The mark before the fraction of a number in CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileForm:
    """The form of a file: in CSV the marks between fields and before a fraction, and columns that have other names."""

    delimiter: str = ","
    decimal: DecimalMark = "."
    columns: ColumnNames = field(default_factory=dict)


USUAL_FORM: Final = FileForm()


class Keys(Sequence[Key]):
    """The keys of an upload in the form in which they are compared; a slice of them is a list."""

    @abstractmethod
    def taken(self, rows: Integers) -> "Keys":
        """The keys of some rows, in their order."""

    @abstractmethod
    def distinct(self) -> tuple["Keys", Integers]:
        """Each key once, in the order of its first row; and for each row (n,) the number of its key among these."""

    @abstractmethod
    def plain_forms(self) -> dict[int, str]:
        """By place, the plain form of each key that differs from its plain form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """The counts of an upload, for the curator alone. Most counts are by column."""

    clipped: Mapping[str, int]
    out_of_domain: Mapping[str, int]
    nulls: Mapping[str, int]
    nearest: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By category, how many values that are not in the list differ from it only in case, blanks or forms of letters."""
    without_zone: tuple[str, ...] = ()  # columns of times of which some does not say its zone
    repeated: int = 0  # rows that are the same as an earlier one

    @property
    def by_name(self) -> dict[str, Any]:
        """All counts by their names."""
        return {each.name: getattr(self, each.name) for each in fields(RowCounts)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows(RowCounts):
    """Checked rows (n of them), in the order of the upload, and the upload's counts.

    `places` (n,) are the places of the rows in the upload, from 0; None if no row was left out.
    """

    keys: Keys
    codes: dict[str, Codes]  # (n,) each, in the dtype of the column's coding
    limits: Integers | None  # (n,) units, DATASET_BUDGET = -1 for the dataset's; None: no budget column
    places: Integers | None = None

    def only(self, kept: Mask) -> "Rows":
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
    """The first rows of a file as CSV (RFC 4180), with a header; `left_out` gives by column why it was left out."""

    csv: str
    rows: int
    text_columns: tuple[str, ...]  # whose values are texts, even where they look like numbers
    left_out: Mapping[str, str]
    is_whole: bool  # whether these are all rows of the file
