"""Rows of events, each of one individual: column arrays per page of slots, sorted by slot.

A page is rewritten when rows are added to it or erased from it, and no other page is touched: an append costs what its
pages hold.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from service.engine.inverted import Inverted, InvertedPages, Listing, listed_codes, listed_coding
from service.engine.pages import PAGE_BITS, PAGE_SLOTS
from service.query.coding import Coding

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventPage:
    """The rows (m of them) of one page of slots; never changed, only replaced."""

    owners: NDArray[np.uint16]  # (m,) slot within the page, not decreasing
    columns: dict[str, Codes]  # (m,) each
    _inverted: dict[Listing, InvertedPages] = field(default_factory=dict)

    def inverted(self, listings: Iterable[Listing], codings: Mapping[str, Coding]) -> dict[Listing, InvertedPages]:
        """The inverted indexes of some listings, over row numbers; made when they are first asked for."""
        for listing in listings:
            if listing not in self._inverted:
                codes = listed_codes(listing, self.columns, codings)
                self._inverted[listing] = InvertedPages([Inverted.of(codes, listed_coding(listing, codings))])
        return {listing: self._inverted[listing] for listing in listings}

    def rows_of(self, owners: NDArray[np.uint16]) -> NDArray[np.int64]:
        """How many rows each of `owners` (k,) has."""
        ends = np.searchsorted(self.owners, owners, side="right")
        return ends - np.searchsorted(self.owners, owners, side="left")

    def with_rows(self, owners: NDArray[np.uint16], columns: Mapping[str, Codes]) -> "EventPage":
        """This page and further rows, in any order."""
        return _sorted_page(
            np.concatenate([self.owners, owners]),
            {name: np.concatenate([codes, columns[name]]) for name, codes in self.columns.items()},
        )

    def without(self, owner: int) -> "EventPage":
        """This page without one individual's rows."""
        start, stop = (int(np.searchsorted(self.owners, np.uint16(owner), side=side)) for side in ("left", "right"))
        rows = slice(start, stop)
        return EventPage(
            owners=np.delete(self.owners, rows),
            columns={name: np.delete(codes, rows) for name, codes in self.columns.items()},
        )


class EventTable:
    """One table of events."""

    def __init__(self, codings: Mapping[str, Coding], rows_per_individual: int) -> None:
        self._codings = codings
        self._rows_per_individual = rows_per_individual
        self._pages: dict[int, EventPage] = {}

    @property
    def rows(self) -> int:
        """How many rows the table holds."""
        return sum(page.owners.size for page in self._pages.values())

    def pages(self) -> Iterator[tuple[int, EventPage]]:
        """The pages that hold rows, by increasing number."""
        for number in sorted(self._pages):
            yield number, self._pages[number]

    def counts_with(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of `slots` (n,): the rows it would hold, (n,), if these n rows were added."""
        distinct, places, added = np.unique(slots, return_inverse=True, return_counts=True)
        held = np.zeros(distinct.size, dtype=np.int64)
        for number, part in _by_page(distinct):
            if number in self._pages:
                held[part] = self._pages[number].rows_of(_within_page(distinct[part]))
        return (held + added)[places]

    def add(self, slots: NDArray[np.int64], columns: Mapping[str, Codes]) -> None:
        """Add rows: `slots` (n,) in any order, a column (n,) for each declared one.

        Raises ValueError, and adds nothing, when somebody would hold more than `rows_per_individual` rows: every
        query's overflow bound rests on that number.
        """
        if slots.size > 0 and int(self.counts_with(slots).max()) > self._rows_per_individual:
            raise ValueError("an individual would hold more than rows_per_individual rows")
        order = np.argsort(slots >> PAGE_BITS, kind="stable")
        sorted_slots = slots[order]
        for number, part in _by_page(sorted_slots):
            rows = order[part]
            page = self._pages.get(number) or self._empty_page()
            owners = _within_page(sorted_slots[part])
            self._pages[number] = page.with_rows(owners, {name: columns[name][rows] for name in self._codings})

    def erase(self, slot: int) -> None:
        """Drop one individual's rows."""
        number = slot >> PAGE_BITS
        if number in self._pages:
            self._pages[number] = self._pages[number].without(slot % PAGE_SLOTS)

    def _empty_page(self) -> EventPage:
        return EventPage(
            owners=np.empty(0, dtype=np.uint16),
            columns={name: np.empty(0, dtype=coding.dtype) for name, coding in self._codings.items()},
        )


def _sorted_page(owners: NDArray[np.uint16], columns: Mapping[str, Codes]) -> EventPage:
    order = np.argsort(owners, kind="stable")
    return EventPage(owners=owners[order], columns={name: codes[order] for name, codes in columns.items()})


def _by_page(slots: NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
    """Page number and place of each run of equal pages; `slots` come in order of their pages."""
    pages = slots >> PAGE_BITS
    starts = np.flatnonzero(np.diff(pages, prepend=-1))
    for start, stop in zip(starts, [*starts, slots.size][1:], strict=True):
        yield int(pages[start]), slice(int(start), int(stop))


def _within_page(slots: NDArray[np.int64]) -> NDArray[np.uint16]:
    return (slots % PAGE_SLOTS).astype(np.uint16)
