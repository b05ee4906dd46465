"""One dataset as this replica holds it: people in memory, spent totals, and the ledger sequence they stand at.

The ledger is the truth. Memory is the sum of the pages and the entries since; where it may be wrong it is read again,
never repaired.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.arrays import Codes, Integers
from service.core.release import Block, Participants, Release
from service.core.renyi_filter import Touched
from service.engine.evaluate import contributions
from service.engine.memory import NO_SLOTS, Change, DatasetMemory, Placed
from service.engine.pages import PAGE_BITS, PAGE_SLOTS, PageTotals, pages_of, slots_on
from service.query.plan import Plan
from service.workflows.model.ledger_entry import LedgerEntry
from service.workflows.model.rows import AccountColumns, Checkpoint, DatasetRecord, Head, OwnAccount
from service.workflows.model.views import Rule
from service.workflows.ports.store import CommitRejected, HeadMoved
from service.workflows.ports.transaction import Transaction
from service.workflows.replication.act_changes import Changes, changes_since
from service.workflows.replication.exchange import Tail

_NEVER = -1
SLOTS_RESERVED_MAX: Final = 2**22
"""The accounts of so many slots never have to be copied when individuals join; beyond that, each time they grow."""
TAIL_BYTES_MAX: Final = 2**26
TAIL_BYTES_FOR_A_SLOT: Final = 64
"""The most bytes of pieces since a checkpoint: replaying them takes about as long as loading the dataset does."""


class DatasetState:
    """The dataset's memory at ledger sequence `seq` and data version `data_version`; owned by one writer thread."""

    def __init__(self, record: DatasetRecord, tail: Tail | None = None) -> None:
        """The first catch-up loads everything; `tail` may hold some entries already."""
        self.record = record
        self.memory = DatasetMemory(record.schema)
        self.seq = _NEVER
        self.data_version = _NEVER
        self._hash = b""  # of the entry at `seq`; empty while it is not known
        self._journal_hash = b""  # of the act that `data_version` counts to
        self._fence = _NEVER
        self._tail = tail or Tail()
        self._checkpoint_seq = 0  # the database's, when it was last looked at
        self._copied_seq = 0  # the last checkpoint's that was copied from here
        self._tail_bytes = 0  # since then
        self._page_seqs: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # up to where a page's totals are right
        self._tentative: list[LedgerEntry] = []  # applied, and not durable yet
        self._staged: list[Callable[[], None]] = []

    @property
    def position(self) -> tuple[int, int, int] | None:
        """Fence, sequence and data version; None while memory has to be read again. Readable from any thread."""
        fence, seq, data_version = self._fence, self.seq, self.data_version
        return None if _NEVER in (fence, seq, data_version) else (fence, seq, data_version)

    def is_at(self, head: Head) -> bool:
        """Whether memory stands exactly at `head` and is valid."""
        stands_at = self._fence, self.seq, self.data_version
        return stands_at == (head.fence, head.seq, head.data_version) and self._hash == head.hash

    def has_come_to(self, head: Head) -> bool:
        """Whether memory has caught up with `head` and is valid."""
        if self.position is None:
            return False
        fence, seq, data_version = self.position
        is_later = fence == head.fence and seq >= head.seq and data_version >= head.data_version
        return is_later and (seq > head.seq or self._hash == head.hash)

    def catch_up(self, transaction: Transaction, *, reads_records: bool = True) -> None:
        """Bring memory to the transaction's head: nothing to do, what has changed since, or a fresh load.

        With `reads_records` False, raises HeadMoved where records would have to be read.
        """
        head = transaction.head
        if self._fence != head.fence or self.seq > head.seq:  # reconciled: this is not the ledger that memory came from
            self.invalidate_all()
            self._fence = head.fence
        if self._checkpoint_seq > head.checkpoint_seq:  # nor are these the pages; which have changed is not known
            self.invalidate()
        if (self.data_version, self._journal_hash) != (head.data_version, head.journal_hash):
            self._follow(transaction, reads_records=reads_records)
        if self.seq == _NEVER:
            self._load_spent(transaction)
        if self.seq < head.seq:
            for entry in self._tail.between(self.seq, self._hash, head) or transaction.entries(after=self.seq):
                self.apply(entry)
        self._hash = head.hash
        self._checkpoint_seq = head.checkpoint_seq

    def after_commit(self, change: Callable[[], None]) -> None:
        """Change memory once the act that is under way is durable."""
        self._staged.append(change)

    def drop_staged(self) -> None:
        """Forget the staged changes of an act that has ended without becoming durable."""
        self._staged.clear()

    def acted(self, head: Head) -> None:
        """The acts up to `head` are durable: apply their staged changes."""
        for change in self._staged:
            change()
        if self.data_version != _NEVER:
            self._stand_at(head)

    def apply(self, entry: LedgerEntry) -> None:
        """Debit the entry that follows on what memory holds. Raises FilterViolation when it breaks the filter.

        Raises RuntimeError for an entry out of order, and for a rewritten one: what that charged stands in the pages.
        The spent totals are read again after any other error, since some blocks may have been debited.
        """
        if entry.seq != self.seq + 1:
            raise RuntimeError(f"ledger entry {entry.seq} does not follow {self.seq}")
        if entry.is_rewritten:
            raise RuntimeError(f"ledger entry {entry.seq} was rewritten, and no page has it")
        try:
            self._replay(entry)
        except Exception:
            self.invalidate()
            raise

    def _replay(self, entry: LedgerEntry) -> None:
        pages = []
        misses = self._page_seqs < entry.seq  # a page stored after the checkpoint has later entries in it
        for block, charges in entry.blocks():
            touched, active = self._missing(block, misses)
            self.memory.accounts.debit(touched, active, charges)
            if entry.kind == "query":
                self.memory.counters.count(touched, active)
            pages.append(_pages(touched))
        for each in pages:
            self._page_seqs[each] = entry.seq
        self._tail_bytes += sum(len(piece.content) for piece in entry.pieces)
        self.seq, self._hash = entry.seq, entry.hash

    def _missing(self, block: Participants, misses: NDArray[np.bool_]) -> tuple[Touched, NDArray[np.bool_]]:
        """Those of a block, and those active, on pages that miss its entry. Raises IndexError beyond the pages."""
        if block.touched.end > PAGE_SLOTS * misses.size:
            raise IndexError("a ledger entry touches a slot without an individual")
        if misses.all():
            return block.touched, block.active
        index = block.touched.index
        slots = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        is_missing = misses[slots >> PAGE_BITS]
        return Touched(index, block.touched.among(is_missing)), np.logical_and(block.active, is_missing)

    def released(self, release: Release, entry: LedgerEntry) -> None:
        """Follow a query's entry whose release has debited the accounts: count it for every touched individual."""
        for block in release.blocks:
            self.memory.counters.count(block.touched, block.active)
            self._page_seqs[_pages(block.touched)] = entry.seq
        self._tentative.append(entry)
        self._tail_bytes += sum(len(piece.content) for piece in entry.pieces)
        self.seq, self._hash = entry.seq, entry.hash

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Releases of a block that ends in HeadMoved or CommitRejected are taken back: nothing of it is durable."""
        stood = self.seq, self._hash, self._tail_bytes
        page_seqs = self._page_seqs.copy()
        self._tentative = []
        try:
            yield
        except (CommitRejected, HeadMoved):
            self._take_back()
            self.seq, self._hash, self._tail_bytes = stood
            self._page_seqs[:] = page_seqs
            raise
        finally:
            self._tentative = []

    def _take_back(self) -> None:
        """Credit what the tentative entries charge, by their own pieces."""
        for entry in self._tentative:
            for block, charges in entry.blocks():
                self.memory.accounts.take_back(block.touched, block.active, charges)
                self.memory.counters.take_back(block.touched, block.active)

    def invalidate(self) -> None:
        """The spent totals may be wrong (a transaction did not end well): read them again before the next use."""
        self.seq = _NEVER

    def invalidate_all(self) -> None:
        """The records may be wrong too."""
        self.seq = self.data_version = _NEVER

    def is_tail_long(self, *, entries: int) -> bool:
        """Whether a restart would have to replay `entries` entries, or pieces that take as long as a load."""
        if self.seq == _NEVER:
            return False
        bytes_max = max(TAIL_BYTES_MAX, TAIL_BYTES_FOR_A_SLOT * self.memory.slots_used)
        tail = self.seq - max(self._checkpoint_seq, self._copied_seq)
        return tail >= entries or (tail > 0 and self._tail_bytes >= bytes_max)

    def checkpoint(self) -> Checkpoint:
        """Copies of the pages that changed since the last checkpoint, as of now, which must be what is durable."""
        changed = np.flatnonzero(self._page_seqs > self._checkpoint_seq).tolist()
        pages = {page: self._copied(slots_on(page)) for page in changed}
        self._copied_seq, self._tail_bytes = self.seq, 0
        return Checkpoint(since=self._checkpoint_seq, seq=self.seq, hash=self._hash, pages=pages)

    def grown(self, slots: int) -> None:
        """Make room for the accounts of `slots` slots."""
        self.memory.grow(slots)
        pages = self.memory.accounts.size // PAGE_SLOTS
        self._page_seqs = np.concatenate([self._page_seqs, np.zeros(pages - self._page_seqs.size, dtype=np.int64)])

    def put(self, change: Change, slots_used: int, slots: NDArray[np.int64] | slice, limits: NDArray[np.int64]) -> None:
        """Set records in place that were built outside the writer, and the limits (n,) of new `slots`."""
        self.memory.put(change)
        self.grown(slots_used)
        self.memory.accounts.set_limits(slots, limits)

    @property
    def pages(self) -> int:
        """The number of pages that the accounts fill."""
        return self.memory.people.present.size // PAGE_SLOTS

    def records(self) -> "RecordsView":
        """The records as they are now, for work outside the writer."""
        return RecordsView(self.memory, self.record.rule)

    def holds(self, records: "RecordsView") -> bool:
        """Whether the records are still those of a view."""
        return records.is_of(self.memory)

    def room_of(self, slots: Integers) -> Integers:
        """Units that `slots` (n,) have left, (n,): negative where the limit is below the spent total."""
        return self.memory.accounts.room[slots]

    def contributions(self, plan: Plan) -> Iterator[Block]:
        """Every touched individual's integer vector and squared norm under `plan`, block by block, slots increasing."""
        return contributions(plan, self.memory, touches_paused=self.record.rule == "skip")

    def account(self, slot: int) -> OwnAccount:
        """The account of one slot."""
        return OwnAccount(*(column.item() for column in self._columns(slice(slot, slot + 1))))

    def copy_accounts(self, slots: slice | Integers) -> AccountColumns:
        """Copies of the accounts of some slots, and which of these hold an individual."""
        return AccountColumns(*(column.copy() for column in (*self._columns(slots), self.memory.people.present[slots])))

    def set_limit(self, slot: int, units: int) -> None:
        """Lower a limit in memory, where it is durable already."""
        self.memory.accounts.set_limits(slot, units)

    def set_paused(self, slot: int, *, paused: bool) -> None:
        """Begin or end a pause in memory, where that is durable already."""
        self.memory.accounts.paused[slot] = paused

    def _columns(self, slots: slice | Integers) -> tuple[NDArray[Any], ...]:
        """The columns of the accounts of some slots, in the order of OwnAccount."""
        accounts, counters = self.memory.accounts, self.memory.counters
        return (
            accounts.limits[slots],
            accounts.spent_of(slots),
            accounts.paused[slots],
            counters.charged_of(slots),
            counters.left_out_of(slots),
        )

    def put_records(self, change: Change) -> None:
        """Set records in place that were built outside the writer; no account changes."""
        self.memory.put(change)

    def _copied(self, slots: slice) -> PageTotals:
        accounts, counters = self.memory.accounts, self.memory.counters
        charged, left_out = counters.charged_of(slots), counters.left_out_of(slots)
        return PageTotals(spent=accounts.spent_of(slots), charged=charged, left_out=left_out)

    def _stand_at(self, head: Head) -> None:
        self.data_version, self._journal_hash = head.data_version, head.journal_hash

    def _follow(self, transaction: Transaction, *, reads_records: bool) -> None:
        """Bring the records to the head's version: by what the acts since have changed, or by reading all of them."""
        version, journal_hash, schema = self.data_version, self._journal_hash, self.record.schema
        changes = None
        if version != _NEVER:
            changes = changes_since(transaction, version=version, journal_hash=journal_hash, schema=schema)
        if not reads_records and (changes is None or changes.touched):
            raise HeadMoved
        if changes is None:
            self._load_records(transaction)
        else:
            if changes.rewritten_seq > self.seq:  # pages have what those entries do not tell any more
                self.invalidate()
            self._apply_changes(changes, slots_used=transaction.head.slots)
        self._stand_at(transaction.head)

    def _apply_changes(self, changes: Changes, *, slots_used: int) -> None:
        """Change all of it, or nothing where the records do not fit."""
        if changes.emptied.size > 0 or changes.touched:
            self.put_records(self.memory.changed(emptied=changes.emptied, replaced=changes.touched, added=changes.rows))
        self.grown(slots_used)
        for slot, limit in changes.limits.items():
            self.set_limit(slot, limit)
        for slot, paused in changes.paused.items():
            self.set_paused(slot, paused=paused)
        joined, accounts = changes.accounts, self.memory.accounts
        accounts.set_limits(joined.slots, joined.limits)
        accounts.paused[joined.slots] = joined.paused

    def _load_records(self, transaction: Transaction) -> None:
        self.record = transaction.registration()
        self.invalidate_all()  # until the last row has come: a load cut short must not pass for the version held before
        self.memory = DatasetMemory(self.record.schema, slots_max=min(self.record.capacity, SLOTS_RESERVED_MAX))
        self._page_seqs = np.zeros(0, dtype=np.int64)
        self.grown(transaction.head.slots)
        accounts = transaction.individuals()
        self.memory.accounts.set_limits(accounts.slots, accounts.limits)
        self.memory.accounts.paused[accounts.slots] = accounts.paused
        for name, table in self.record.schema.tables.items():
            slots, codes = transaction.records(name)
            if table.kind == "individuals":
                self.memory.add_individuals(slots, codes, self.memory.accounts.limits[slots])
            else:
                self.memory.add_events(name, slots, codes)
        self.memory.index_categories()

    def _load_spent(self, transaction: Transaction) -> None:
        """State = pages + the entries since (which the caller applies)."""
        accounts, counters = self.memory.accounts, self.memory.counters
        accounts.set_spent(slice(None), 0)
        counters.set(slice(0, counters.size), 0, 0)
        self._page_seqs[:] = 0
        for page in transaction.pages():
            slots = slots_on(page.number)
            accounts.set_spent(slots, page.totals.spent)
            counters.set(slots, page.totals.charged, page.totals.left_out)
            self._page_seqs[page.number] = page.seq
        self._copied_seq = self._tail_bytes = 0
        self._hash = b""
        self._checkpoint_seq = self.seq = transaction.head.checkpoint_seq


class RecordsView:
    """The records of a dataset at one version, for work outside the writer, during which they may change.

    `DatasetState.holds` tells whether they have; a change that is built here can then no longer be put in place.
    """

    def __init__(self, memory: DatasetMemory, rule: Rule) -> None:
        self._memory, self._version, self._rule = memory, memory.version, rule

    def is_of(self, memory: DatasetMemory) -> bool:
        """Whether a memory holds these records, unchanged."""
        return memory is self._memory and memory.version == self._version

    def changed(
        self,
        *,
        emptied: Integers = NO_SLOTS,
        replaced: Mapping[str, Integers] | None = None,
        added: Mapping[str, Placed] | None = None,
    ) -> Change:
        """A change of the records for `DatasetState.put` (`DatasetMemory.changed`). Raises ValueError."""
        return self._memory.changed(emptied=emptied, replaced=replaced, added=added)

    def make_room(self, slots: int) -> None:
        """Have the accounts of slots not given yet, up to `slots` - 1, in physical memory."""
        self._memory.make_room(slots)

    def null_codes(self, table: str, count: int) -> dict[str, Codes]:
        """Columns of `count` NULLs of a table."""
        return self._memory.null_codes(table, count)

    def rows_held(self, table: str) -> int:
        """The number of rows in a table of events."""
        return self._memory.events(table).rows

    def event_counts(self, table: str, slots: Integers) -> Integers:
        """For each of `slots` (n,): the rows its individual would hold, (n,), if these n rows were added."""
        return self._memory.event_counts(table, slots)

    def limits_and_spent(self, slots: Integers) -> tuple[Integers, Integers]:
        """Limits and spent totals of `slots` (n,), in units, (n,) each."""
        return self._memory.accounts.limits[slots], self._memory.accounts.spent_of(slots)

    def contributions(self, plan: Plan) -> Iterator[Block]:
        """As `DatasetState.contributions`."""
        return contributions(plan, self._memory, touches_paused=self._rule == "skip")


def _pages(touched: Touched) -> NDArray[np.int64]:
    """The pages with a touched slot: a stretch is on one."""
    if isinstance(touched.index, slice):
        return np.full(min(touched.count, 1), touched.begin >> PAGE_BITS)
    return pages_of(touched.slots())
