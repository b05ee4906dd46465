"""The inverted indexes of the table of individuals: which there may be, and those that have been made.

One of every column that can have one, and of a few pairs of columns: a condition on both of them then lists the people
that it concerns and hardly anybody else.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.engine.inverted import PAIRS_MAX, Inverted, InvertedPages, Listing, listed_codes, listed_coding
from service.engine.pages import PAGE_SLOTS, pages_for
from service.query.coding import Coding

PAIRED_MAX: Final = 8
"""So many pairs of columns, the first that are asked for: each takes up to four bytes an individual."""


class Indexes:
    """Made page by page when first asked for, by a query or ahead of it, and again where somebody comes."""

    def __init__(self, codings: Mapping[str, Coding], columns: frozenset[str]) -> None:
        """`columns` are those that can have an index."""
        self._codings, self._columns = codings, columns
        self._made: dict[Listing, InvertedPages] = {}
        self._pages: dict[Listing, dict[int, Inverted]] = {}

    def admit(self, listing: Listing) -> bool:
        """Whether rows can be listed by these columns; the first pairs asked for are given their place by that.

        It depends on what was declared and what was asked, on no data.
        """
        if not self._columns.issuperset(listing):
            return False
        if len(listing) > 1 and listing not in self._pages and self._has_room_for(listing):
            self._pages[listing] = {}
        return len(listing) == 1 or listing in self._pages

    def of(
        self, listings: Iterable[Listing], columns: Mapping[str, NDArray[np.unsignedinteger]]
    ) -> dict[Listing, InvertedPages]:
        """The indexes of some listings over whole `columns` (n,).

        Erasing makes none anew: a list may name a slot whose individual is gone (`service.engine.inverted`).
        """
        return {listing: self._made.get(listing) or self._make(listing, columns) for listing in listings}

    def somebody_came(self, pages: Iterable[int]) -> None:
        """To these pages: their lists must name them."""
        self._made = {}
        for page in pages:
            for made in self._pages.values():
                made.pop(page, None)

    def _has_room_for(self, pair: Listing) -> bool:
        paired = sum(len(listing) > 1 for listing in self._pages)
        return paired < PAIRED_MAX and listed_coding(pair, self._codings).span < PAIRS_MAX

    def _make(self, listing: Listing, columns: Mapping[str, NDArray[np.unsignedinteger]]) -> InvertedPages:
        """Index those pages that are not indexed."""
        pages, coding = self._pages.setdefault(listing, {}), listed_coding(listing, self._codings)
        count = pages_for(columns[listing[0]].size)
        for page in range(count):
            if page not in pages:
                part = slice(page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS)
                codes = listed_codes(listing, {name: columns[name][part] for name in listing}, self._codings)
                pages[page] = Inverted.of(codes, coding)
        self._made[listing] = InvertedPages([pages[page] for page in range(count)])
        return self._made[listing]
