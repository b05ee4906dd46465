"""Several shards as one: calls are divided by slot, answers are added up, and pieces are put in order.

All results equal those of one undivided shard, bit by bit: sums are of integers, and each page is on one shard. When a
shard is lost, every call raises ShardLost until the shard has been started again and loaded.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from service.arrays import Codes, Integers
from service.engine.memory import NO_SLOTS
from service.engine.pages import PageTotals
from service.engine.people import SlotCodes
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import STRETCH_SLOTS, WHOLE, Piece, may_be_whole, pieces_of, stretches_of
from service.ledger.model.rows import AccountColumns, DatasetRecord, SlotsInUse, StoredPage
from service.ledger.ports.shards import Lane, ShardChannel, ShardLost
from service.query.division import PAGE_SLOTS, ShardPlace, at_each_shard, rows_at_fullest
from service.query.plan import Plan
from service.query.schema import IndividualsTable
from service.writer.shards.shard import Shard, ShardRelease, Turn, listed

log = logging.getLogger("sparing.shards")
RESTARTS_APART_S: Final = 0.5
RESTARTS_APART_MAX_S: Final = 60.0
"""The longest time between two starts of a shard, in s. The time doubles each time that a shard is lost again."""

_Call = tuple[tuple[object, ...], dict[str, object]]


class DividedShards:
    """The shards of one dataset behind their channels. Each lane has only one caller at a time."""

    def __init__(self, channels: Sequence[ShardChannel], clock: Callable[[], float] = time.monotonic) -> None:
        """Take the channels to empty shards, in the order of their numbers. `clock` is in seconds."""
        self._clock = clock
        self.count = len(channels)
        self._channels = dict(enumerate(channels))
        self.lost: set[int] = set()
        self._empty = set(self._channels)  # those that hold nothing yet
        self.restarts, self.on_lost = 0, _nothing
        self._is_prepared = True
        self._restarted_at: dict[int, tuple[float, float]] = {}  # when, and how long a restart before must be ago

    def close(self) -> None:
        """End all shards."""
        for channel in self._channels.values():
            channel.close()

    def restarted(self) -> "DividedShards":
        """The lost shards alone, started again and empty, so that the caller can load them. Raises ShardLost."""
        for number in sorted(self.lost):
            now, (at, apart_s) = self._clock(), self._restarted_at.get(number, (0.0, 0.0))
            if now - at < apart_s:
                self.on_lost()
                raise ShardLost
            is_again = now - at < 2 * RESTARTS_APART_MAX_S
            apart_s = min(2 * apart_s, RESTARTS_APART_MAX_S) if is_again and apart_s else RESTARTS_APART_S
            self._restarted_at[number] = now, apart_s
            self._channels[number].restart()
            self.restarts += 1
        part = DividedShards([], self._clock)
        part.count, part._channels = self.count, {number: self._channels[number] for number in self.lost}
        self.lost.clear()
        self._empty.update(part._channels)
        # One that is lost while it is loaded is lost here too, and one that is loaded is not empty here.
        part.lost, part._empty, part.on_lost = self.lost, self._empty, self.on_lost
        return part

    def load(self, record: DatasetRecord, *, slots: int, number: int) -> None:
        """Empty all shards before a load (`Shard.load`)."""
        self._all("queries", "load", record, slots=slots, number=number)
        self._empty.difference_update(self._channels)

    def add_rows(self, table: str, slots: Integers, codes: Mapping[str, Codes]) -> None:
        """Load n rows of a table, each at its own shard."""
        self._some(self._channels, "queries", "add_rows", lambda place: ((table, *_on(place, slots, codes)), {}))

    def index_categories(self) -> None:
        """Make the indexes, at the end of a load."""
        self._all("queries", "index_categories")

    def reset_spent(self) -> None:
        """Set every account to its state before the first entry."""
        self._all("queries", "reset_spent")

    def set_page(self, page: StoredPage) -> None:
        """Set the totals of a page as they are stored."""
        self._at(page.number % self.count, "queries", "set_page", page)

    def replay(self, entry: LedgerEntry) -> None:
        """Debit an entry on those pages that do not have it yet.

        Raises FilterViolation, IndexError beyond the pages.
        """
        self._some(self._channels, "queries", "replay", lambda place: ((_for(place, entry),), {}))

    def pages_since(self, seq: int) -> dict[int, PageTotals]:
        """Copies of the pages that an entry after `seq` has touched."""
        parts: list[dict[int, PageTotals]] = self._all("queries", "pages_since", seq)
        return dict(sorted((number, page) for part in parts for number, page in part.items()))

    def answer(self, turns: Sequence[Turn]) -> list[ShardRelease]:
        """Answer queries one after the other, in one round trip to all shards.

        The noise is added here, not at the shards.
        """
        plain = [replace(turn, noise=np.zeros(1, dtype=np.int64)) for turn in turns]
        parts = self._all("queries", "answer_part", plain)
        self._is_prepared = all(is_prepared for _, is_prepared in parts)
        return [
            _added_up(turn, released)
            for turn, *released in zip(turns, *(released for released, _ in parts), strict=True)
        ]

    def take_back(self, entries: Sequence[LedgerEntry]) -> None:
        """Credit again what the queries of the last batch have charged."""
        self._some(
            self._channels, "queries", "take_back", lambda place: (([_for(place, entry) for entry in entries],), {})
        )

    def take_prepared(self) -> bool:
        """Tell whether no index was missing in the last answers. Each shard itself takes the indexes made for it."""
        return self._is_prepared or bool(self.lost)

    def put(
        self, change: int, *, slots_used: int, slots: Integers | slice = NO_SLOTS, limits: Integers = NO_SLOTS
    ) -> None:
        """Put records in place that were built beside the queries, and set the limits (n,) of new `slots`."""
        listed = np.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots

        def at(place: ShardPlace) -> _Call:
            here = place.holds(listed)
            return (change,), {"slots_used": slots_used, "slots": listed[here], "limits": limits[here]}

        self._some(self._channels, "queries", "put", at)

    def grow(self, slots: int) -> None:
        """Make room for `slots` slots."""
        self._all("queries", "grow", slots)

    def set_accounts(self, stored: SlotsInUse) -> None:
        """Set limits and pauses as they are stored."""

        def at(place: ShardPlace) -> _Call:
            here = place.holds(stored.slots)
            columns = (stored.slots[here], stored.limits[here], stored.present[here], stored.paused[here])
            slots, limits, present, paused = columns
            return (SlotsInUse(slots=slots, limits=limits, present=present, paused=paused),), {}

        self._some(self._channels, "queries", "set_accounts", at)

    def set_limit(self, slot: int, units: int) -> None:
        """Lower a limit that is durable already."""
        self._at(self._number_of(slot), "queries", "set_limit", slot, units)

    def set_paused(self, slot: int, *, paused: bool) -> None:
        """Begin or end a pause that is durable already."""
        self._at(self._number_of(slot), "queries", "set_paused", slot, paused=paused)

    def accounts(self, slots: Integers | slice) -> AccountColumns:
        """Copies of the accounts of some slots (n,), and which of these slots hold an individual."""
        listed = np.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots
        marks = [ShardPlace(number, self.count).holds(listed) for number in range(self.count)]
        asked = [number for number, here in enumerate(marks) if here.any() or (listed.size == 0 and number == 0)]
        parts = self._some(asked, "accounts", "accounts", lambda place: ((listed[marks[place.number]],), {}))
        columns = []
        for each in zip(*parts, strict=True):
            column = np.empty(listed.size, dtype=each[0].dtype)
            for number, part in zip(asked, each, strict=True):
                column[marks[number]] = part
            columns.append(column)
        return AccountColumns(*columns)

    def changed(
        self,
        load: int,
        number: int,
        *,
        emptied: Integers = NO_SLOTS,
        replaced: Mapping[str, Integers] | None = None,
        added: Mapping[str, SlotCodes] | None = None,
    ) -> int:
        """Build a change of the records at every shard, under the same number."""

        def at(place: ShardPlace) -> _Call:
            return (load, number), {
                "emptied": emptied[place.holds(emptied)],
                "replaced": {table: slots[place.holds(slots)] for table, slots in (replaced or {}).items()},
                "added": {table: _on(place, slots, codes) for table, (slots, codes) in (added or {}).items()},
            }

        self._some(self._channels, "records", "changed", at)
        return number

    def make_room(self, load: int, slots: int) -> None:
        """Bring accounts into physical memory for slots below `slots` that are not handed out yet."""
        self._all("records", "make_room", load, slots)

    def rows_held(self, load: int, table: str) -> list[int]:
        """The number of rows in an event table, at each shard."""
        parts: list[list[int]] = self._all("records", "rows_held", load, table)
        return [rows for (rows,) in parts]

    def event_counts(self, load: int, table: str, slots: Integers) -> Integers:
        """The number of rows that each individual in `slots` (n,) would have with these n rows added, (n,)."""
        marks = [ShardPlace(number, self.count).holds(slots) for number in self._channels]
        parts = self._some(
            self._channels, "records", "event_counts", lambda place: ((load, table, slots[marks[place.number]]), {})
        )
        counts = np.empty(slots.size, dtype=np.int64)
        for here, part in zip(marks, parts, strict=True):
            counts[here] = part
        return counts

    def charges(self, load: int, plan: Plan) -> tuple[Integers, Integers]:
        """The slots (k,) that a query would touch now, and what it would charge each of them, (k,) units."""
        parts = self._all("records", "charges", load, plan)
        slots, units = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(slots, kind="stable")
        return slots[order], units[order]

    def prepare(self) -> None:
        """Make the indexes and tallies that queries have asked for."""
        self._is_prepared = True  # until an answer finds another one missing
        self._all("records", "prepare")

    def _number_of(self, slot: int) -> int:
        return slot // PAGE_SLOTS % self.count

    def _at(self, number: int, lane: Lane, call: str, *arguments: object, **named: object) -> None:
        """Have one shard do a call, if it is among these shards."""
        if number in self._channels:
            self._some([number], lane, call, lambda _: (arguments, named))

    def _all(self, lane: Lane, call: str, *arguments: object, **named: object) -> list[Any]:
        return self._some(self._channels, lane, call, lambda _: (arguments, named))

    def _some(
        self, numbers: Sequence[int] | Mapping[int, Any], lane: Lane, call: str, at: Callable[[ShardPlace], _Call]
    ) -> list[Any]:
        """Have some shards do a call at the same time. Once all have replied, raises the first of their errors."""
        if self.lost or (self._empty and call != "load"):
            raise ShardLost
        waiting: list[tuple[int, Callable[[], Any]]] = []
        errors: list[Exception] = []
        results = []
        calls = [(number, *at(ShardPlace(number, self.count))) for number in numbers]
        for number, arguments, named in calls:
            try:
                waiting.append((number, self._channels[number].begin(lane, call, *arguments, **named)))
            except ShardLost:
                self.lost.add(number)
            except Exception as error:  # noqa: BLE001 - the lanes of the others are free only after their replies
                errors.append(error)
        for number, result in waiting:
            try:
                results.append(result())
            except ShardLost:
                self.lost.add(number)
            except Exception as error:  # noqa: BLE001 - the others' replies are waited for first
                errors.append(error)
        if self.lost:
            self.on_lost()
            raise ShardLost
        if errors:
            raise errors[0]
        return results


Shards = Shard | DividedShards
"""The arrays of a dataset, in one shard or divided by page."""


def warn_where_uneven(record: DatasetRecord, table: str, slots: Integers, shards: int) -> None:
    """Log that a shard has more rows than it has room for, given the slots (n,) of all rows of a table.

    In an upload, such rows would be refused. The log line has no number of rows.
    """
    declared = record.schema.tables[table]
    if shards == 1 or isinstance(declared, IndividualsTable):  # slots are handed out evenly
        return
    if at_each_shard(slots, shards).max() > rows_at_fullest(declared, record.capacity, shards):
        log.warning(
            "dataset %s, table %s: one of the %d shards has more rows than its part of rows_capacity allows, and"
            " answers may be later than priced: lower SPARING_SHARDS, or declare a larger rows_capacity",
            record.name,
            table,
            shards,
            extra={"dataset": record.name},
        )


def _nothing() -> None:
    """Do nothing: nobody waits to hear of a lost shard."""


def _on(place: ShardPlace, slots: Integers, codes: Mapping[str, Codes]) -> SlotCodes:
    """The rows that belong to individuals of one shard."""
    here = place.holds(slots)
    return slots[here], {name: column[here] for name, column in codes.items()}


def _for(place: ShardPlace, entry: LedgerEntry) -> LedgerEntry:
    """The entry with only those pieces that have slots of one shard."""
    return replace(entry, pieces=tuple(_pieces_on(place, entry.pieces)), values=b"", canonical=b"")


def _pieces_on(place: ShardPlace, pieces: Sequence[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if piece.number == WHOLE or piece.number * STRETCH_SLOTS // PAGE_SLOTS % place.count == place.number:
            yield piece


def _added_up(turn: Turn, released: Sequence[ShardRelease]) -> ShardRelease:
    """The release of all shards together, with the noise of its turn."""
    is_reduced = turn.plan.reduce is not None
    values = np.zeros(turn.plan.layout.dimension, dtype=np.int64) if is_reduced else turn.noise
    for part in released:
        values += part.values
    values = turn.reduced(values) if is_reduced else values
    measure, most = max(part.measure for part in released), turn.plan.scale.charged_squared_steps
    charged, left_out = (
        sum(each) for each in zip(*((r.charged_count, r.left_out_count) for r in released), strict=True)
    )
    plain = [block for part in released for block in part.blocks]
    blocks = [listed([block.touched.slots() for block in plain], plain)] if plain else []
    if may_be_whole(charged + left_out, measure, amount_max=most, slots=turn.slots):
        pieces = pieces_of(blocks, measure, amount_max=most, slots=turn.slots, salt=turn.salt)
    else:
        few = stretches_of(blocks, measure, amount_max=most, slots=turn.slots, salt=turn.salt)
        pieces = tuple(
            sorted((*few, *(piece for part in released for piece in part.pieces)), key=lambda piece: piece.number)
        )
    return ShardRelease(
        values=values,
        measure=measure,
        blocks=(),
        pieces=pieces,
        charged_count=charged,
        left_out_count=left_out,
        charged_units=sum(part.charged_units for part in released),
    )
