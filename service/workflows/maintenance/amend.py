"""Amendment of the ledger after erasures: the individual becomes untouched in every entry that is not pruned.

Entries are amended outside the writer in ranges, each by one act that binds its amendments (`model.amendments`), so
that a process that ends in the middle loses at most the work on one range. An entry is amended only after a checkpoint
contains its charges, so that it is never replayed again. The number of acts depends on sequences alone.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from service.failpoints import reach
from service.workflows.model.amendments import Amendment, amendments_digest
from service.workflows.model.journal import JournalAct
from service.workflows.model.rows import Head
from service.workflows.ports.transaction import LongAct, Transaction
from service.workflows.reads.ledger import snapshot
from service.workflows.writer.committer import Operation
from service.workflows.writer.operations import Preparation, act_beside
from service.workflows.writer.prepared import BaseVersion
from service.workflows.writer.state import DatasetState
from service.workflows.writer.threads import WriterThread

STRETCH_ENTRIES: Final = 1024
_AT_ONCE: Final = 64
"""The most rewritten parts held in memory."""
_CHECKPOINT_WAITS: Final = 200
_CHECKPOINT_WAIT_S: Final = 0.05


class NoCheckpoint(Exception):
    """No checkpoint was written in time; the erasure is tried again later."""


class _Overtaken(Exception):
    """Another process has amended the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRange:
    """Entries with `after` < seq <= `to`, in which the slot of the erasure `erasure` is to be untouched."""

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
    """Have a checkpoint at `seq` or later written. Raises NoCheckpoint."""
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
    """Rewrite the parts of a range; their amendments, in order."""
    parts = transaction.own_parts(stretch.slot, after=stretch.after, to=stretch.to)
    rewritten = filter(None, (part.without(stretch.slot, erasure=stretch.erasure) for part in parts))
    while waiting := list(islice(rewritten, _AT_ONCE)):
        transaction.amend(waiting)
        reach("amending")
        yield from (each.amendment for each in waiting)
