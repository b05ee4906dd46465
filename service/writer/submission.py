"""Queries on the way to their writer. Each query is the promise of its own answer; those of one request form a unit.

A unit is admitted, worked on and committed as a whole. Each of its queries is answered or refused by itself.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic, TypeVar

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import Busy, QueryCancelled
from service.ledger.model.rows import Address, Asked
from service.ledger.model.views import Principal
from service.query.cost import PublicCost
from service.query.plan import Plan
from service.writer.admission.admission import Ticket
from service.writer.admission.schedule import Reservation
from service.writer.admission.scheduler import Committing


class PendingAnswer(Future[StoredAnswer]):
    """The promise of an answer of `dimension` numbers. `unit` is the admitted work that keeps the promise."""

    dimension = 0
    unit: "AdmittedUnit[Any] | None" = None


class QueryRequest(PendingAnswer):
    """One waiting query: analyst, idempotency key, and the plan under a version of the registration.

    Two requests under the same key are told apart by `request_hash`. `asked` is what the store has to look up.
    """

    def __init__(
        self, *, analyst: Principal, key: str, request_hash: bytes, plan: Plan, accepted_at: datetime, version: int = 1
    ) -> None:
        super().__init__()
        self.dimension = plan.dimension
        self.analyst, self.key, self.request_hash = analyst, key, request_hash
        self.plan, self.accepted_at, self.version = plan, accepted_at, version
        self.address: Address = analyst.id, key
        self.asked = Asked(address=self.address, query_hash=plan.query_hash if plan.reuse else None)


Promise = TypeVar("Promise", bound=PendingAnswer)


class AdmittedUnit(Generic[Promise]):
    """The promised answers of one request, at least one, with their public cost and the writer that keeps them."""

    __slots__ = ("_is_decided", "_lock", "cost", "requests", "ticket", "writer")

    def __init__(self, requests: Sequence[Promise], cost: PublicCost, writer: Committing | None = None) -> None:
        self.requests, self.cost, self.writer = requests, cost, writer
        self.ticket: Ticket | None = None
        self._lock, self._is_decided = threading.Lock(), False  # whether it has begun, or never will
        for request in requests:
            request.unit = self

    def start(self) -> bool:
        """Mark the work as begun. Returns False when the client has gone before."""
        is_first = self._decide()
        for request in self.requests if is_first else ():
            request.set_running_or_notify_cancel()
        return is_first

    def refuse(self) -> None:
        """Settle every promise with Busy."""
        self.fail(Busy())

    def fail(self, refusal: Exception) -> None:
        """Settle every promise with the same refusal."""
        self.settle([refusal] * len(self.requests))

    def settle(self, outcomes: Sequence[StoredAnswer | Exception]) -> None:
        """Settle every promise with its outcome; a promise that was cancelled meanwhile stays cancelled."""
        for request, outcome in zip(self.requests, outcomes, strict=True):
            with suppress(InvalidStateError):
                if isinstance(outcome, Exception):
                    request.set_exception(outcome)
                else:
                    request.set_result(outcome)

    def cancel(self) -> None:
        """Cancel work that has not begun, because the client has gone. Work that has begun is finished and committed.

        Work whose slots have come counts as begun, even if the writer is behind, because sequences must not depend on
        that.
        """
        if self.ticket is not None and not self.ticket.cancel():
            return
        if self._decide():
            for request in self.requests:
                request.cancel()

    def withdraw(self) -> bool:
        """Fail every promise of a unit that the analyst has cancelled. Returns False if its work has begun.

        The unit has left the schedule before.
        """
        is_first = self._decide()
        if is_first:
            self.fail(QueryCancelled())
        return is_first

    def _decide(self) -> bool:
        """Tell whether this is the first call, which decides whether the whole unit begins or never will."""
        with self._lock:
            is_first, self._is_decided = not self._is_decided, True
        return is_first


class Submission(AdmittedUnit[QueryRequest]):
    """The queries that one analyst sends in one request to one dataset, for its writer."""

    __slots__ = ()

    def is_asked(self, address: Address, writer: Committing) -> bool:
        """Tell whether one of the queries was asked under this key, of the dataset of this writer."""
        return self.writer is writer and any(request.address == address for request in self.requests)

    def begin(self, reservation: Reservation) -> None:
        """Hand this submission alone to its writer."""
        if self.writer is not None:
            self.writer.begin([self], reservation)

    @property
    def turn(self) -> int:
        """The id, as a number, of the principal whose turn the submission takes.

        A number is hashed faster than a UUID.
        """
        return self.requests[0].analyst.id.int


def refused(refusal: Exception) -> PendingAnswer:
    """A promise that has already failed with this refusal."""
    promise = PendingAnswer()
    promise.set_exception(refusal)
    return promise
