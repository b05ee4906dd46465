"""The inverted index: the rows of a page by the value of one column, so that few of them need not be looked for.

An index suggests and never decides. It lists every row that holds a value, and may list a row that held it before its
individual was erased; the caller tests the rows that come on the columns themselves. So an answer through the index
is made of the very integers that a scan would have found.

Rows are listed by one column, or by two together, as if these were one column with a code for each pair of values.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Codes, Integers
from service.query.coding import Coding, coding_of
from service.query.schema import CategoryColumn, Column, IntegerColumn

Listing = tuple[str, ...]
"""The columns, one or two, by whose codes rows are listed."""

VALUES_MAX: Final = 2**12  # with more, the edges of the lists would take more room than the lists
PAIRS_MAX: Final = 2**14  # so many values of two columns together: their edges take as much room as the lists


def is_indexed(column: Column) -> bool:
    """Whether a column has an index: public, read off its declaration."""
    return isinstance(column, (CategoryColumn, IntegerColumn)) and coding_of(column).span < VALUES_MAX


def listed_coding(listing: Listing, codings: Mapping[str, Coding]) -> Coding:
    """The coding of one column, or of pairs: those of the first column's lowest code come first."""
    if len(listing) == 1:
        return codings[listing[0]]
    major, minor = (codings[name] for name in listing)
    return Coding(offset=0, span=(major.span + 1) * (minor.span + 1) - 1, step_log2=0)


def listed_codes(listing: Listing, columns: Mapping[str, Codes], codings: Mapping[str, Coding]) -> Codes:
    """The codes (n,) of one column, or of pairs; a pair with a NULL is NULL. At most PAIRS_MAX pairs."""
    if len(listing) == 1:
        return columns[listing[0]]
    (major, minor), (high, low) = (columns[name] for name in listing), (codings[name] for name in listing)
    codes = major.astype(np.uint16) * np.uint16(low.span + 1) + minor.astype(np.uint16)
    codes[(major > high.span) | (minor > low.span)] = listed_coding(listing, codings).null_code
    return codes


class Inverted:
    """Row numbers in order of their codes, and where each code's begin. Two bytes a row on a page of slots."""

    __slots__ = ("edges", "rows")

    def __init__(self, rows: NDArray[np.unsignedinteger], edges: Integers) -> None:
        self.rows, self.edges = rows, edges

    @classmethod
    def of(cls, codes: Codes, coding: Coding) -> Self:
        """The index of a column `codes` (n,). NULLs are in no list."""
        order = np.argsort(codes, kind="stable")  # of small integers: a radix sort, and rows of one code stay in order
        edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=coding.span + 2))])
        return cls(order[: edges[-2]].astype(np.min_scalar_type(max(codes.size - 1, 0))), edges[:-1])

    def with_rows(self, rows: Integers, codes: Codes) -> "Inverted":
        """This index and few `rows` (k,) more, by their `codes` (k,); NULLs are listed nowhere.

        A row that is listed under its code already stays listed once. For a row this costs a copy of the lists, a tenth
        of what sorting the page again does.
        """
        places, values, listed = [], [], []
        for code, row in sorted(zip(codes.tolist(), rows.tolist(), strict=True)):
            if code >= self.edges.size - 1:
                continue
            start, stop = int(self.edges[code]), int(self.edges[code + 1])
            place = start + int(np.searchsorted(self.rows[start:stop], row))
            if place == stop or self.rows[place] != row:
                places.append(place)
                values.append(row)
                listed.append(code)
        if not places:
            return self
        added = np.cumsum(np.bincount(np.array(listed) + 1, minlength=self.edges.size))
        return Inverted(np.insert(self.rows, places, values), self.edges + added)


class InvertedPages:
    """The inverted indexes of one column, page after page; never changed, only replaced."""

    __slots__ = ("_edges", "_pages", "_totals")

    def __init__(self, pages: Sequence[Inverted]) -> None:
        """At least one page."""
        self._pages = pages
        self._edges = np.stack([page.edges for page in pages])
        self._totals = self._edges.sum(axis=0)

    def count(self, low: int, high: int) -> int:
        """How many rows are listed under the codes from `low` to `high`."""
        return int(self._totals[high + 1] - self._totals[low])

    def rows(self, low: int, high: int) -> list[NDArray[np.unsignedinteger]]:
        """The rows within each page listed under the codes from `low` to `high`: increasing under each code."""
        ends = zip(self._edges[:, low].tolist(), self._edges[:, high + 1].tolist(), self._pages, strict=True)
        return [page.rows[start:stop] for start, stop, page in ends]
