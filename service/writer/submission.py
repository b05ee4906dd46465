"""Queries on the way to their writer: each is the promise of its own answer, and those of one request are one unit.

A unit is admitted, worked on and committed as one; each of its queries is answered or refused on its own.
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
    """The promise of an answer of `dimension` numbers; `unit` is the work that keeps it, if it was admitted."""

    dimension = 0
    unit: "AdmittedUnit[Any] | None" = None


class QueryRequest(PendingAnswer):
    """One waiting query: analyst, idempotency key, and the plan under a version of the registration.

    `request_hash` tells two requests under one key apart. `asked` is what the store has to look up for the query.
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
    """The promised answers of one request, admitted together, at least one, their public cost, and who keeps them."""

    __slots__ = ("_is_decided", "_lock", "cost", "requests", "ticket", "writer")

    def __init__(self, requests: Sequence[Promise], cost: PublicCost, writer: Committing | None = None) -> None:
        self.requests, self.cost, self.writer = requests, cost, writer
        self.ticket: Ticket | None = None
        self._lock, self._is_decided = threading.Lock(), False  # whether it has begun, or never will
        for request in requests:
            request.unit = self

    def start(self) -> bool:
        """Mark the work as begun, once; False when the client has gone before."""
        is_first = self._decide()
        for request in self.requests if is_first else ():
            request.set_running_or_notify_cancel()
        return is_first

    def refuse(self) -> None:
        """Settle every promise with Busy."""
        self.fail(Busy())

    def fail(self, refusal: Exception) -> None:
        """Settle every promise with one refusal."""
        self.settle([refusal] * len(self.requests))

    def settle(self, outcomes: Sequence[StoredAnswer | Exception]) -> None:
        """Keep every promise; one that was cancelled meanwhile stays so."""
        for request, outcome in zip(self.requests, outcomes, strict=True):
            with suppress(InvalidStateError):
                if isinstance(outcome, Exception):
                    request.set_exception(outcome)
                else:
                    request.set_result(outcome)

    def cancel(self) -> None:
        """The client has gone: the work is not begun if it has not been. Work that has begun is finished and committed.

        Slots that have come are begun, whether or not the writer is behind: sequences must not depend on that.
        """
        if self.ticket is not None and not self.ticket.cancel():
            return
        if self._decide():
            for request in self.requests:
                request.cancel()

    def withdraw(self) -> bool:
        """The analyst has cancelled it, and it has left the schedule: fail every promise; False if it has begun."""
        is_first = self._decide()
        if is_first:
            self.fail(QueryCancelled())
        return is_first

    def _decide(self) -> bool:
        """Tell whether this is the first to decide: of a unit, either all is begun or nothing."""
        with self._lock:
            is_first, self._is_decided = not self._is_decided, True
        return is_first


class Submission(AdmittedUnit[QueryRequest]):
    """Queries of one analyst to one dataset, for its writer."""

    __slots__ = ()

    def is_asked(self, address: Address, writer: Committing) -> bool:
        """Tell whether one of the queries is of this dataset and under this key."""
        return self.writer is writer and any(request.address == address for request in self.requests)

    def begin(self, reservation: Reservation) -> None:
        """Hand it to its writer alone."""
        if self.writer is not None:
            self.writer.begin([self], reservation)

    @property
    def turn(self) -> int:
        """The principal whose turn it takes, as the number of its id: hashing a UUID is a call of Python."""
        return self.requests[0].analyst.id.int


def refused(refusal: Exception) -> PendingAnswer:
    """A promise that has failed already."""
    promise = PendingAnswer()
    promise.set_exception(refusal)
    return promise
