"""A dataset in memory: every individual in a slot of their own for ever, columns as unsigned codes by slot.

Slots are given by the caller and never re-packed, so that nobody's place, and nothing that is computed in it, depends
on who else is there (theory: separability). An empty slot holds null codes and nobody is present in it. Per individual:
16 bytes of account, one of presence, the codes, and two to four for each inverted index.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.core.renyi_filter import Accounts
from service.core.units import LIMIT_UNITS_MAX
from service.engine.events import EventTable
from service.engine.indexes import Indexes
from service.engine.inverted import InvertedPages, Listing, is_indexed
from service.engine.pages import PAGE_SLOTS, pages_for, pages_of
from service.query.coding import Coding, coding_of
from service.query.schema import BudgetColumn, CategoryColumn, EventsTable, Schema, Table

__all__ = ["PAGE_SLOTS", "DatasetMemory"]

Codes = NDArray[np.unsignedinteger]
T = TypeVar("T", bound=np.generic)


class DatasetMemory:
    """Records and accounts of one dataset; owned by one writer thread.

    Adding and erasing check everything before they change anything.
    """

    def __init__(self, schema: Schema) -> None:
        """An empty dataset."""
        self.schema = schema
        self.slots_used = 0
        self.accounts = Accounts(spent=np.zeros(0, dtype=np.int64), limit=np.zeros(0, dtype=np.int64))
        self._present = np.zeros(0, dtype=np.bool_)
        self._codings = {name: _codings(table) for name, table in schema.tables.items()}
        self._individuals = {
            name: np.empty(0, dtype=coding.dtype) for name, coding in self._codings[schema.individuals_name].items()
        }
        self._indexed = {
            name: frozenset(column for column, declared in table.columns.items() if is_indexed(declared))
            for name, table in schema.tables.items()
        }
        self._indexes = Indexes(self._codings[schema.individuals_name], self._indexed[schema.individuals_name])
        self._categories = _indexed_categories(schema.tables[schema.individuals_name])
        self._events = {
            name: EventTable(self._codings[name], table.rows_per_individual)
            for name, table in schema.tables.items()
            if isinstance(table, EventsTable)
        }

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which slots (whole pages) hold a record."""
        return self._present

    @property
    def individuals(self) -> Mapping[str, Codes]:
        """The columns of the table of individuals, by slot (whole pages)."""
        return self._individuals

    def admits(self, table: str, listing: Listing) -> bool:
        """Whether rows of a table can be listed by these columns: events by one, individuals by one or some two."""
        if table == self.schema.individuals_name:
            return self._indexes.admit(listing)
        return len(listing) == 1 and listing[0] in self._indexed[table]

    def inverted(self, listings: Iterable[Listing]) -> dict[Listing, InvertedPages]:
        """The inverted indexes of some listings of individuals."""
        return self._indexes.of(listings, self._individuals)

    def index_categories(self) -> None:
        """Index every category column of individuals where it is not indexed: after a load, and after an append.

        So no query waits for an index of categories, whether or not anybody has asked about the column before. Whole
        numbers, pairs and events are indexed when first asked for: they take as much room, and many are never asked.
        """
        if self._present.size:
            self.inverted(self._categories)

    def codings(self, table: str) -> Mapping[str, Coding]:
        """The codings of a table's columns. Raises KeyError for an unknown table."""
        return self._codings[table]

    def events(self, table: str) -> EventTable:
        """A table of events. Raises KeyError if there is none of that name."""
        return self._events[table]

    def grow(self, slots: int) -> None:
        """Make room for slots 0 to `slots` - 1; never shrinks.

        An eighth more than is held already, so that a dataset that grows page by page is not copied for every page.
        """
        self.slots_used = max(self.slots_used, slots)
        held = self._present.size // PAGE_SLOTS
        if pages_for(slots) <= held:
            return
        added = max(pages_for(slots), held + held // 8) * PAGE_SLOTS - self._present.size
        codings = self._codings[self.schema.individuals_name]
        self.accounts = Accounts(spent=_longer(self.accounts.spent, added), limit=_longer(self.accounts.limit, added))
        self._present = _longer(self._present, added)
        self._individuals = {
            name: np.concatenate([codes, np.full(added, codings[name].null_code, dtype=codes.dtype)])
            for name, codes in self._individuals.items()
        }

    def null_codes(self, table: str, count: int) -> dict[str, Codes]:
        """Columns of `count` NULLs: the record of somebody who is known by their events alone."""
        return {
            name: np.full(count, coding.null_code, dtype=coding.dtype) for name, coding in self._codings[table].items()
        }

    def add_individuals(self, slots: NDArray[np.int64], codes: Mapping[str, Codes], limits: NDArray[np.int64]) -> None:
        """Put records (n of them) into empty slots and set the limits (units). What a slot has spent stays spent.

        Raises ValueError for a slot taken or named twice, a limit out of range, and codes that do not fit the columns.
        """
        self._check(self.schema.individuals_name, slots, codes)
        if limits.shape != slots.shape or (
            limits.size > 0 and not 0 <= limits.min() <= limits.max() <= LIMIT_UNITS_MAX
        ):
            raise ValueError("one limit for each slot, between 0 and LIMIT_UNITS_MAX")
        named = np.zeros(int(slots.max(initial=-1)) + 1, dtype=np.bool_)
        named[slots] = True  # as np.unique would tell, and a hundred times as fast
        if np.count_nonzero(named) != slots.size or (slots.size > 0 and self._holds_any(slots)):
            raise ValueError("a slot is taken, or named twice")
        self.grow(named.size)
        for name, column in self._individuals.items():
            column[slots] = codes[name]
        self._indexes.somebody_came(pages_of(slots).tolist())
        self._present[slots] = True
        self.accounts.limit[slots] = limits

    def add_events(self, table: str, slots: NDArray[np.int64], codes: Mapping[str, Codes]) -> None:
        """Add rows (n of them) to the individuals in `slots`, in any order.

        Raises ValueError for codes that do not fit the columns, or rows beyond the table's `rows_per_individual`.
        """
        self._check(table, slots, codes)
        self._events[table].add(slots, codes)
        self.grow(int(slots.max(initial=-1)) + 1)

    def event_counts(self, table: str, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of `slots` (n,): the rows its individual would hold, (n,), if these n rows were added."""
        return self._events[table].counts_with(slots)

    def erase(self, slot: int) -> None:
        """Empty a slot: its record and its events go, its account stays, and nobody else is touched."""
        if not 0 <= slot < self._present.size:
            raise IndexError(f"there is no slot {slot}")
        for name, coding in self._codings[self.schema.individuals_name].items():
            self._individuals[name][slot] = coding.null_code
        self._present[slot] = False
        for events in self._events.values():
            events.erase(slot)

    def _check(self, table: str, slots: NDArray[np.int64], codes: Mapping[str, Codes]) -> None:
        """Refuse what does not fit; NULL is the largest code there is."""
        if slots.dtype != np.int64 or slots.ndim != 1 or (slots.size > 0 and slots.min() < 0):
            raise ValueError("slots must be a row of int64, none negative")
        codings = self._codings[table]
        if codes.keys() != codings.keys():
            raise ValueError(f"the columns must be {', '.join(codings)}")
        for name, column in codes.items():
            if column.shape != slots.shape or column.dtype != codings[name].dtype:
                raise ValueError(f"column {name} must hold one {codings[name].dtype} for each slot")
            if column.size > 0 and int(column.max()) > codings[name].null_code:
                raise ValueError(f"column {name} holds a code that stands for nothing")

    def _holds_any(self, slots: NDArray[np.int64]) -> bool:
        known = slots[slots < self._present.size]
        return bool(self._present[known].any())


def _codings(table: Table) -> dict[str, Coding]:
    return {name: coding_of(column) for name, column in table.columns.items() if not isinstance(column, BudgetColumn)}


def _indexed_categories(table: Table) -> tuple[Listing, ...]:
    return tuple(
        (name,) for name, column in table.columns.items() if isinstance(column, CategoryColumn) and is_indexed(column)
    )


def _longer(array: NDArray[T], added: int) -> NDArray[T]:
    return np.concatenate([array, np.zeros(added, dtype=array.dtype)])
