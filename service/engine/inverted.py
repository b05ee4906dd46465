"""Inverted indexes: the rows of a page by the values of one or two columns, so that a query can find few rows quickly.

An index suggests rows and never decides. It lists every row that holds a value, and may list a row that held the value
before its individual was erased. The caller then tests the columns of the listed rows. So an answer through the index
is made of the very integers that a scan would have found.

In the table of individuals, every column that can have an index may have one, and so may a few pairs of columns. An
index by a pair lists few people besides those that meet a condition on both columns. Two columns are listed as if they
were one, with a code for each pair of values. A change of records comes with new indexes of its pages, built beside the
old ones, so that no query has to index a page because an individual has joined.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from service.arrays import Codes, Integers
from service.query.columns import Coding, coding_of
from service.query.schema import CategoryColumn, Column, IntegerColumn

Listing = tuple[str, ...]
"""The one or two columns by whose codes rows are listed."""
Columns = Mapping[str, Codes]
PageOf = Callable[[str, int], Codes]
"""The codes of a column on one page."""
VALUES_MAX: Final = 2**12  # with more, the edges of the lists would take more room than the lists
PAIRS_MAX: Final = 2**14  # of values of two columns together: their edges take as much room as the lists
PAIRED_MAX: Final = 8
"""The most pairs of columns with an index, the first pairs asked for: each takes up to four bytes an individual."""
INSERTED_MAX: Final = 16
"""The most new individuals of a page that are inserted into its lists; for more, sorting the page is as quick."""


def is_indexed(column: Column) -> bool:
    """Tell whether a column can have an index; this depends on its declaration alone."""
    return isinstance(column, (CategoryColumn, IntegerColumn)) and coding_of(column).span < VALUES_MAX


def listed_coding(listing: Listing, codings: Mapping[str, Coding]) -> Coding:
    """The coding of one column, or of pairs; the pairs with the lowest code of the first column come first."""
    if len(listing) == 1:
        return codings[listing[0]]
    major, minor = (codings[name] for name in listing)
    return Coding(offset=0, span=(major.span + 1) * (minor.span + 1) - 1, step_log2=0)


def listed_codes(listing: Listing, columns: Mapping[str, Codes], codings: Mapping[str, Coding]) -> Codes:
    """The codes (n,) of one column, or of at most PAIRS_MAX pairs. A pair in which a value is NULL is NULL."""
    if len(listing) == 1:
        return columns[listing[0]]
    (major, minor), (high, low) = (columns[name] for name in listing), (codings[name] for name in listing)
    codes = major.astype(np.uint16) * np.uint16(low.span + 1) + minor.astype(np.uint16)
    codes[(major > high.span) | (minor > low.span)] = listed_coding(listing, codings).null_code
    return codes


class Inverted:
    """Row numbers in the order of codes, and where the rows of each code begin. Two bytes a row on a page of slots."""

    __slots__ = ("edges", "rows")

    def __init__(self, rows: Codes, edges: Integers) -> None:
        self.rows, self.edges = rows, edges

    @classmethod
    def of(cls, codes: Codes, coding: Coding) -> Self:
        """The index of a column `codes` (n,). NULLs are in no list."""
        order = np.argsort(codes, kind="stable")  # of small integers: a radix sort, and rows of one code stay in order
        edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=coding.span + 2))])
        return cls(order[: edges[-2]].astype(np.min_scalar_type(max(codes.size - 1, 0))), edges[:-1])

    def with_rows(self, rows: Integers, codes: Codes) -> "Inverted":
        """Return this index with a few more `rows` (k,), by their `codes` (k,); NULLs are listed nowhere.

        A row that is already listed under its code stays listed once. Inserting one row costs a copy of the lists, a
        tenth of what sorting the page again costs.
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
    """The inverted indexes of one listing, page after page; never changed, only replaced."""

    __slots__ = ("_edges", "_pages", "_totals")

    def __init__(self, pages: Sequence[Inverted]) -> None:
        """Join at least one page."""
        self._pages = pages
        self._edges = np.stack([page.edges for page in pages])
        self._totals = self._edges.sum(axis=0)

    def count(self, low: int, high: int) -> int:
        """The number of rows listed under the codes from `low` to `high`."""
        return int(self._totals[high + 1] - self._totals[low])

    def rows(self, low: int, high: int) -> list[Codes]:
        """For each page, its rows listed under the codes from `low` to `high`: increasing under each code."""
        ends = zip(self._edges[:, low].tolist(), self._edges[:, high + 1].tolist(), self._pages, strict=True)
        return [page.rows[start:stop] for start, stop, page in ends]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """The new index of a listing: of each page that has changed, and of all pages together."""

    pages: Mapping[int, Inverted]
    whole: InvertedPages


class Indexes:
    """The inverted indexes of individuals, built beside the queries; a change brings new indexes of its pages along."""

    def __init__(self, codings: Mapping[str, Coding], columns: frozenset[str]) -> None:
        """Begin without indexes; only `columns` can have one. `whole` holds the index of each listing that has one."""
        self._codings, self._columns = codings, columns
        self.whole: dict[Listing, InvertedPages] = {}
        self._pages: dict[Listing, dict[int, Inverted]] = {}

    def admit(self, listing: Listing) -> bool:
        """Tell whether the index of a listing is made; otherwise ask for it, if the listing can have one.

        Only the first pairs that are asked for get an index. Which pairs these are depends on declarations and queries,
        not on data.
        """
        if listing in self.whole:
            return True
        if self._columns.issuperset(listing) and (len(listing) == 1 or self._has_room_for(listing)):
            self._pages.setdefault(listing, {})
        return False

    @property
    def missing(self) -> tuple[Listing, ...]:
        """The listings whose indexes were asked for and are not made."""
        return tuple(listing for listing in tuple(self._pages) if listing not in self.whole)

    def want(self, listings: Iterable[Listing]) -> None:
        """Ask for the indexes of these listings."""
        for listing in listings:
            self._pages.setdefault(listing, {})

    def take(self, built: Mapping[Listing, Built]) -> None:
        """Take indexes that were built from the present columns."""
        for listing, index in built.items():
            self._pages.setdefault(listing, {}).update(index.pages)
            self.whole[listing] = index.whole

    @property
    def made(self) -> tuple[Listing, ...]:
        """The listings that have an index of some page."""
        return tuple(listing for listing, pages in tuple(self._pages.items()) if pages)

    def built(
        self, listings: Iterable[Listing], page_of: PageOf, came: Mapping[int, Integers], *, count: int
    ) -> dict[Listing, Built]:
        """The indexes as they will be on `count` pages, after people have come to the rows `came` of some pages.

        `page_of` gives the columns as they will be then. This changes nothing: `put` does so.
        """
        built = {}
        for listing in listings:
            held = dict(self._pages.get(listing, {}))
            new = {
                page: self._page(listing, page, page_of, held=held.get(page), came=came.get(page))
                for page in range(count)
                if page in came or page not in held
            }
            built[listing] = Built(pages=new, whole=InvertedPages([(held | new)[page] for page in range(count)]))
        return built

    def put(self, pages: Iterable[int], built: Mapping[Listing, Built]) -> None:
        """Take the indexes that were `built` for people who have come to `pages`.

        A listing that a query has asked for meanwhile has no index in `built`. Its index of these pages is made again
        when the listing is next asked for.
        """
        for listing, made in tuple(self._pages.items()):  # atomic: a forecast may ask for another one meanwhile
            if listing not in built:
                self.whole.pop(listing, None)
                for page in pages:
                    made.pop(page, None)
        self.take(built)

    def _page(
        self,
        listing: Listing,
        page: int,
        page_of: PageOf,
        *,
        held: Inverted | None = None,
        came: Integers | None = None,
    ) -> Inverted:
        codes = listed_codes(listing, {name: page_of(name, page) for name in listing}, self._codings)
        if held is not None and came is not None and came.size <= INSERTED_MAX:
            return held.with_rows(came, codes[came])
        return Inverted.of(codes, listed_coding(listing, self._codings))

    def _has_room_for(self, pair: Listing) -> bool:
        paired = sum(len(listing) > 1 for listing in self._pages)
        return paired < PAIRED_MAX and listed_coding(pair, self._codings).span < PAIRS_MAX
