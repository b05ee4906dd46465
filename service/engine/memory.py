"""A dataset in memory: every individual in a slot of its own for ever, columns as unsigned codes by slot.

The caller gives the slots, and they are never re-packed. So no individual's place, and nothing that is computed in it,
depends on the other individuals (theory: separability). An empty slot holds NULL codes, and no individual is present in
it. An individual takes 17 bytes for its account, ten for counters, eight for a digest of its key and one for its
presence, besides its codes, and two to four for each inverted index.

Records change in two steps. `changed` builds new objects and touches nothing that a query reads, so that it may run on
another thread while queries are answered. `put` then sets the new objects in the place of the old ones, in far less
time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.arrays import Codes, Integers
from service.core.charge import LIMIT_UNITS_MAX
from service.core.renyi_filter import Accounts
from service.engine.events import EventPage, EventTable
from service.engine.inverted import Built, Listing
from service.engine.pages import Counters, pages_for, union
from service.engine.people import People, PeopleChange, SlotCodes
from service.engine.vectors import check_rows
from service.query.columns import Coding, stored_codings
from service.query.division import PAGE_SLOTS
from service.query.schema import EventsTable, Schema
from service.query.vector_columns import VectorCoding, vectors_of

NO_SLOTS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """New objects for the records that a change touches, built from the records at `version`."""

    version: int
    slots_used: int
    people: PeopleChange
    events: Mapping[str, Mapping[int, EventPage]]


class DatasetMemory:
    """Records and accounts of one dataset; owned by one writer thread.

    Adding and erasing check everything before they change anything.
    """

    def __init__(self, schema: Schema, *, slots_max: int = 0) -> None:
        """Begin without individuals, for a dataset or for a shard; `codings` has the codings of each table's columns.

        Room for the accounts of `slots_max` slots is reserved; unused room takes no memory.
        """
        self.schema = schema
        self.slots_used = self.version = 0
        self._room = _no_accounts(pages_for(slots_max) * PAGE_SLOTS)
        self.accounts, self.counters = _no_accounts(0), Counters(pages_for(slots_max) * PAGE_SLOTS)
        tables = schema.tables.items()
        self.codings = stored_codings(schema)
        self.vectors: dict[str, dict[str, VectorCoding]] = {name: vectors_of(table.columns) for name, table in tables}
        name = schema.individuals_name
        self.people = People(schema.tables[name], self.codings[name], self.vectors[name])
        self._prepared: tuple[int, dict[Listing, Built]] = 0, {}
        self.events = {
            name: EventTable(table, self.codings[name])
            for name, table in schema.tables.items()
            if isinstance(table, EventsTable)
        }

    def prepare(self) -> None:
        """Make the indexes and tallies that queries have asked for. May run beside queries, one call at a time.

        The indexes of individuals come into use with `take_prepared`.
        """
        version = self.version
        self._prepared = version, self.people.prepared()
        for table in self.events.values():
            table.prepare()

    def take_prepared(self) -> bool:
        """Take the indexes that `prepare` has made, unless individuals' records have changed meanwhile.

        Return True if no index or tally is missing that a query has asked for. Only the thread that changes the records
        calls this.
        """
        (version, built), self._prepared = self._prepared, (self.version, {})
        if version == self.version and built:
            self.people.indexes.take(built)
        has_all = self.people.present.size == 0 or not self.people.indexes.missing  # there are none of nobody
        return has_all and all(table.is_prepared for table in self.events.values())

    def grow(self, slots: int) -> None:
        """Make room for slots 0 to `slots` - 1; never shrinks."""
        self.slots_used = max(self.slots_used, slots)
        size = self.people.size_for(slots)
        if size > self.people.present.size:
            self.people.grow(size)
            self._grow_accounts(size)

    def null_codes(self, table: str, count: int) -> dict[str, Codes]:
        """Columns of `count` NULLs, such as the record of an individual that is known by its events alone."""
        return null_codes(self.codings[table], self.vectors[table], count)

    def add_individuals(self, slots: Integers, codes: Mapping[str, Codes], limits: Integers) -> None:
        """Put n records into empty `slots` and set their `limits` (units).

        The spent total of a slot stays, and so does its pause.

        Raises ValueError for a slot that is taken or named twice, a limit out of range, and codes that do not fit the
        columns.
        """
        if limits.shape != slots.shape or (
            limits.size > 0 and not 0 <= limits.min() <= limits.max() <= LIMIT_UNITS_MAX
        ):
            raise ValueError("one limit for each slot, between 0 and LIMIT_UNITS_MAX")
        self.put(self.changed(added={self.schema.individuals_name: (slots, codes)}))
        self.accounts.set_limits(slots, limits)

    def add_events(self, table: str, slots: Integers, codes: Mapping[str, Codes]) -> None:
        """Add n rows to the individuals in `slots`, in any order.

        Raises ValueError for codes that do not fit the columns, or for more than `rows_per_individual` rows of an
        individual.
        """
        self.put(self.changed(added={table: (slots, codes)}))

    def erase(self, slot: int) -> None:
        """Empty a slot: its record and its events go, its account stays, and no other slot is touched."""
        if not 0 <= slot < self.people.present.size:
            raise IndexError(f"there is no slot {slot}")
        self.put(self.changed(emptied=np.array([slot])))

    def changed(
        self,
        *,
        emptied: Integers = NO_SLOTS,
        replaced: Mapping[str, Integers] | None = None,
        added: Mapping[str, SlotCodes] | None = None,
    ) -> Change:
        """Build the records as they will be after some rows go and then others are `added`, by table.

        The slots `emptied` (increasing) lose their rows in all tables. The slots `replaced` lose their rows in one
        table, by which they are given. Raises ValueError as `add_individuals` and `add_events` do. Changes nothing, and
        may run beside queries.
        """
        version, tables = self.version, self.codings
        gone = {name: union([emptied, (replaced or {}).get(name, NO_SLOTS)]) for name in tables}
        rows = {name: (added or {}).get(name) or (NO_SLOTS, self.null_codes(name, 0)) for name in tables}
        for name, placed in rows.items():
            self._check(name, *placed)
        people = self.schema.individuals_name
        self._check_empty(rows[people][0], gone[people])
        slots_used = max(int(slots.max(initial=-1)) + 1 for slots, _ in rows.values())
        return Change(
            version=version,
            slots_used=slots_used,
            people=self.people.changed(gone[people], rows[people], slots_used=slots_used),
            events={name: table.changed(gone[name], *rows[name]) for name, table in self.events.items()},
        )

    def make_room(self, slots: int) -> None:
        """Bring the accounts of slots that are not given yet, up to `slots` - 1, into physical memory.

        These accounts are zero before and after. May run beside queries. Only reserved room is brought in; `put` makes
        any further room.
        """
        for values in (self._room.limits, self._room.room, self._room.paused):
            values[self.slots_used : slots] = 0
        self.counters.make_room(slice(self.slots_used, slots))

    def put(self, change: Change) -> None:
        """Set a change in place. Raises ValueError when the records have changed since the change was built."""
        if change.version != self.version:
            raise ValueError("the records have changed since the change was built")
        self.version += 1
        self.people.put(change.people)
        self._grow_accounts(self.people.present.size)
        for name, pages in change.events.items():
            self.events[name].put(pages)
        self.slots_used = max(self.slots_used, change.slots_used)

    def _grow_accounts(self, size: int) -> None:
        """Use accounts for `size` slots, from the reserved room if it is large enough, else from larger room."""
        if size > self._room.size:
            room, added = self._room, _no_accounts(size - self._room.size)
            self._room = Accounts(
                limits=np.concatenate([room.limits, added.limits]),
                room=np.concatenate([room.room, added.room]),
                paused=np.concatenate([room.paused, added.paused]),
            )
        if size > self.accounts.size:
            self.accounts = self._room.first(size)
            self.counters.grow(size)

    def _check_empty(self, slots: Integers, emptied: Integers) -> None:
        named = np.zeros(int(slots.max(initial=-1)) + 1, dtype=np.bool_)
        named[slots] = True  # as np.unique would tell, and a hundred times as fast
        if np.count_nonzero(named) != slots.size or self.people.holds_any(slots, but=emptied):
            raise ValueError("a slot is taken, or named twice")

    def _check(self, table: str, slots: Integers, codes: Mapping[str, Codes]) -> None:
        """Refuse slots and codes that do not fit the table. Raises ValueError. NULL is the largest code there is."""
        if slots.dtype != np.int64 or slots.ndim != 1 or (slots.size > 0 and slots.min() < 0):
            raise ValueError("slots must be a row of int64, none negative")
        codings, vectors = self.codings[table], self.vectors[table]
        if codes.keys() != codings.keys() | vectors.keys():
            raise ValueError(f"the columns must be {', '.join([*codings, *vectors])}")
        for name, coding in codings.items():
            column = codes[name]
            if column.shape != slots.shape or column.dtype != coding.dtype:
                raise ValueError(f"column {name} must hold one {coding.dtype} for each slot")
            if column.size > 0 and int(column.max()) > coding.null_code:
                raise ValueError(f"column {name} holds a code that stands for nothing")
        for name, vector in vectors.items():
            check_rows(name, codes[name], vector, slots.size)


def null_codes(codings: Mapping[str, Coding], vectors: Mapping[str, VectorCoding], count: int) -> dict[str, Codes]:
    """Columns of `count` NULLs, for a table whose columns have these codings."""
    codes: dict[str, Codes] = {
        name: np.full(count, coding.null_code, dtype=coding.dtype) for name, coding in codings.items()
    }
    return codes | {name: coding.missing(count) for name, coding in vectors.items()}


def _no_accounts(size: int) -> Accounts:
    limits, room = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    return Accounts(limits=limits, room=room, paused=np.zeros(size, dtype=np.bool_))
