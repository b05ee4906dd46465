"""Rows of events, each of one individual: column arrays per page of slots, sorted by slot.

Adding rows to a page or erasing rows from it rewrites the page, and no other page is touched. So the cost of an append
depends on the rows of the pages that it changes. The new page is built beside the old page and indexed by the same
columns. Putting it in the old page's place then takes no time, and no later query has to index it.

No query makes an index or a tally. A query does without an index that is not made, and the index is then prepared
beside later queries. The same holds for tallies.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Codes, Element, Integers
from service.engine.inverted import Inverted, InvertedPages, Listing, is_indexed, listed_codes, listed_coding
from service.engine.pages import PAGE_BITS
from service.engine.tallies import Tally, tally_of
from service.query.columns import Coding
from service.query.division import PAGE_SLOTS
from service.query.schema import EventsTable

TALLIES_MAX: Final = 8
"""The most tallies of a table: each takes up to 18 bytes an individual."""
SPLICED_MAX: Final = 256
"""The most changed owners for whom a page is copied in stretches; for more, sorting all its rows is quicker."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventPage:
    """The rows (m of them) of one page of slots; never changed, only replaced."""

    owners: NDArray[np.uint16]  # (m,) slot within the page, not decreasing
    columns: dict[str, Codes]  # (m,) each
    _inverted: dict[Listing, InvertedPages] = field(default_factory=dict)
    _tallies: dict[frozenset[str], Tally] = field(default_factory=dict)

    @property
    def made(self) -> tuple[Listing | frozenset[str], ...]:
        """The listings whose indexes are made, and the sets of columns whose tallies are made."""
        return *self._inverted, *self._tallies

    def inverted(self, listings: Iterable[Listing], codings: Mapping[str, Coding]) -> dict[Listing, InvertedPages]:
        """The inverted indexes of some listings, one for every PAGE_SLOTS rows of the page; missing ones are made."""
        for listing in listings:
            if listing not in self._inverted:
                codes, coding = listed_codes(listing, self.columns, codings), listed_coding(listing, codings)
                starts = range(0, max(codes.size, 1), PAGE_SLOTS)
                made = [Inverted.of(codes[start : start + PAGE_SLOTS], coding) for start in starts]
                self._inverted[listing] = InvertedPages(made)
        return {listing: self._inverted[listing] for listing in listings}

    def tally(self, names: frozenset[str], codings: Mapping[str, Coding]) -> Tally:
        """The tally by some columns; a missing tally is made."""
        made = self._tallies.get(names)
        if made is None:
            columns = {name: self.columns[name] for name in sorted(names)}
            made = self._tallies[names] = tally_of(self.owners, columns, codings)
        return made

    def rows_of(self, owners: NDArray[np.uint16]) -> Integers:
        """The number of rows of each of `owners` (k,)."""
        ends = np.searchsorted(self.owners, owners, side="right")
        return ends - np.searchsorted(self.owners, owners, side="left")

    def rows_max(self, owners: NDArray[np.uint16]) -> int:
        """The most rows that any of `owners` (k,) has, or that any owner has where that is quicker to count."""
        few = owners.size <= SPLICED_MAX
        return int((self.rows_of(owners) if few else np.bincount(self.owners)).max(initial=0))

    def changed(
        self, gone: NDArray[np.uint16], owners: NDArray[np.uint16], columns: Mapping[str, Codes]
    ) -> "EventPage":
        """Return this page without the rows of the owners `gone` (increasing), and with further rows (k,) in any order.

        An owner's rows stay in the order in which they came, rows that are kept before rows that are added.
        """
        if gone.size + owners.size > SPLICED_MAX:
            return self._sorted_anew(gone, owners, columns)
        order = np.argsort(owners, kind="stable")
        pieces = self._pieces(np.union1d(gone, owners), gone, owners[order])
        return EventPage(
            owners=_spliced(self.owners, owners[order], pieces),
            columns={name: _spliced(codes, columns[name][order], pieces) for name, codes in self.columns.items()},
        )

    def _sorted_anew(
        self, gone: NDArray[np.uint16], owners: NDArray[np.uint16], columns: Mapping[str, Codes]
    ) -> "EventPage":
        is_gone = np.zeros(PAGE_SLOTS, dtype=np.bool_)
        is_gone[gone] = True
        kept = np.flatnonzero(~is_gone[self.owners]) if gone.size else slice(None)
        all_owners = np.concatenate([self.owners[kept], owners])
        order = np.argsort(all_owners, kind="stable")
        return EventPage(
            owners=all_owners[order],
            columns={name: np.concatenate([codes[kept], columns[name]])[order] for name, codes in self.columns.items()},
        )

    def _pieces(
        self, touched: NDArray[np.uint16], gone: NDArray[np.uint16], owners: NDArray[np.uint16]
    ) -> list[tuple[slice, slice]]:
        """The new page as pairs: a stretch of this page's rows, and the stretch of added rows that follows it."""
        is_gone = np.isin(touched, gone)
        starts, stops = (np.searchsorted(self.owners, touched, side=side) for side in ("left", "right"))
        firsts, lasts = (np.searchsorted(owners, touched, side=side) for side in ("left", "right"))
        kept_to = np.where(is_gone, starts, stops)
        begins = np.concatenate([[0], stops]).tolist()
        pieces = [
            (slice(begin, end), slice(first, last))
            for begin, end, first, last in zip(begins, kept_to.tolist(), firsts.tolist(), lasts.tolist(), strict=False)
        ]
        return [*pieces, (slice(begins[-1], self.owners.size), slice(0, 0))]


class EventTable:
    """One table of events."""

    def __init__(self, table: EventsTable, codings: Mapping[str, Coding]) -> None:
        self._codings = codings
        self._rows_per_individual = table.rows_per_individual
        self._indexed = {(name,) for name, column in table.columns.items() if is_indexed(column)}
        self._pages: dict[int, EventPage] = {}
        self._listed: set[Listing] = set()
        self._tallied: set[frozenset[str]] = set()
        self._ready: set[Listing | frozenset[str]] = set()

    @property
    def rows(self) -> int:
        """The number of rows in the table."""
        return sum(page.owners.size for page in self._pages.values())

    def pages(self) -> Iterator[tuple[int, EventPage]]:
        """The pages that hold or held rows, by increasing number; one empty page if the table never held any rows."""
        for number in sorted(self._pages) or [0]:
            yield number, self._pages.get(number) or self._empty_page()

    def admit(self, listing: Listing) -> bool:
        """Tell whether the index of this listing is made on every page; ask for it, if the listing can have one.

        Events are listed by one column only: an index by a pair of columns would be kept once more for every page of
        rows.
        """
        if listing not in self._indexed:
            return False
        self._listed.add(listing)
        return self._is_ready(listing)

    def admit_tally(self, names: frozenset[str]) -> bool:
        """Tell whether the tally by these columns is made on every page, and ask for it.

        Only the first TALLIES_MAX sets of columns that are asked for get a tally.
        """
        if len(self._tallied) < TALLIES_MAX:
            self._tallied.add(names)
        return self._is_ready(names)

    @property
    def is_prepared(self) -> bool:
        """Tell whether all indexes and tallies that were asked for are made."""
        return all(map(self._is_ready, tuple(self._listed))) and all(map(self._is_ready, tuple(self._tallied)))

    def prepare(self) -> None:
        """Make the indexes and tallies that were asked for, on pages as they are now. May run beside queries."""
        for page in tuple(self._pages.values()):
            self._prepare(page)

    def _prepare(self, page: EventPage) -> None:
        page.inverted(tuple(self._listed), self._codings)  # atomic: a query may ask for another one meanwhile
        for names in tuple(self._tallied):
            page.tally(names, self._codings)

    def _is_ready(self, wanted: Listing | frozenset[str]) -> bool:
        if wanted not in self._ready and all(wanted in page.made for page in self._pages.values()):
            self._ready.add(wanted)
        return wanted in self._ready

    def counts_with(self, slots: Integers) -> Integers:
        """The number of rows that each of `slots` (n,) would hold if these n rows were added, (n,)."""
        distinct, places, added = np.unique(slots, return_inverse=True, return_counts=True)
        held = np.zeros(distinct.size, dtype=np.int64)
        for number, part in _by_page(distinct):
            if number in self._pages:
                held[part] = self._pages[number].rows_of(_within_page(distinct[part]))
        return (held + added)[places]

    def changed(self, gone: Integers, slots: Integers, columns: Mapping[str, Codes]) -> dict[int, EventPage]:
        """Build the pages that change when the rows of the slots `gone` (increasing) go and further rows come.

        Changes nothing. The further rows are of the individuals in `slots` (n,), in any order, with one column (n,) for
        each declared column. Raises ValueError when an individual would hold more than `rows_per_individual` rows:
        every query's overflow bound rests on that number.
        """
        order = np.argsort(slots >> PAGE_BITS, kind="stable")
        ordered = slots[order]
        added = dict(_by_page(ordered))
        emptied = {number: part for number, part in _by_page(gone) if number in self._pages}
        nothing, pages = slice(0, 0), {}
        for number in sorted(added.keys() | emptied.keys()):
            part, gone_owners = added.get(number, nothing), _within_page(gone[emptied.get(number, nothing)])
            page = self._changed_page(number, gone_owners, _within_page(ordered[part]), order[part], columns)
            if page is not None:
                pages[number] = page
        return pages

    def put(self, pages: Mapping[int, EventPage]) -> None:
        """Put pages that `changed` has built in the place of the old ones."""
        self._pages.update(pages)
        self._ready.clear()

    def _changed_page(
        self,
        number: int,
        gone: NDArray[np.uint16],
        owners: NDArray[np.uint16],
        rows: Integers,
        columns: Mapping[str, Codes],
    ) -> EventPage | None:
        """The new page; None where the old one stays as it is."""
        page = self._pages.get(number) or self._empty_page()
        if owners.size == 0 and not page.rows_of(gone).any():
            return None
        new = page.changed(gone, owners, {name: columns[name][rows] for name in self._codings})
        if owners.size > 0 and new.rows_max(owners) > self._rows_per_individual:
            raise ValueError("an individual would hold more than rows_per_individual rows")
        self._prepare(new)
        return new

    def _empty_page(self) -> EventPage:
        return EventPage(
            owners=np.empty(0, dtype=np.uint16),
            columns={name: np.empty(0, dtype=coding.dtype) for name, coding in self._codings.items()},
        )


def _spliced(old: NDArray[Element], new: NDArray[Element], pieces: Iterable[tuple[slice, slice]]) -> NDArray[Element]:
    return np.concatenate([part for kept, added in pieces for part in (old[kept], new[added])])


def _by_page(slots: Integers) -> Iterator[tuple[int, slice]]:
    """For each run of `slots` on one page, the page's number and the run's place; `slots` are sorted by page."""
    pages = slots >> PAGE_BITS
    starts = np.flatnonzero(np.diff(pages, prepend=-1))
    for start, stop in zip(starts, [*starts, slots.size][1:], strict=True):
        yield int(pages[start]), slice(int(start), int(stop))


def _within_page(slots: Integers) -> NDArray[np.uint16]:
    return (slots % PAGE_SLOTS).astype(np.uint16)
