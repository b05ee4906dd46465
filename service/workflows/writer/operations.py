"""Operations of curators: a long one is prepared in the caller's thread, outside the writer, and finished in it."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from service.workflows.model.errors import Unavailable
from service.workflows.model.rows import Head
from service.workflows.ports.store import CommitUnclear, HeadMoved, StoreUnavailable
from service.workflows.ports.transaction import LongAct, Transaction
from service.workflows.writer.committer import Operation
from service.workflows.writer.prepared import BaseVersion, PreparedOperation
from service.workflows.writer.state import DatasetState
from service.workflows.writer.threads import WriterThread

ATTEMPTS_MAX: Final = 3
"""A preparation is in vain when the dataset was reconciled meanwhile, or had to be loaded again."""

Result = TypeVar("Result")
Preparation = Callable[[LongAct, BaseVersion], Operation[Result]]
"""The long part: writes and builds, changes nothing that queries read, and returns the short part."""


def act_beside(writer: WriterThread, prepare: Preparation[Result]) -> Result:
    """Do a long operation outside the writer. Raises the errors of its parts, Unavailable, Fenced and Busy."""
    for _ in range(ATTEMPTS_MAX):
        try:
            with writer.guard.long_act() as transaction:
                base = _base(writer, transaction.head)
                short = prepare(transaction, base)
                transaction.hasten()
                return writer.act(PreparedOperation(transaction=transaction, base=base, act=short))
        except HeadMoved:
            continue
        except (CommitUnclear, StoreUnavailable) as fault:
            raise Unavailable from fault
    raise Unavailable


def next_epoch(transaction: Transaction, state: DatasetState) -> int:  # noqa: ARG001 - an Operation sees both
    """Open the next public epoch."""
    epoch = transaction.head.epoch + 1
    transaction.journal("epoch", {"epoch": epoch}, epoch=epoch)
    return epoch


def _base(writer: WriterThread, head: Head) -> BaseVersion:
    """The records in memory, which is at the head or later: only limits and epochs can have come since."""
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
    return BaseVersion(head=head, memory=state.memory, version=state.memory.version)
