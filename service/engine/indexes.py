"""The inverted indexes of the table of individuals: which there may be, and those that have been made.

One of every column that can have one, and of a few pairs of columns: a condition on both of them then lists the people
that it concerns and few others. A change of records brings new indexes of its pages along, built beside the
old ones, so that no query has to index a page because an individual has joined.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.engine.inverted import PAIRS_MAX, Inverted, InvertedPages, Listing, listed_codes, listed_coding
from service.query.coding import Coding

PAIRED_MAX: Final = 8
"""So many pairs of columns, the first that are asked for: each takes up to four bytes an individual."""
INSERTED_MAX: Final = 16
"""So many new individuals of a page are inserted into its lists; for more, sorting the page is as quick."""

Columns = Mapping[str, NDArray[np.unsignedinteger]]
PageOf = Callable[[str, int], NDArray[np.unsignedinteger]]
"""The codes of a column on one page."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """The new index of a listing: of the pages that have changed, and of all pages together."""

    pages: Mapping[int, Inverted]
    whole: InvertedPages


class Indexes:
    """Made page by page beside the queries, once one has asked or ahead of it; a change brings those of its pages."""

    def __init__(self, codings: Mapping[str, Coding], columns: frozenset[str]) -> None:
        """`columns` are those that can have an index."""
        self._codings, self._columns = codings, columns
        self._made: dict[Listing, InvertedPages] = {}
        self._pages: dict[Listing, dict[int, Inverted]] = {}

    def admit(self, listing: Listing) -> bool:
        """Whether rows are listed by these columns now; from then on they are wanted, if they can be listed.

        The first pairs asked for are given their place by that: it depends on what was declared and asked, on no data.
        """
        if listing in self._made:
            return True
        if self._columns.issuperset(listing) and (len(listing) == 1 or self._has_room_for(listing)):
            self._pages.setdefault(listing, {})
        return False

    def of(self, listings: Iterable[Listing]) -> dict[Listing, InvertedPages]:
        """The indexes of some listings that are made.

        Erasing makes none anew: a list may name a slot whose individual is gone (`service.engine.inverted`).
        """
        return {listing: self._made[listing] for listing in listings}

    @property
    def missing(self) -> tuple[Listing, ...]:
        """The listings that are wanted, and whose indexes are not made."""
        return tuple(listing for listing in tuple(self._pages) if listing not in self._made)

    def want(self, listings: Iterable[Listing]) -> None:
        """From now on have the indexes of these listings."""
        for listing in listings:
            self._pages.setdefault(listing, {})

    def take(self, built: Mapping[Listing, Built]) -> None:
        """Take indexes that were built of the columns as they are."""
        for listing, index in built.items():
            self._pages.setdefault(listing, {}).update(index.pages)
            self._made[listing] = index.whole

    @property
    def made(self) -> tuple[Listing, ...]:
        """The listings whose indexes are made."""
        return tuple(listing for listing, pages in tuple(self._pages.items()) if pages)

    def built(
        self, listings: Iterable[Listing], page_of: PageOf, came: Mapping[int, NDArray[np.int64]], *, count: int
    ) -> dict[Listing, Built]:
        """The indexes as they will be on `count` pages, once people have come to some rows of some pages, `came`.

        `page_of` gives the columns as they will be. Nothing is changed here: `put` does so.
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
        """People have come to `pages`: take the indexes that were built for that.

        Another listing, which a query has asked for since, is made again on those pages when it is next asked for.
        """
        for listing, made in tuple(self._pages.items()):  # atomic: a forecast may ask for another one meanwhile
            if listing not in built:
                self._made.pop(listing, None)
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
        came: NDArray[np.int64] | None = None,
    ) -> Inverted:
        codes = listed_codes(listing, {name: page_of(name, page) for name in listing}, self._codings)
        if held is not None and came is not None and came.size <= INSERTED_MAX:
            return held.with_rows(came, codes[came])
        return Inverted.of(codes, listed_coding(listing, self._codings))

    def _has_room_for(self, pair: Listing) -> bool:
        paired = sum(len(listing) > 1 for listing in self._pages)
        return paired < PAIRED_MAX and listed_coding(pair, self._codings).span < PAIRS_MAX
