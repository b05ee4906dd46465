"""The guard of one dataset: no answer leaves before a witness has its head, and no database behind its witness is used.

A restored backup has forgotten what was spent since. The witness has not: whatever it has seen must be in the ledger,
or burned in it (`maintenance.reconcile`). Otherwise the dataset is closed. A dataset is also closed when its ledger is
found damaged (`service.maintenance.start_check`).
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import orjson

from service.ledger.model.errors import Fenced, LedgerDamaged, Unavailable, WitnessLost, WorkflowError
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import Asked, Checkpoint, DatasetRecord, Head, WitnessRecord
from service.ledger.ports.store import HeadMoved, Store, StoreUnavailable
from service.ledger.ports.transaction import ConditionalAppend, LongAct, Transaction
from service.ledger.ports.witness import Witness, WitnessUnavailable

log = logging.getLogger("sparing.witness")
log.addHandler(logging.NullHandler())  # commands tell of a closed dataset by themselves

Position = tuple[int, int, int]
_BEFORE_ALL: Final = (0, 0, 0)
WITNESS_UNAVAILABLE: Final = "witness-unavailable"


def witness_name(dataset: DatasetRecord) -> str:
    """A dataset's name for its witness: its own name and its genesis, which binds the whole registration."""
    return f"{dataset.name}-{dataset.genesis.hex()}"


def on_chain(dataset: DatasetRecord, transaction: Transaction, history: Sequence[WitnessRecord]) -> list[WitnessRecord]:
    """The records, in order, from which this transaction's ledger continues."""
    head = transaction.head
    hashes = transaction.hashes([record.seq for record in history]) | {0: dataset.genesis, head.seq: head.hash}
    return [record for record in history if _continues(record, head) and hashes.get(record.seq) == record.hash]


def unaccounted(
    dataset: DatasetRecord, transaction: Transaction, history: Sequence[WitnessRecord]
) -> list[WitnessRecord]:
    """The records, in order, that are neither on the transaction's chain nor burned in its ledger."""
    settled = settled_position(transaction.burns())
    later = [record for record in history if record.position > settled]
    kept = set(on_chain(dataset, transaction, later))  # of thousands: looking through a list takes seconds
    return [record for record in later if record not in kept]


def settled_position(burns: Iterable[LedgerEntry]) -> Position:
    """The position up to which all witnessed records are in this ledger or burned in it."""
    return max((_settled(entry) for entry in burns), default=_BEFORE_ALL)


def _settled(entry: LedgerEntry) -> Position:
    fence, seq, acts = orjson.loads(entry.settled)
    return fence, seq, acts


def judge(dataset: DatasetRecord, transaction: Transaction, history: Sequence[WitnessRecord]) -> Fenced | None:
    """The reason to close the dataset, given all its witness records; None when all of them are accounted for."""
    if not history:
        return WitnessLost() if transaction.head.seq > 0 else None
    return Fenced() if unaccounted(dataset, transaction, history) else None


class RollbackGuard:
    """One dataset's witness as far as this process knows it, and the only way to its transactions. Thread-safe.

    After a commit, call `confirm_recorded` with the transaction's head before anything of it leaves.
    """

    def __init__(self, *, record: DatasetRecord, store: Store, witness: Witness) -> None:
        self._record, self._store, self._witness = record, store, witness
        self._name = witness_name(record)
        self._known: WitnessRecord | None = None  # the farthest witnessed that was seen to be accounted for
        # The farthest that was told from here. A record that was only read may never have reached the disk, or stand
        # in a secondary alone.
        self._told: WitnessRecord | None = None
        self._base: WitnessRecord | None = None  # the head that a transaction began with
        self._closed: Fenced | None = None
        self._is_unreadable = self._is_unwritable = self._is_damaged = False
        self._lock = threading.Lock()

    def is_of(self, record: DatasetRecord) -> bool:
        """Tell whether this guard was made for this very registration."""
        return self._name == witness_name(record)

    @property
    def code(self) -> str | None:
        """The public code of what keeps the dataset closed; None if it is open."""
        if self._is_damaged:
            return LedgerDamaged.slug
        if self._closed is not None:
            return self._closed.slug
        return WITNESS_UNAVAILABLE if self._is_unreadable or self._is_unwritable else None

    @contextmanager
    def transaction(self, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[Transaction]:
        """A transaction of the store, on a database that is not behind its witness.

        Raises Fenced or WitnessLost when the database is behind, LedgerDamaged when damage was found, and Unavailable
        when the witness cannot be read.
        """
        seen = self._look()  # first: what was witnessed before the transaction began must be in what it sees
        with self._store.transaction(self._record.id, lock=lock, asked=asked) as transaction:
            begun_meanwhile = not seen and transaction.head.seq > 0 and self._look() != []
            if not begun_meanwhile:
                self._check(transaction, seen)
                # Before anything can be durable: a crash after the first commit is not a witness that was lost.
                begun_meanwhile = lock and self._known is None and self._tell(transaction.head) is not None
            if not begun_meanwhile:
                yield transaction
        # Another replica has begun the ledger, and its witness, since we looked. The holder of a connection must not
        # wait for a second one, so what it has told is held against another transaction after this one.
        if begun_meanwhile:
            with self.transaction(lock=lock, asked=asked) as transaction:
                yield transaction

    def long_act(self) -> AbstractContextManager[LongAct]:
        """A long act's transaction. Only `lock` checks that the database is not behind its witness."""
        return self._store.long_act(self._record.id)

    def lock(self, transaction: LongAct) -> None:
        """Lock a long act's transaction, after the same checks as at the beginning of `transaction`.

        Raises HeadMoved when another replica has begun the ledger, and its witness, since the witness was read.
        """
        seen = self._look()
        transaction.lock()
        if not seen and transaction.head.seq > 0 and self._look() != []:
            raise HeadMoved
        self._check(transaction, seen)
        if self._known is None and self._tell(transaction.head) is not None:
            raise HeadMoved

    def write_checkpoint(self, checkpoint: Checkpoint) -> bool:
        """Write a checkpoint, page by page.

        Returns False when the store does not finish it. Raises Fenced, Unavailable.

        It checks at the beginning and before the end that the dataset is not closed. In between no check is needed: a
        page is kept only if the checkpoint's entry is in the ledger, and then the page is right whatever else was lost.
        """
        with self.transaction(lock=False):
            pass
        for page in checkpoint.pages:
            self._store.write_page(self._record.id, checkpoint, page)
        with self.transaction(lock=False):
            pass
        return self._store.finish_checkpoint(self._record.id, checkpoint)

    def is_confirmed(self, head: Head) -> bool:
        """Tell whether `head` is the farthest witnessed head, and the dataset is open."""
        with self._lock:
            return self.code is None and self._known == WitnessRecord.of(head)

    def conditional_append(self, head: Head, *, asked: Sequence[Asked]) -> AbstractContextManager[ConditionalAppend]:
        """A conditional append on a head that `is_confirmed`; it commits only on this head."""
        return self._store.conditional_append(self._record.id, head, asked=asked)

    def confirm_recorded(self, head: Head) -> None:
        """Have the witness record `head`. Do not call this within a transaction.

        Raises Unavailable, Fenced.
        """
        theirs = self._tell(head)
        if theirs is not None:
            self._confirm(theirs, WitnessRecord.of(head))

    def confirm_recorded_up_to(self, seq: int, head: Head) -> None:
        """Have the witness record entry `seq` or a later one, unless this process has told the witness of it before.

        This is for answers that some process committed earlier. `head` comes from a transaction after that. If it has
        only more acts of individuals than the witness was told, nothing is recorded, so that no analyst's request waits
        for the witness because of these acts. Do not call this within a transaction. Raises Unavailable, Fenced.
        """
        told = self._told
        if told is None or told.fence != head.fence or told.seq < seq:
            self.confirm_recorded(head)

    def confirm_head_recorded(self) -> None:
        """Have the witness record the present head. Raises Unavailable, Fenced."""
        with self.transaction(lock=False) as transaction:
            head = transaction.head
        self.confirm_recorded(head)

    def refuse_if_closed(self) -> None:
        """Raise the reason for which the dataset is closed, if it still is."""
        if self._is_damaged or self._closed is not None:
            with self.transaction(lock=False):
                pass

    def close_for_damage(self) -> None:
        """Close the dataset for as long as this process runs, because rows of its ledger are not what was written.

        Answers that were committed before may still leave.
        """
        self._is_damaged = True

    def recheck(self) -> str | None:
        """Check again, and retry what could not be written.

        Returns the public code of what is wrong, None if nothing is.
        """
        try:
            with self.transaction(lock=False) as transaction:
                head = transaction.head
            if self._is_unwritable:
                self.confirm_recorded(head)
        except (WorkflowError, StoreUnavailable):
            pass  # the code tells
        return self.code

    def _look(self) -> list[WitnessRecord]:
        """The witness records: all of them at first, later only the farthest known one."""
        known = self._known
        if known is not None:
            return [known]
        try:
            history = self._witness.history(self._name)
        except WitnessUnavailable as fault:
            self._log_once(is_new=not self._is_unreadable, text="its witness cannot be read")
            self._is_unreadable = True
            raise Unavailable from fault
        self._is_unreadable = False
        return history

    def _check(self, transaction: Transaction, seen: list[WitnessRecord]) -> None:
        if self._is_damaged:
            raise LedgerDamaged
        is_continued = len(seen) == 1 and self._is_continued(seen[0], transaction)
        verdict = None if is_continued else judge(self._record, transaction, seen)
        with self._lock:
            if verdict is not None or self._closed is not None:
                self._close(verdict)
            if verdict is not None:
                raise verdict
            self._base = WitnessRecord.of(transaction.head)
            if seen and (self._known is None or self._known.position < seen[-1].position):
                self._known = seen[-1]

    def _close(self, verdict: Fenced | None) -> None:
        """Close the dataset or open it again, and log the change."""
        before, self._closed = self._closed, verdict
        if verdict is not None:
            self._log_once(is_new=before is None or before.slug != verdict.slug, text=f"closed as {verdict.slug}")
        elif before is not None:
            self._log_once(is_new=True, text="open again")

    def _log_once(self, *, is_new: bool, text: str) -> None:
        if is_new:
            log.warning("dataset %s: %s", self._record.name, text, extra={"dataset": self._record.name})

    def _is_continued(self, record: WitnessRecord, transaction: Transaction) -> bool:
        """Tell whether a record is on the transaction's chain. Each transaction checks this of the farthest record.

        Nothing is read for this while no other process appends.
        """
        head = transaction.head
        if not _continues(record, head):
            return False
        hashes = {0: self._record.genesis, head.seq: head.hash}
        return record.hash == (hashes.get(record.seq) or transaction.hashes([record.seq]).get(record.seq))

    def _tell(self, head: Head) -> WitnessRecord | None:
        """Tell the witness of a head.

        Returns a record that another process has told it meanwhile, which must be confirmed.
        """
        ours = WitnessRecord.of(head)
        with self._lock:
            if self._told is not None and self._told.position >= ours.position:
                return None
            try:
                theirs = self._witness.write(self._name, ours)
            except WitnessUnavailable as fault:
                self._log_once(is_new=not self._is_unwritable, text="its witness cannot be written")
                self._is_unwritable = True
                raise Unavailable from fault
            self._is_unwritable, self._told = False, ours
            if theirs is not None and theirs not in (ours, self._known, self._base):
                return theirs
            if self._known is None or self._known.position < ours.position:
                self._known = ours
            return None

    def _confirm(self, theirs: WitnessRecord, ours: WitnessRecord) -> None:
        """Check a record of another process against the ledger. The process may run on a clone of the database.

        Raises Fenced when the record is not accounted for: two histories cannot both be true.
        """
        with self._store.transaction(self._record.id, lock=False) as transaction, self._lock:
            self._close(judge(self._record, transaction, [theirs]))
            self._known = None if self._closed else max(theirs, ours, key=lambda record: record.position)
            if self._closed is not None:
                raise self._closed


def _continues(record: WitnessRecord, head: Head) -> bool:
    """Tell whether a head can come after a record: no number that only grows is smaller in the head."""
    return (
        record.fence <= head.fence
        and record.seq <= head.seq
        and record.acts <= head.data_version
        and record.worst_case_total_units <= head.worst_case_units
    )
