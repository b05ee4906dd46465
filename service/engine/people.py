"""The table of individuals in memory: columns by slot, whose slot holds a record, and the inverted indexes.

A change is built beside the table and then set in place. Few records on existing pages are written into the columns.
For many records, or where the columns must grow, whole new columns are built, and exchanged by reference. So setting
them in place takes no longer for a million records than for a thousand. Vectors are always exchanged.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from service.arrays import Codes, Integers, Mask
from service.engine.inverted import Built, Indexes, Listing, is_indexed
from service.engine.pages import PAGE_BITS, pages_for, pages_of
from service.engine.vectors import Replaced, VectorBlocks
from service.query.columns import Coding
from service.query.division import PAGE_SLOTS
from service.query.schema import CategoryColumn, Table
from service.query.vector_columns import VectorCoding

Columns = dict[str, Codes]
SlotCodes = tuple[Integers, Mapping[str, Codes]]
"""Slots (n,) and the codes of each column (n,)."""

WRITTEN_MAX: Final = 1024
"""The most records that are written into the columns in place, in below 10 us a column; more exchange the columns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeopleChange:
    """A change of the table: either all columns anew (`whole`) or some records to be written, and new indexes."""

    emptied: Integers
    people: SlotCodes
    whole: tuple[Mask, Columns] | None
    came_to: tuple[int, ...]
    indexes: Mapping[Listing, Built]
    vectors: Mapping[str, Replaced]


class People:
    """The records of individuals, one to a slot: `columns` by slot, and `present`, which tells the slots with a record.

    `columns` and `present` are of whole pages. `vectors` are separate columns, in blocks.
    """

    def __init__(
        self, table: Table, codings: Mapping[str, Coding], vectors: Mapping[str, VectorCoding] | None = None
    ) -> None:
        self._codings = codings
        self.present: Mask = np.zeros(0, dtype=np.bool_)
        self.columns: Columns = {name: np.empty(0, dtype=coding.dtype) for name, coding in codings.items()}
        indexed = {name: column for name, column in table.columns.items() if is_indexed(column)}
        self.vectors = {name: VectorBlocks(coding) for name, coding in (vectors or {}).items()}
        self.indexes = Indexes(codings, frozenset(indexed))
        self._categories: tuple[Listing, ...] = tuple(
            (name,) for name, column in indexed.items() if isinstance(column, CategoryColumn)
        )

    def size_for(self, slots: int) -> int:
        """The number of slots that the columns will have once there is room for `slots`.

        Columns that have to grow become an eighth longer or more, so that a dataset that grows page by page is not
        copied for every page.
        """
        held, needed = self.present.size // PAGE_SLOTS, pages_for(slots)
        return (held if needed <= held else max(needed, held + held // 8)) * PAGE_SLOTS

    def grow(self, size: int) -> None:
        """Make the columns `size` slots long; the new slots are empty."""
        self.present, self.columns = self._copied(size)

    def index_categories(self) -> None:
        """Index every category column where it is not indexed: after a load.

        Whole numbers, pairs and events are indexed when first asked for: they take as much room, and many never are.
        """
        self.indexes.want(self._categories)
        self.indexes.take(self.prepared())

    def prepared(self) -> dict[Listing, Built]:
        """The indexes that were asked for and are missing, built from the present columns. Changes nothing."""
        columns = self.columns
        count = self.present.size // PAGE_SLOTS
        return self.indexes.built(self.indexes.missing, _page_of(columns), {}, count=count) if count else {}

    def holds_any(self, slots: Integers, *, but: Integers) -> bool:
        """Tell whether any of `slots`, except those in `but`, holds a record."""
        known = slots[slots < self.present.size]
        taken = known[self.present[known]]
        if taken.size == 0:
            return False
        is_other = np.ones(self.present.size, dtype=np.bool_)
        is_other[but[but < self.present.size]] = False
        return bool(is_other[taken].any())

    def changed(self, emptied: Integers, people: SlotCodes, *, slots_used: int) -> PeopleChange:
        """Build the table as it will be after some slots are emptied and `people` have records. Changes nothing."""
        slots, codes = people
        emptied = emptied[emptied < self.present.size]  # beyond, every slot is empty
        size = self.size_for(slots_used)
        is_small = size == self.present.size and slots.size + emptied.size <= WRITTEN_MAX
        whole = None if is_small else self._copied(size)
        if whole is not None:
            self._write(*whole, emptied, people)
        order = np.argsort(slots, kind="stable")
        came = {page: slots[order[part]] & (PAGE_SLOTS - 1) for page, part in _parts(slots[order])}
        page_of = _page_of(whole[1]) if whole is not None else self._as_written(emptied, slots, codes, order)
        listings = dict.fromkeys([*self.indexes.made, *self._categories]) if came else {}
        return PeopleChange(
            emptied=emptied,
            people=people,
            whole=whole,
            came_to=tuple(came),
            indexes=self.indexes.built(listings, page_of, came, count=size // PAGE_SLOTS),
            vectors={name: blocks.changed(emptied, slots, codes[name]) for name, blocks in self.vectors.items()},
        )

    def put(self, change: PeopleChange) -> None:
        """Set a change in place. The table must be as it was when the change was built."""
        if change.whole is None:
            self._write(self.present, self.columns, change.emptied, change.people)
        else:
            self.present, self.columns = change.whole
        self.indexes.put(change.came_to, change.indexes)
        for name, blocks in change.vectors.items():
            self.vectors[name].put(blocks)

    def _copied(self, size: int) -> tuple[Mask, Columns]:
        added = size - self.present.size
        columns = {
            name: np.concatenate([codes, np.full(added, self._codings[name].null_code, dtype=codes.dtype)])
            for name, codes in self.columns.items()
        }
        return np.concatenate([self.present, np.zeros(added, dtype=np.bool_)]), columns

    def _write(self, present: Mask, columns: Columns, emptied: Integers, people: SlotCodes) -> None:
        slots, codes = people
        place = as_slice(slots)
        for name, column in columns.items():
            column[emptied] = self._codings[name].null_code
            column[place] = codes[name]
        present[emptied] = False
        present[place] = True

    def _as_written(
        self, emptied: Integers, slots: Integers, codes: Mapping[str, Codes], order: Integers
    ) -> Callable[[str, int], Codes]:
        """The columns of a page as they will be after records are written; `order` sorts the records by slot."""
        slots, codes = slots[order], {name: codes[name][order] for name in self.columns}

        def page_of(name: str, page: int) -> Codes:
            page_codes = self.columns[name][page * PAGE_SLOTS : (page + 1) * PAGE_SLOTS].copy()
            gone, came = (
                slice(*np.searchsorted(s, [page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS])) for s in (emptied, slots)
            )
            page_codes[emptied[gone] % PAGE_SLOTS] = self._codings[name].null_code
            page_codes[slots[came] % PAGE_SLOTS] = codes[name][came]
            return page_codes

        return page_of


def _page_of(columns: Columns) -> Callable[[str, int], Codes]:
    return lambda name, page: columns[name][page * PAGE_SLOTS : (page + 1) * PAGE_SLOTS]


def _parts(slots: Integers) -> list[tuple[int, slice]]:
    """For each run of `slots` (increasing) on one page, the page's number and the run's place."""
    pages = pages_of(slots)
    edges = np.searchsorted(slots >> PAGE_BITS, [*pages.tolist(), np.iinfo(np.int64).max])
    return [
        (int(page), slice(int(start), int(stop))) for page, (start, stop) in zip(pages, pairwise(edges), strict=True)
    ]


def as_slice(slots: Integers) -> Integers | slice:
    """Consecutive slots as a slice, by which numpy copies without looking at each slot; other slots as they are."""
    if slots.size > 0 and int(slots[-1]) - int(slots[0]) + 1 == slots.size and bool((np.diff(slots) == 1).all()):
        return slice(int(slots[0]), int(slots[-1]) + 1)
    return slots
