"""Operations of curators.

A long one is prepared in the caller's thread, outside the writer, and finished in the writer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic

from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import Head
from service.ledger.ports.store import CommitUnclear, HeadMoved, StoreUnavailable
from service.ledger.ports.transaction import LongAct, Transaction
from service.writer.committer import BaseVersion, Operation, PreparedOperation, Result
from service.writer.state import DatasetState, RecordsView
from service.writer.threads import WriterThread

ATTEMPTS_MAX: Final = 3
"""The most attempts to prepare an operation. One fails if the dataset is reconciled or loaded again meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settled(Generic[Result]):
    """The outcome of a preparation after which nothing has to be committed."""

    result: Result


Preparation = Callable[[LongAct, BaseVersion], Operation[Result] | Settled[Result]]
"""The long part of an operation. It writes and builds, but changes nothing that queries read.

It returns the short part, or the outcome if nothing has to be committed.
"""


def act_beside(writer: WriterThread, prepare: Preparation[Result]) -> Result:
    """Do a long operation outside the writer. Raises the errors of its parts, Unavailable, Fenced and Busy."""
    for _ in range(ATTEMPTS_MAX):
        try:
            with writer.guard.long_act() as transaction:
                base = _base(writer, transaction.head)
                short = prepare(transaction, base)
                if isinstance(short, Settled):
                    return short.result
                transaction.hasten()
                return writer.act(PreparedOperation(transaction=transaction, base=base, act=short))
        except HeadMoved:
            continue
        except (CommitUnclear, StoreUnavailable) as fault:
            raise Unavailable from fault
    raise Unavailable


def look_beside(writer: WriterThread, look: Callable[[RecordsView], Result]) -> Result:
    """Work through the records outside the writer, without a lock. Begin again if they were changed meanwhile.

    `look` must only read. An error that it raises over records that were changed is ignored. Raises Busy, and
    Unavailable where the records keep changing.
    """
    for _ in range(ATTEMPTS_MAX):
        writer.catch_up()
        records = writer.look(DatasetState.records)
        are_held = partial(DatasetState.holds, records=records)
        try:
            found = look(records)
        except Exception:
            if writer.look(are_held):
                raise
            continue
        if writer.look(are_held):
            return found
    raise Unavailable


def next_epoch(transaction: Transaction, state: DatasetState) -> int:  # noqa: ARG001 - an Operation sees both
    """Open the next public epoch."""
    epoch = transaction.head.epoch + 1
    transaction.journal("epoch", {"epoch": epoch}, epoch=epoch)
    return epoch


def _base(writer: WriterThread, head: Head) -> BaseVersion:
    """The records in memory, which is at the head or later. Only limits and epochs can have changed since the head."""
    found = writer.look(partial(_base_at, head))
    if found is None:
        writer.catch_up()
        found = writer.look(partial(_base_at, head))
    if found is None:
        raise Unavailable
    return found


def _base_at(head: Head, state: DatasetState) -> BaseVersion | None:
    if not state.has_come_to(head):
        return None
    return BaseVersion(head=head, records=state.records())
