"""The start check: the end of each ledger is compared with its head, in the background; damage closes the dataset.

`sparing ledger verify` derives everything again, which takes longer as a ledger grows. The start check reads only the
newest ENTRIES_MAX entries or ENTRIES_BYTES_MAX bytes, whichever is less, and the head. Its cost depends on the number
and sizes of entries; its findings are about stored rows, and tell nothing about individuals. Queries are answered while
it runs, so that no client waits for it.

The check goes backward from the newest entry in pieces, and reads each piece in a new snapshot. Hashed contents never
change, so that no snapshot or session has to be held throughout.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.background import JobQueue, handing_over_soon
from service.incidents import report_incident
from service.ledger.model.errors import LedgerDamaged
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord, Head
from service.ledger.ports.store import Store, StoreUnavailable
from service.ledger.ports.transaction import Transaction
from service.reads.ledger import NEWEST
from service.writer.rollback.guard import RollbackGuard
from service.writer.threads import WriterThread

ENTRIES_MAX: Final = 10_000
ENTRIES_BYTES_MAX: Final = 2**28
"""How many bytes of charges and values are checked at most; the newest entry is checked at any size."""
PIECE_ENTRIES: Final = 64
PIECE_BYTES: Final = 2**22
"""The most bytes of a piece of several entries: the GIL is held while rows are taken from the driver."""


class StartCheck:
    """One check of the end of one dataset's ledger. It has no thread: one caller at a time calls `step`.

    `finding` names the newest damaged row; None as long as none was found. `entries` and `bytes` count the entries
    checked and their bytes.
    """

    def __init__(
        self, record: DatasetRecord, *, entries_max: int = ENTRIES_MAX, bytes_max: int = ENTRIES_BYTES_MAX
    ) -> None:
        """Check at most `entries_max` entries and `bytes_max` bytes."""
        self.finding: str | None = None
        self.entries = self.bytes = 0
        self._record, self._entries_max, self._bytes_max = record, entries_max, bytes_max
        self._head: Head | None = None  # as it was when the check began
        # The sequence and hash that the next entry must have, and the finding if it has another hash.
        self._seq, self._hash, self._otherwise = 0, b"", ""

    def step(self, transaction: Transaction) -> bool:
        """Check the next piece. False when all is checked, or a row is damaged. Raises StoreUnavailable.

        The transaction is a snapshot not older than that of the previous step.
        """
        try:
            if self._head is None:
                self._head = transaction.head
                self._look_at_head(self._head, transaction)
            else:
                self._look_at_piece(self._head, transaction)
        except _Damage as damage:
            self.finding = str(damage)
        return self.finding is None and self._seq > 0

    def _look_at_head(self, head: Head, transaction: Transaction) -> None:
        """Compare the ends of the ledger and of the journal with the head."""
        place = f"heads row {self._record.id}"
        newest = transaction.entry_sizes(before=NEWEST, limit=1)
        last_seq = newest[0][0] if newest else 0
        if head.seq != last_seq:
            raise _Damage(f"{place}: says seq {head.seq}, the ledger ends at {last_seq}")
        _look_at_journal(self._record, transaction)
        if head.seq == 0 and head.hash != self._record.genesis:
            raise _Damage(f"{place}: its hash is not the genesis")
        if head.seq == 0 and head.worst_case_units != 0:
            raise _Damage(f"{place}: says worst_case_units {head.worst_case_units}, the ledger gives 0")
        self._seq, self._hash = head.seq, head.hash
        self._otherwise = f"{place}: its hash is not that of the last ledger row"

    def _look_at_piece(self, head: Head, transaction: Transaction) -> None:
        """Check the next entries, newest first. After the last piece compare only the hash of the entry before it."""
        seqs = self._next(transaction)
        if not seqs:
            self._expect(transaction.hashes([self._seq]).get(self._seq))
            self._seq = 0
            return
        for entry in reversed(_read(transaction, seqs)):
            if entry.seq != self._seq:
                raise _Damage(f"ledger row {self._seq}: is missing")
            if not gives_its_hash(entry):
                raise _Damage(f"ledger row {entry.seq}: its contents do not give its hash")
            self._expect(entry.hash)
            if entry.seq == head.seq and entry.worst_case_total_units != head.worst_case_units:
                said = f"says worst_case_units {head.worst_case_units}"
                raise _Damage(f"heads row {self._record.id}: {said}, the ledger gives {entry.worst_case_total_units}")
            self._seq, self._hash = entry.seq - 1, entry.previous_hash
            self._otherwise = f"ledger row {entry.seq}: does not continue the row before"
        if self._seq == 0:
            self._expect(self._record.genesis)

    def _expect(self, found: bytes | None) -> None:
        """Compare the hash of the next row with the one that its successor states."""
        if found is None:
            raise _Damage(f"ledger row {self._seq}: is missing")
        if found != self._hash:
            raise _Damage(self._otherwise)

    def _next(self, transaction: Transaction) -> list[int]:
        """The sequences of the next piece, newest first; empty at the ledger's beginning or at the bounds."""
        seqs: list[int] = []
        piece_bytes = 0
        limit = min(PIECE_ENTRIES, self._entries_max - self.entries)
        for seq, size in transaction.entry_sizes(before=self._seq + 1, limit=limit):
            is_too_much = self.bytes + size > self._bytes_max and self.entries > 0
            if is_too_much or (seqs and piece_bytes + size > PIECE_BYTES):
                break
            seqs.append(seq)
            piece_bytes += size
            self.entries, self.bytes = self.entries + 1, self.bytes + size
        return seqs


class _Damage(Exception):
    """The finding about a damaged row; it contains only public facts."""


def _read(transaction: Transaction, seqs: list[int]) -> list[LedgerEntry]:
    """The entries of `seqs`, which are newest first, in the order of the ledger."""
    entries: list[LedgerEntry] = []
    try:
        for entry in transaction.entries(after=seqs[-1] - 1, limit=len(seqs)):
            entries.append(entry)  # noqa: PERF402 - after an error the list tells which was the last
    except StoreUnavailable:
        raise
    except Exception as error:  # an entry that cannot be read is not the one that was written
        raise _Damage(f"ledger row {seqs[-1 - len(entries)]}: cannot be read") from error
    return entries


def gives_its_hash(entry: LedgerEntry) -> bool:
    """Tell whether an entry's contents give its hash."""
    try:
        return entry.is_itself
    except Exception:  # noqa: BLE001 - an entry without a canonical form was not hashed like this
        return False


def _look_at_journal(record: DatasetRecord, transaction: Transaction) -> None:
    """Compare the last act with the head."""
    head, place = transaction.head, f"heads row {record.id}"
    newest = transaction.act_records(before=NEWEST, limit=1, bytes_max=1)
    number = newest[0].number if newest else 0
    if head.data_version != number:
        raise _Damage(f"{place}: says data_version {head.data_version}, the journal ends at {number}")
    last_hash = record.genesis
    for act in transaction.acts(after=number - 1) if newest else ():
        if not act.is_itself:
            raise _Damage(f"journal row {act.number}: its contents do not give its hash")
        last_hash = act.hash
    if head.journal_hash != last_hash:
        raise _Damage(f"{place}: its journal_hash is not that of the last journal row")


SILENT_RETRIES: Final = 30
"""After this many retries an unavailable database is an incident. Other datasets' turns come between two retries."""
LOOKS: Final = 100
LOOK_EVERY_S: Final = 0.1
"""A check waits up to LOOKS intervals of this length until its dataset is loaded: clients may need the load first."""


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A dataset whose ledger is to be checked, and the number of attempts that found the store unavailable."""

    record: DatasetRecord
    guard: RollbackGuard
    is_loaded: Callable[[], bool]
    failures: int = 0


class StartChecks(JobQueue[_Asked]):
    """The queue of ledgers to check; checks left at the end are dropped."""

    name = "start-checks"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:
        self.ask(record, guard, is_loaded=lambda: writer.position is not None)

    def ask(self, record: DatasetRecord, guard: RollbackGuard, *, is_loaded: Callable[[], bool]) -> None:
        """Queue the check of a dataset's ledger, once `is_loaded()` or after a while; damage closes `guard`."""
        self.put(_Asked(record=record, guard=guard, is_loaded=is_loaded))

    def title_of(self, job: _Asked) -> str:
        return f"start check of dataset {job.record.id}"

    def do(self, job: _Asked) -> None:
        try:
            self._check(job)
        except StoreUnavailable as fault:
            job.failures += 1
            if job.failures == SILENT_RETRIES:
                report_incident(
                    fault, f"{self.title_of(job)}: its rows cannot be read; retrying", dataset=job.record.name
                )
            self.put_again(job)

    def _check(self, asked: _Asked) -> None:
        """Check to the end, or to the first damage. Raises StoreUnavailable."""
        self._await_load(asked)
        check, is_more = StartCheck(asked.record), True
        with handing_over_soon():
            while is_more and not self._closed.is_set():
                with self._store.transaction(asked.record.id, lock=False) as transaction:
                    is_more = check.step(transaction)
        if check.finding is not None:
            asked.guard.close_for_damage()
            report_incident(LedgerDamaged(), f"{self.title_of(asked)}: {check.finding}", dataset=asked.record.name)

    def _await_load(self, asked: _Asked) -> None:
        for _ in range(LOOKS):
            if asked.is_loaded() or self._closed.wait(LOOK_EVERY_S):
                return
