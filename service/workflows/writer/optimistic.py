"""Optimistic commit: a batch is tried on the assumed head, without asking the database first.

A replica that appends alone knows the head: it has written it. It can evaluate its queries on what it holds and send
charges, answers and the assumption in one round trip; the database refuses all of it if the assumption is wrong. The
lock is then held for the time of that one commit, and not while people are counted.
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from service.workflows.model.rows import Address, Head
from service.workflows.ports.transaction import ConditionalAppend
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.writer.batch import QueryRequest
from service.workflows.writer.state import DatasetState

SEEN_MAX: Final = 4096
CAUTIOUS_BATCHES: Final = 32
"""So many batches take the lock after a refusal: another process is appending, or an analyst repeats a query."""


class OptimisticCommit:
    """A writer's knowledge of its head and of answered queries; decides whether a batch may skip the lock."""

    def __init__(self, guard: RollbackGuard, state: DatasetState) -> None:
        self._guard, self._state = guard, state
        self._head: Head | None = None
        self._seen: OrderedDict[Address | str, None] = OrderedDict()  # keys and query hashes, the latest last
        self._cautious_batches = 0

    def propose(self, requests: Sequence[QueryRequest]) -> AbstractContextManager[ConditionalAppend] | None:
        """A conditional append for a batch that is likely to be accepted; None where the head must be read first."""
        head = self._head
        if self._cautious_batches > 0:
            self._cautious_batches -= 1
            return None
        if head is None or not (self._state.is_at(head) and self._guard.is_confirmed(head)):
            return None
        if not all(map(self._is_new, requests)):
            return None
        return self._guard.conditional_append(head, asked=[request.asked for request in requests])

    def note(self, head: Head, requests: Sequence[QueryRequest]) -> None:
        """Note the head that this replica has just written or read, with these queries answered in it."""
        self._head = head
        for request in requests:
            self._seen[request.address] = self._seen[request.plan.query_hash] = None
        while len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)

    def moved(self, head: Head) -> None:
        """An act of this writer has moved the head: it is known if the last one was.

        So the next query goes the way that it would have gone without the act, which must not show.
        """
        if self._head is not None:
            self._head = head

    def refused(self) -> None:
        """A conditional append was refused: take the lock for the next batches."""
        self._cautious_batches = CAUTIOUS_BATCHES
        self.forget()

    def forget(self) -> None:
        """Have the next batch look at the head."""
        self._head = None

    def _is_new(self, request: QueryRequest) -> bool:
        """Whether no key of the batch is known. An allowance can only be judged by the database."""
        if request.analyst.allowance_units is not None or request.address in self._seen:
            return False
        return not (request.plan.reuse and request.plan.query_hash in self._seen)
