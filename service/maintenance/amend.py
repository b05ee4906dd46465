"""Amendment of ledgers after erasures: the individual becomes untouched in every entry that is not pruned.

Entries are amended outside the writer in ranges, each by one act that binds its amendments (`model.amendments`), so
that a process that ends in the middle loses at most the work on one range. An entry is amended only after a checkpoint
contains its charges, so that it is never replayed again. The number of acts depends on sequences alone.

Datasets are amended one after the other. A dataset is queued after each erasure, and when its writer is opened, to
continue the work of another process. After an error it is queued again, as long as its writer is open here.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from service.background import JobQueue, handing_over_soon
from service.failpoints import reach
from service.incidents import report_incident
from service.ledger.model.amendments import Amendment, amendments_digest
from service.ledger.model.errors import WorkflowError
from service.ledger.model.journal import JournalAct
from service.ledger.model.rows import DatasetRecord, Head
from service.ledger.ports.store import StoreUnavailable
from service.ledger.ports.transaction import LongAct, Transaction
from service.reads.ledger import snapshot
from service.writer.committer import BaseVersion, Operation
from service.writer.operations import Preparation, act_beside
from service.writer.rollback.guard import RollbackGuard
from service.writer.state import DatasetState
from service.writer.threads import WriterThread

STRETCH_ENTRIES: Final = 1024
_AT_ONCE: Final = 64
"""How many rewritten parts are held in memory at most."""
_CHECKPOINT_WAITS: Final = 200
_CHECKPOINT_WAIT_S: Final = 0.05


class NoCheckpoint(Exception):
    """No checkpoint was written in time; the erasure is tried again later."""


class _Overtaken(Exception):
    """Another process has amended the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRange:
    """Entries with `after` < seq <= `to`, in which the individual of the act `erasure` is to become untouched."""

    erasure: int
    slot: int
    after: int
    to: int


def amend_erased(writer: WriterThread, *, is_over: Callable[[], bool] = lambda: False) -> int:
    """Amend a dataset's ledger for all erasures, until none is left or `is_over()`.

    Returns the number of ranges amended. Raises NoCheckpoint, Unavailable, Fenced, Busy.
    """
    done = 0
    while not is_over():
        head, stretch = _next(writer)
        if stretch is None:
            break
        if head.checkpoint_seq < stretch.to:
            _await_checkpoint(writer, stretch.to, is_over)
        try:
            act_beside(writer, _amending(stretch))
        except _Overtaken:
            continue
        reach("amended")
        done += 1
    return done


def stretches_left(head: Head, acts: Sequence[JournalAct]) -> Iterator[EntryRange]:
    """The next range of each unfinished erasure, the earliest first; `acts` are all acts of erasures."""
    amended = {}
    for act in acts:
        if act.act == "amend":
            amended[int(act.detail["erasure"])] = int(act.detail["to"])
    for act in acts:
        after = max(amended.get(act.number, 0), head.pruned_seq)
        if act.act == "erase" and after < act.at_seq:
            to = min(after + STRETCH_ENTRIES, act.at_seq)
            yield EntryRange(erasure=act.number, slot=int(act.detail["slot"]), after=after, to=to)


def _next(writer: WriterThread) -> tuple[Head, EntryRange | None]:
    with snapshot(writer.guard) as transaction:
        return transaction.head, _next_of(transaction)


def _next_of(transaction: Transaction) -> EntryRange | None:
    return next(stretches_left(transaction.head, transaction.acts_of("erase", "amend")), None)


def _await_checkpoint(writer: WriterThread, seq: int, is_over: Callable[[], bool]) -> None:
    """Wait for a checkpoint at `seq` or later. Raises NoCheckpoint."""
    for _ in range(_CHECKPOINT_WAITS):
        if is_over():
            break
        writer.checkpoint()
        with snapshot(writer.guard) as transaction:
            if transaction.head.checkpoint_seq >= seq:
                return
        time.sleep(_CHECKPOINT_WAIT_S)
    raise NoCheckpoint


def _amending(stretch: EntryRange) -> Preparation[None]:
    """Rewrite the parts of a range outside the writer, and journal it."""

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[None]:  # noqa: ARG001 - entries are not records
        if _next_of(transaction) != stretch:  # read again, now that no other process can amend
            raise _Overtaken
        digest = amendments_digest(_amended(transaction, stretch))

        def act(transaction: Transaction, state: DatasetState) -> None:  # noqa: ARG001 - memory keeps the charges
            detail = {"erasure": stretch.erasure, "after": stretch.after, "to": stretch.to, "digest": digest.hex()}
            transaction.journal("amend", detail)

        return act

    return prepare


def _amended(transaction: Transaction, stretch: EntryRange) -> Iterator[Amendment]:
    """Rewrite the parts of a range, and yield their amendments in order."""
    parts = transaction.own_parts(stretch.slot, after=stretch.after, to=stretch.to)
    rewritten = filter(None, (part.without(stretch.slot, erasure=stretch.erasure) for part in parts))
    while waiting := list(islice(rewritten, _AT_ONCE)):
        transaction.amend(waiting)
        reach("amending")
        yield from (each.amendment for each in waiting)


SILENT_RETRIES: Final = 600
"""After this many failures, ten minutes, an erasure that is not amended is an incident; the retries go on."""


@dataclass(slots=True, kw_only=True)
class _Erasures:
    """The erasures of one dataset, and the number of failed attempts to amend for them."""

    record: DatasetRecord
    writer: WriterThread
    failures: int = 0


class Amender(JobQueue[_Erasures]):
    """The queue of datasets with erasures. Jobs left at the end are queued again at the next start."""

    name = "amender"

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:  # noqa: ARG002 - a BackgroundService
        self.ask(record, writer)

    def ask(self, record: DatasetRecord, writer: WriterThread) -> None:
        """Queue a dataset whose ledger is to be amended."""
        self.put(_Erasures(record=record, writer=writer))

    def title_of(self, job: _Erasures) -> str:
        return f"erasures of dataset {job.record.id}"

    def do(self, job: _Erasures) -> None:
        if not job.writer.is_open:  # the new owner of the dataset has queued them
            return
        try:
            with handing_over_soon():
                amend_erased(job.writer, is_over=self._closed.is_set)
        except (WorkflowError, StoreUnavailable, NoCheckpoint) as fault:
            job.failures += 1
            if job.failures == SILENT_RETRIES:
                about = f"{self.title_of(job)}: entries are left to be amended; retrying"
                report_incident(fault, about, dataset=job.record.name)
            self.put_again(job)
