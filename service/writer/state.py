"""One dataset as this replica holds it: its shards, and the ledger sequence at which they stand.

The ledger is the truth. Memory is the sum of the pages and the entries since. Memory that may be wrong is read again,
never repaired.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from numpy.typing import NDArray

from service.arrays import Codes, Integers
from service.core.laws import PREPAID
from service.engine.memory import NO_SLOTS, null_codes
from service.engine.pages import pages_for
from service.engine.people import SlotCodes
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import AccountColumns, Checkpoint, DatasetRecord, Head, OwnAccount
from service.ledger.ports.shards import ShardLost
from service.ledger.ports.store import CommitRejected, HeadMoved
from service.ledger.ports.transaction import Transaction
from service.query.columns import stored_codings
from service.query.division import PAGE_SLOTS
from service.query.plan import Plan
from service.query.schema import Schema
from service.query.vector_columns import vectors_of
from service.writer.replication.act_changes import Changes, changes_since
from service.writer.replication.exchange import Tail
from service.writer.shards.divided import DividedShards, Shards, warn_where_uneven
from service.writer.shards.shard import Shard

_NEVER = -1
TAIL_BYTES_MAX: Final = 2**26
TAIL_BYTES_FOR_A_SLOT: Final = 64
"""The bytes of pieces for each slot that may follow a checkpoint.

Replaying them takes about as long as loading the dataset.
"""


class DatasetState:
    """The dataset's memory at ledger sequence `seq` and data version `data_version`. One writer thread owns it."""

    def __init__(self, record: DatasetRecord, tail: Tail | None = None, shards: Shards | None = None) -> None:
        """Begin empty: the first catch-up loads everything. `tail` may hold some entries already."""
        self.record = record
        self.shards: Shards = shards or Shard(record)
        self.slots_used = 0
        self._load = self._version = 0  # of the records: how often they were loaded, and changed or loaded
        self.seq = _NEVER
        self.data_version = _NEVER
        self._hash = b""  # of the entry at `seq`; empty while it is not known
        self._journal_hash = b""  # of the act that `data_version` counts to
        self._fence = _NEVER
        self._tail = tail or Tail()
        self.ticks = 0  # of the monitor, asked so far
        self._checkpoint_seq = 0  # the database's, when it was last looked at
        self._copied_seq = 0  # the last checkpoint's that was copied from here
        self._tail_bytes = 0  # since then
        self._tentative: list[LedgerEntry] = []  # applied, and not durable yet
        self._staged: list[Callable[[], None]] = []

    @property
    def position(self) -> tuple[int, int, int] | None:
        """Fence, sequence and data version; None while memory has to be read again. Any thread may read it."""
        fence, seq, data_version = self._fence, self.seq, self.data_version
        return None if _NEVER in (fence, seq, data_version) else (fence, seq, data_version)

    def is_at(self, head: Head) -> bool:
        """Tell whether memory is valid and stands exactly at `head`."""
        stands_at = self._fence, self.seq, self.data_version
        is_there = stands_at == (head.fence, head.seq, head.data_version) and self._hash == head.hash
        return is_there and not self.shards.lost

    def has_come_to(self, head: Head) -> bool:
        """Tell whether memory is valid and stands at `head` or later."""
        if self.position is None or self.shards.lost:
            return False
        fence, seq, data_version = self.position
        is_later = fence == head.fence and seq >= head.seq and data_version >= head.data_version
        return is_later and (seq > head.seq or self._hash == head.hash)

    def catch_up(self, transaction: Transaction, *, reads_records: bool = True) -> None:
        """Bring memory to the transaction's head, by the changes since or by a fresh load.

        With `reads_records` False, raises HeadMoved where records would have to be read.
        """
        head = transaction.head
        if self.shards.lost:
            if not reads_records:
                raise HeadMoved
            self._load_lost(transaction)
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
        """Stage a change of memory until the present act is durable."""
        self._staged.append(change)

    def drop_staged(self) -> None:
        """Forget the staged changes of an act that has ended."""
        self._staged.clear()

    def acted(self, head: Head) -> None:
        """Apply the staged changes, since the acts up to `head` are durable."""
        try:
            for change in self._staged:
                change()
        except ShardLost:
            self.invalidate_all()
        if self.data_version != _NEVER:
            self._stand_at(head)

    def apply(self, entry: LedgerEntry) -> None:
        """Debit the entry that follows the last one in memory. Raises FilterViolation when the entry breaks the filter.

        Raises RuntimeError for an entry out of order, and for a rewritten one, whose charges are only in the pages.
        After any other error the spent totals are read again, since some blocks may have been debited.
        """
        if entry.seq != self.seq + 1:
            raise RuntimeError(f"ledger entry {entry.seq} does not follow {self.seq}")
        if entry.is_rewritten:
            raise RuntimeError(f"ledger entry {entry.seq} was rewritten, and no page has it")
        try:
            self.shards.replay(entry)
        except Exception:
            self.invalidate()
            raise
        self._tail_bytes += sum(len(piece.content) for piece in entry.pieces)
        self.seq, self._hash = entry.seq, entry.hash
        self.ticks = entry.tick or self.ticks

    def released(self, entry: LedgerEntry) -> None:
        """Move to the entry of a query that the shards have answered."""
        self._tentative.append(entry)
        self._tail_bytes += sum(len(piece.content) for piece in entry.pieces)
        self.seq, self._hash = entry.seq, entry.hash
        if entry.mechanism.startswith(PREPAID):
            self.ticks = entry.tick

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """A context that takes back its releases if it ends in HeadMoved or CommitRejected: none is durable then."""
        stood = self.seq, self._hash, self._tail_bytes, self.ticks
        self._tentative = []
        try:
            yield
        except (CommitRejected, HeadMoved):
            self.shards.take_back(self._tentative)
            self.seq, self._hash, self._tail_bytes, self.ticks = stood
            raise
        finally:
            self._tentative = []

    def invalidate(self) -> None:
        """Have the spent totals read again before the next use, after a transaction that did not end well."""
        self.seq = _NEVER

    def invalidate_all(self) -> None:
        """Have the records read again too, since they may be wrong."""
        self.seq = self.data_version = _NEVER

    def is_tail_long(self, *, entries: int) -> bool:
        """Tell whether a restart would have to replay `entries` entries, or pieces that take as long as a load."""
        if self.seq == _NEVER:
            return False
        bytes_max = max(TAIL_BYTES_MAX, TAIL_BYTES_FOR_A_SLOT * self.slots_used)
        tail = self.seq - max(self._checkpoint_seq, self._copied_seq)
        return tail >= entries or (tail > 0 and self._tail_bytes >= bytes_max)

    def checkpoint(self) -> Checkpoint:
        """Copies of the pages that changed since the last checkpoint, as of now.

        Everything in memory must be durable.
        """
        pages = self.shards.pages_since(self._checkpoint_seq)
        self._copied_seq, self._tail_bytes = self.seq, 0
        return Checkpoint(since=self._checkpoint_seq, seq=self.seq, hash=self._hash, pages=pages)

    def put(
        self, change: int, *, slots_used: int = 0, slots: Integers | slice = NO_SLOTS, limits: Integers = NO_SLOTS
    ) -> None:
        """Put records in place that were built outside the writer, and set the limits (n,) of new `slots`."""
        self._version += 1
        self.slots_used = max(self.slots_used, slots_used)
        self.shards.put(change, slots_used=self.slots_used, slots=slots, limits=limits)

    @property
    def pages(self) -> int:
        """The number of pages that the handed-out slots fill."""
        return pages_for(self.slots_used)

    def records(self) -> "RecordsView":
        """The records as they are now, for work outside the writer."""
        return RecordsView(self.shards, self.record.schema, load=self._load, version=self._version)

    def holds(self, records: "RecordsView") -> bool:
        """Tell whether the records are still the same as when a view was made."""
        return records.version == self._version

    def account(self, slot: int) -> OwnAccount:
        """The account of one slot."""
        columns: tuple[NDArray[Any], ...] = self.copy_accounts(slice(slot, slot + 1))[:-1]
        return OwnAccount(*(column.item() for column in columns))

    def copy_accounts(self, slots: slice | Integers) -> AccountColumns:
        """Copies of the accounts of some slots, and which of these hold an individual.

        A slice is cut to the existing pages.
        """
        if isinstance(slots, slice):
            end = self.pages * PAGE_SLOTS
            slots = slice(min(slots.start, end), min(slots.stop, end))
        return self.shards.accounts(slots)

    def room_of(self, slots: Integers) -> Integers:
        """The units that `slots` (n,) have left, (n,); negative where the limit is below the spent total."""
        accounts = self.copy_accounts(slots)
        return accounts.limit - accounts.spent

    def _stand_at(self, head: Head) -> None:
        self.data_version, self._journal_hash = head.data_version, head.journal_hash

    def _follow(self, transaction: Transaction, *, reads_records: bool) -> None:
        """Bring the records to the head's version, by the changes of the acts since or by reading all records."""
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
        """Apply all changes, or none if the records do not fit."""
        if changes.emptied.size > 0 or changes.touched:
            self.put(self.records().changed(emptied=changes.emptied, replaced=changes.touched, added=changes.rows))
        self._grow(slots_used)
        for slot, limit in changes.limits.items():
            self.shards.set_limit(slot, limit)
        for slot, paused in changes.paused.items():
            self.shards.set_paused(slot, paused=paused)
        self.shards.set_accounts(changes.accounts)

    def _grow(self, slots: int) -> None:
        self.slots_used = max(self.slots_used, slots)
        self.shards.grow(self.slots_used)

    def _load_records(self, transaction: Transaction) -> None:
        self.record = transaction.registration()
        self.invalidate_all()  # until the last row has come: a load cut short must not pass for the version held before
        self._load, self._version, self.slots_used = self._load + 1, self._version + 1, transaction.head.slots
        self._fill(self.shards, transaction)

    def _load_lost(self, transaction: Transaction) -> None:
        """Load the lost shards. The totals of all shards are read again, since a batch may have been under way."""
        if isinstance(self.shards, DividedShards):
            restarted, head = self.shards.restarted(), transaction.head
            are_others_there = (self.data_version, self._journal_hash) == (head.data_version, head.journal_hash)
            self.invalidate_all()
            self._version += 1  # what was built at a lost shard is gone
            if are_others_there:
                self._fill(restarted, transaction)
                self._stand_at(head)

    def _fill(self, shards: Shards, transaction: Transaction) -> None:
        """Load the transaction's records into shards."""
        shards.load(self.record, slots=self.slots_used, number=self._load)
        shards.set_accounts(transaction.individuals())
        for name in self.record.schema.tables:
            slots, codes = transaction.records(name)
            shards.add_rows(name, slots, codes)
            if shards is self.shards:
                warn_where_uneven(self.record, name, slots, shards.count)
        shards.index_categories()

    def _load_spent(self, transaction: Transaction) -> None:
        """Set the stored pages; the caller then applies the entries since."""
        self.shards.reset_spent()
        for page in transaction.pages():
            self.shards.set_page(page)
        self._copied_seq = self._tail_bytes = 0
        self._hash = b""
        self._checkpoint_seq = self.seq = transaction.head.checkpoint_seq
        self.ticks = 0 if self.record.monitor is None else transaction.last_tick(up_to=self.seq)


class RecordsView:
    """The records of a dataset at one version, for work outside the writer.

    They may change during the work, as `DatasetState.holds` then tells. A change that was built here can then not be
    put in place. Methods raise HeadMoved if the records were loaded again.
    """

    def __init__(self, shards: Shards, schema: Schema, *, load: int, version: int) -> None:
        self._shards, self._schema, self._load, self.version = shards, schema, load, version

    def changed(
        self,
        *,
        emptied: Integers = NO_SLOTS,
        replaced: Mapping[str, Integers] | None = None,
        added: Mapping[str, SlotCodes] | None = None,
    ) -> int:
        """Build a change of the records, and return its number for `put` (`DatasetMemory.changed`).

        Raises ValueError.
        """
        return self._shards.changed(self._load, self.version, emptied=emptied, replaced=replaced, added=added)

    def make_room(self, slots: int) -> None:
        """Bring accounts into physical memory for slots below `slots` that are not handed out yet."""
        self._shards.make_room(self._load, slots)

    def null_codes(self, table: str, count: int) -> dict[str, Codes]:
        """The columns of a table, each with `count` NULLs."""
        return null_codes(stored_codings(self._schema)[table], vectors_of(self._schema.tables[table].columns), count)

    def rows_held(self, table: str) -> list[int]:
        """The number of rows in an event table, at each shard."""
        return self._shards.rows_held(self._load, table)

    def event_counts(self, table: str, slots: Integers) -> Integers:
        """The number of rows that each individual in `slots` (n,) would have with these n rows added, (n,)."""
        return self._shards.event_counts(self._load, table, slots)

    def limits_and_spent(self, slots: Integers) -> tuple[Integers, Integers]:
        """Limits and spent totals of `slots` (n,), in units, (n,) each."""
        accounts = self._shards.accounts(slots)
        return accounts.limit, accounts.spent

    def charges(self, plan: Plan) -> tuple[Integers, Integers]:
        """The slots (k,) that a query would touch now, and what it would charge each of them, (k,) units."""
        return self._shards.charges(self._load, plan)
