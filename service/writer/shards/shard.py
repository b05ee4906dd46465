"""A shard of a dataset: the individuals of some pages, what they add to answers, and what the answers charge them.

An undivided dataset has one shard. A shard keeps no log and writes nothing: charges exist once the writer's commit is
durable. Until then they are tentative, and those of a refused batch are taken back. Arguments and results have the
slots of the dataset; within a shard the slots are numbered without gaps (`service.query.division`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from service.accounting.monitor import coefficients
from service.arrays import Codes, Integers, Mask, compress, kept
from service.core.release import Block, Participants, Release, answer
from service.core.renyi_filter import Touched
from service.engine.evaluate import contributions
from service.engine.memory import NO_SLOTS, Change, DatasetMemory
from service.engine.pages import PAGE_BITS, PageTotals, pages_of, slots_on
from service.engine.people import SlotCodes
from service.engine.reduction import reduced
from service.engine.ticks import NO_TICKS, TickCounts
from service.failpoints import reach
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Measure, Piece, may_be_whole, pieces_of, prices_of, stretches_of, within
from service.ledger.model.rows import AccountColumns, DatasetRecord, SlotsInUse, StoredPage
from service.ledger.ports.store import HeadMoved
from service.query.division import PAGE_SLOTS, UNDIVIDED, ShardPlace
from service.query.plan import Plan

SLOTS_RESERVED_MAX: Final = 2**22
"""The slots for whose accounts memory is reserved. With more slots, the accounts are copied each time they grow."""
_NO_CHANGE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """A query as shards answer it: its plan, the sequence, id and salt of its entry, and how many slots are handed out.

    `noise` (dimension,) int64 is drawn once for all shards. It is added to the sum, or to the one number to which the
    query reduces the sum. `tick` is the number of the monitor's tick; 0 if the query is no tick.
    """

    plan: Plan
    seq: int
    query_id: UUID
    salt: bytes
    slots: int
    noise: Integers
    tick: int = 0

    def reduced(self, total: Integers) -> Integers:
        """The answer (1,) of a reduced query, from the exact sum (k,) of its vectors.

        For any other query, the sum itself.
        """
        return total if self.plan.reduce is None else self.noise + reduced(total, self.plan.reduce)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShardRelease:
    """The part that some shards have in a release and in its ledger entry.

    One shard of several has `blocks` while the entry may still be one piece over all slots, and otherwise its own
    `pieces`. Its `values` are the exact sum if the query reduces the sum.
    """

    values: Integers
    measure: Measure
    blocks: tuple[Participants, ...]
    pieces: tuple[Piece, ...]
    charged_count: int
    left_out_count: int
    charged_units: int


class Shard:
    """The shard at a place: records, indexes, accounts, counters and page sequences. One caller changes it at a time.

    It lives in this process and is never lost. Changes of records are built beside the queries; a call for such work
    names the load that it belongs to, and raises HeadMoved if the shard was loaded again.
    """

    count, restarts, lost = 1, 0, frozenset[int]()

    def __init__(self, record: DatasetRecord, place: ShardPlace = UNDIVIDED) -> None:
        """Make an empty shard."""
        self.place = place
        self._change: tuple[int, Change | None] = _NO_CHANGE, None
        self.load(record, slots=0, number=0)

    def load(self, record: DatasetRecord, *, slots: int, number: int) -> None:
        """Empty the shard before a load, with room for its part of `slots` slots.

        `number` is the number of the load.
        """
        own = self.place.slots(record.capacity)
        self.memory = DatasetMemory(record.schema, slots_max=min(own, SLOTS_RESERVED_MAX))
        self._touches_paused, self._drops = record.rule == "skip", record.rule == "drop"
        self._load_number, self._has_prepared = number, False
        self._ticks: TickCounts | None = None
        if (monitor := record.monitor) is not None:
            self._ticks = TickCounts(coefficients(monitor.ticks), monitor.threshold_units)
        self.page_seqs: Integers = np.zeros(0, dtype=np.int64)  # up to where a page's totals are right
        self._seqs_before = self.page_seqs
        self.grow(slots)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def add_rows(self, table: str, slots: Integers, codes: Mapping[str, Codes]) -> None:
        """Load n rows of a table. Raises ValueError for rows that do not fit."""
        own = self._own(slots)
        if table == self.memory.schema.individuals_name:
            self.memory.add_individuals(own, codes, self.memory.accounts.limits[own])
        else:
            self.memory.add_events(table, own, codes)

    def index_categories(self) -> None:
        """Make the indexes that a load ends with."""
        self.memory.people.index_categories()

    # Accounts as the ledger gives them

    def reset_spent(self) -> None:
        """Set every account to its state before the first entry."""
        accounts, counters = self.memory.accounts, self.memory.counters
        accounts.set_spent(slice(None), 0)
        counters.set(slice(0, counters.size), 0, 0)
        if self._ticks is not None:
            self._ticks.reset()
        self.page_seqs[:] = 0

    def set_page(self, page: StoredPage) -> None:
        """Set the totals of a page as they are stored."""
        number = page.number // self.place.count
        slots, totals = slots_on(number), page.totals
        self.memory.accounts.set_spent(slots, totals.spent)
        self.memory.counters.set(slots, totals.charged, totals.left_out)
        if self._ticks is not None:
            self._ticks.set(slots, totals.ticks)
        self.page_seqs[number] = page.seq

    def replay(self, entry: LedgerEntry) -> None:
        """Debit an entry on those pages that do not have it yet.

        Raises FilterViolation, IndexError beyond the pages.
        """
        pages = []
        misses = self.page_seqs < entry.seq  # a page stored after the checkpoint has later entries in it
        for block, charges in self._blocks(entry):
            touched, active = _missing(block, misses)
            self.memory.accounts.debit(touched, active, charges)
            if entry.is_counted:
                self.memory.counters.count(touched, active)
            if self._ticks is not None and entry.tick:
                self._ticks.mark(touched, active, entry.tick)
            pages.append(_pages(touched))
        for each in pages:
            self.page_seqs[each] = entry.seq

    def pages_since(self, seq: int) -> dict[int, PageTotals]:
        """Copies of the pages that an entry after `seq` has touched, by their numbers in the dataset."""
        changed = np.flatnonzero(self.page_seqs > seq).tolist()
        return {self.place.page_of_dataset(page): self._copied(slots_on(page)) for page in changed}

    # Queries

    def answer(self, turns: Sequence[Turn]) -> list[ShardRelease]:
        """Do the paper's step for one query after the other: charge, filter, sum, debit.

        Each query sees the debits of the queries before it.
        """
        self._seqs_before = self.page_seqs.copy()
        memory, released = self.memory, []
        for turn in turns:
            is_reduced = turn.plan.reduce is not None
            if turn.tick and self._ticks is not None:
                release = self._ticks.release(memory, turn.tick, turn.noise)
            else:
                release = answer(
                    self.contributions(turn.plan),
                    memory.accounts,
                    turn.plan.terms,
                    noise=np.zeros(turn.plan.layout.dimension, dtype=np.int64) if is_reduced else turn.noise,
                    dropped=memory.counters.have_been_left_out if self._drops else None,
                )
            for block in release.blocks:
                if not turn.tick:
                    memory.counters.count(block.touched, block.active)
                self.page_seqs[_pages(block.touched)] = turn.seq
            reach("summed")
            measure, most = measure_of(release), turn.plan.scale.charged_squared_steps
            values = release.values
            blocks: tuple[Participants, ...] = ()
            if self.place.count > 1:
                blocks, pieces = self._told(turn, release, measure)
            else:
                values = turn.reduced(values) if is_reduced else values
                pieces = pieces_of(release.blocks, measure, amount_max=most, slots=turn.slots, salt=turn.salt)
            released.append(
                ShardRelease(
                    values=values,
                    measure=measure,
                    blocks=blocks,
                    pieces=pieces,
                    charged_count=release.charged_count,
                    left_out_count=release.left_out_count,
                    charged_units=release.charged_units,
                )
            )
        return released

    def answer_part(self, turns: Sequence[Turn]) -> tuple[list[ShardRelease], bool]:
        """Answer at one shard of several, without noise; also tell whether no index is missing."""
        plain = [replace(turn, noise=np.zeros(turn.plan.dimension, dtype=np.int64)) for turn in turns]
        self.take_prepared()
        return self.answer(plain), self.take_prepared()

    def contributions(self, plan: Plan) -> Iterator[Block]:
        """Every touched individual's integer vector and squared norm, block by block, the shard's slots increasing.

        It marks failpoints within the step of the core, which is pure. The core has charged, filtered and added a block
        when it asks for the next one.
        """
        for block in contributions(plan, self.memory, touches_paused=self._touches_paused):
            reach("charges")
            yield block
            reach("active-set")

    def take_back(self, entries: Sequence[LedgerEntry]) -> None:
        """Credit again what the queries of the last batch have charged, by the pieces of their entries."""
        for entry in entries:
            for block, charges in self._blocks(entry):
                self.memory.accounts.take_back(block.touched, block.active, charges)
                if entry.is_counted:
                    self.memory.counters.take_back(block.touched, block.active)
                if self._ticks is not None and entry.tick:
                    self._ticks.take_back(block.touched, entry.tick)
        self.page_seqs[:] = self._seqs_before

    def take_prepared(self) -> bool:
        """Take the indexes made beside the queries. Returns whether no index that a query has asked for is missing."""
        memory = self.memory
        if not self._has_prepared and not memory.people.indexes.missing and not memory.events:
            return True
        self._has_prepared = False
        return memory.take_prepared()

    # Changes

    def put(
        self, change: int, *, slots_used: int, slots: Integers | slice = NO_SLOTS, limits: Integers = NO_SLOTS
    ) -> None:
        """Install the records of `change`, which were built while queries ran, and set the limits (n,) of new `slots`.

        Raises RuntimeError if another change was built since.
        """
        number, built = self._change
        if number != change or built is None:
            raise RuntimeError("another change of the records was built since")
        self._change = _NO_CHANGE, None
        self.memory.put(built)
        self.grow(slots_used)
        self.memory.accounts.set_limits(self._own(slots) if isinstance(slots, np.ndarray) else slots, limits)

    def grow(self, slots: int) -> None:
        """Make room for the shard's part of `slots` slots."""
        self.memory.grow(self.place.slots(slots))
        added = self.memory.accounts.size // PAGE_SLOTS - self.page_seqs.size
        self.page_seqs = np.concatenate([self.page_seqs, np.zeros(added, dtype=np.int64)])
        if self._ticks is not None:
            self._ticks.grow(self.memory.accounts.size)

    def set_accounts(self, stored: SlotsInUse) -> None:
        """Set limits and pauses as they are stored."""
        slots, accounts = self._own(stored.slots), self.memory.accounts
        accounts.set_limits(slots, stored.limits)
        accounts.paused[slots] = stored.paused

    def set_limit(self, slot: int, units: int) -> None:
        """Lower a limit that is durable already."""
        self.memory.accounts.set_limits(self._own(np.array([slot])), units)

    def set_paused(self, slot: int, *, paused: bool) -> None:
        """Begin or end a pause that is durable already."""
        self.memory.accounts.paused[self._own(np.array([slot]))] = paused

    # Beside the queries

    def accounts(self, slots: Integers | slice) -> AccountColumns:
        """Copies of the accounts of some slots (n,), and which of these slots hold an individual."""
        own = self._own(slots) if isinstance(slots, np.ndarray) else slots
        accounts, counters = self.memory.accounts, self.memory.counters
        return AccountColumns(
            accounts.limits[own].copy(),
            accounts.spent_of(own),
            accounts.paused[own].copy(),
            counters.charged_of(own),
            counters.left_out_of(own),
            self.memory.people.present[own].copy(),
        )

    def changed(
        self,
        load: int,
        number: int,
        *,
        emptied: Integers = NO_SLOTS,
        replaced: Mapping[str, Integers] | None = None,
        added: Mapping[str, SlotCodes] | None = None,
    ) -> int:
        """Build a change of the records for `put` (`DatasetMemory.changed`), and keep it under its number."""
        memory = self._as_loaded(load)
        built = memory.changed(
            emptied=self._own(emptied),
            replaced={table: self._own(slots) for table, slots in (replaced or {}).items()},
            added={table: (self._own(slots), codes) for table, (slots, codes) in (added or {}).items()},
        )
        self._change = number, built
        return number

    def make_room(self, load: int, slots: int) -> None:
        """Bring accounts into physical memory for slots below `slots` that are not handed out yet."""
        self._as_loaded(load).make_room(self.place.slots(slots))

    def rows_held(self, load: int, table: str) -> list[int]:
        """The number of rows in a table of events, at each shard."""
        return [self._as_loaded(load).events[table].rows]

    def event_counts(self, load: int, table: str, slots: Integers) -> Integers:
        """The number of rows that each individual in `slots` (n,) would hold if these n rows were added, (n,)."""
        return self._as_loaded(load).events[table].counts_with(self._own(slots))

    def charges(self, load: int, plan: Plan) -> tuple[Integers, Integers]:
        """The slots (k,) that a query would touch now, and what it would charge each of them, (k,) units."""
        memory = self._as_loaded(load)
        slots, units = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for block in contributions(plan, memory, touches_paused=self._touches_paused):
            marks, norms = block.touched.marks, block.norms_squared
            slots.append(self.place.of_dataset(block.touched.slots()))
            touched = np.ascontiguousarray(norms if marks is None else kept(marks, norms))
            units.append(plan.scale.law.charges(touched))
        return np.concatenate(slots), np.concatenate(units)

    def prepare(self) -> None:
        """Make the indexes and tallies that queries have asked for."""
        self.memory.prepare()
        self._has_prepared = True

    def _as_loaded(self, load: int) -> DatasetMemory:
        memory = self.memory
        if load != self._load_number:
            raise HeadMoved
        return memory

    def _own(self, slots: Integers) -> Integers:
        return slots if self.place.count == 1 else self.place.own(slots)

    def _copied(self, slots: slice) -> PageTotals:
        accounts, counters = self.memory.accounts, self.memory.counters
        charged, left_out = counters.charged_of(slots), counters.left_out_of(slots)
        ticks = NO_TICKS if self._ticks is None else self._ticks.of(slots)
        return PageTotals(spent=accounts.spent_of(slots), charged=charged, left_out=left_out, ticks=ticks)

    def _told(
        self, turn: Turn, release: Release, measure: Measure
    ) -> tuple[tuple[Participants, ...], tuple[Piece, ...]]:
        """The blocks of one shard of several while the entry may still be one piece, and otherwise its pieces."""
        count, most = release.charged_count + release.left_out_count, turn.plan.scale.charged_squared_steps
        if may_be_whole(count, measure, amount_max=most, slots=turn.slots):
            slots = [self.place.of_dataset(block.touched.slots()) for block in release.blocks]
            return (listed(slots, release.blocks),) if slots else (), ()
        blocks = tuple(self._of_dataset(release.blocks))
        return (), stretches_of(blocks, measure, amount_max=most, slots=turn.slots, salt=turn.salt)

    def _of_dataset(self, blocks: Iterable[Participants]) -> Iterator[Participants]:
        """The blocks divided by page, with the slots of the dataset."""
        for block in blocks:
            for page, part in _by_page(block):
                yield _moved(part, (self.place.page_of_dataset(page) - page) * PAGE_SLOTS)

    def _blocks(self, entry: LedgerEntry) -> Iterator[tuple[Participants, Integers]]:
        """The blocks of an entry on this shard's pages, with the shard's slots, and their charges by place."""
        if self.place.count == 1:
            yield from entry.blocks()
            return
        for piece in entry.pieces:
            measure, whole = piece.block()
            for page, part in _by_page(whole):
                if page % self.place.count == self.place.number:
                    amounts = part.norms_squared.astype(np.int64, copy=False)
                    moved = _moved(part, (page // self.place.count - page) * PAGE_SLOTS)
                    yield moved, prices_of(measure, amounts, entry.law)


def listed(slots: Sequence[Integers], blocks: Sequence[Participants]) -> Participants:
    """The individuals of one or more blocks as one list, in the order of their `slots`, (k,) for each block."""
    marks = [np.ones(b.touched.size, np.bool_) if b.touched.marks is None else b.touched.marks for b in blocks]
    order = np.argsort(touched := np.concatenate(slots), kind="stable")

    def together(columns: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([compress(each, here) for each, here in zip(columns, marks, strict=True)])[order]

    norms_before = [block.norms_before for block in blocks if block.norms_before is not None]
    return Participants(
        touched=Touched(touched[order]),
        active=together(block.active for block in blocks),
        norms_squared=together(block.norms_squared for block in blocks),
        count=touched.size,
        norms_before=together(norms_before) if norms_before else None,
    )


def measure_of(release: Release) -> Measure:
    """The kind of amounts in the pieces of a release."""
    if any(block.norms_before is not None for block in release.blocks):
        return Measure.TWO_NORMS
    return Measure.ONE_NORM if release.one_norm else Measure.NORMS


def _missing(block: Participants, misses: Mask) -> tuple[Touched, Mask]:
    """The individuals of a block, and the active ones, on pages without the block's entry.

    Raises IndexError beyond the pages.
    """
    if block.touched.end > PAGE_SLOTS * misses.size:
        raise IndexError("a ledger entry touches a slot without an individual")
    if misses.all():
        return block.touched, block.active
    index = block.touched.index
    slots = np.arange(index.start, index.stop) if isinstance(index, slice) else index
    is_missing = misses[slots >> PAGE_BITS]
    return Touched(index, block.touched.among(is_missing)), np.logical_and(block.active, is_missing)


def _pages(touched: Touched) -> Integers:
    """The pages that have a touched slot. A block of consecutive slots lies on one page."""
    if isinstance(touched.index, slice):
        return np.full(min(touched.count, 1), touched.begin >> PAGE_BITS)
    return pages_of(touched.slots())


def _by_page(block: Participants) -> Iterator[tuple[int, Participants]]:
    """The parts of a block, one for each page on which it has places."""
    begin, end = block.touched.begin, block.touched.end
    for page in range(begin >> PAGE_BITS, (max(end, 1) - 1 >> PAGE_BITS) + 1):
        part = within(block, page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS)
        if part.touched.size > 0:
            yield page, part


def _moved(block: Participants, by: int) -> Participants:
    """The block with `by` added to its slots."""
    index = block.touched.index
    moved: Any = slice(index.start + by, index.stop + by) if isinstance(index, slice) else index + by
    return replace(block, touched=Touched(moved, block.touched.marks))
