"""The queries of one request: admitted, worked on and committed as one unit, each answered or refused on its own."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Protocol
from uuid import UUID

from service.query.cost import PublicCost
from service.workflows.admission.admission import Ticket
from service.workflows.admission.schedule import Reservation
from service.workflows.model.analyst_views import StoredAnswer
from service.workflows.model.errors import Busy, QueryCancelled
from service.workflows.model.rows import Address
from service.workflows.writer.batch import QueryRequest


class PendingAnswer(Future[StoredAnswer]):
    """The promise of an answer of `dimension` numbers, one of those that were admitted together as a `unit`."""

    def __init__(self, dimension: int, unit: "AdmittedUnit | None" = None) -> None:
        super().__init__()
        self.dimension, self.unit = dimension, unit


class AdmittedUnit:
    """The promised answers of one request, admitted together, and their public cost."""

    __slots__ = ("_is_decided", "_lock", "answers", "cost", "ticket")

    def __init__(self, dimensions: Iterable[int], cost: PublicCost) -> None:
        self.cost = cost
        self.answers = [PendingAnswer(dimension, self) for dimension in dimensions]
        self.ticket: Ticket | None = None
        self._lock, self._is_decided = threading.Lock(), False  # whether it has begun, or never will

    def start(self) -> bool:
        """Mark the work as begun, once; False when the client has gone before."""
        is_first = self._decide()
        for answer in self.answers if is_first else ():
            answer.set_running_or_notify_cancel()
        return is_first

    def refuse(self) -> None:
        """Settle every promise with Busy."""
        self.settle([Busy() for _ in self.answers])

    def settle(self, outcomes: Sequence[StoredAnswer | Exception]) -> None:
        """Keep every promise; one that was cancelled meanwhile stays so."""
        for answer, outcome in zip(self.answers, outcomes, strict=True):
            with suppress(InvalidStateError):
                if isinstance(outcome, Exception):
                    answer.set_exception(outcome)
                else:
                    answer.set_result(outcome)

    def cancel(self) -> None:
        """The client has gone: the work is not begun if it has not been. What has begun is finished and committed.

        Slots that have come are begun, whether or not the writer is behind: sequences must not depend on that.
        """
        if self.ticket is not None and not self.ticket.cancel():
            return
        if self._decide():
            for answer in self.answers:
                answer.cancel()

    def withdraw(self) -> bool:
        """The analyst has cancelled it, and it has left the schedule: fail every promise; False if it has begun."""
        is_first = self._decide()
        if is_first:
            self.settle([QueryCancelled() for _ in self.answers])
        return is_first

    def _decide(self) -> bool:
        """Whether this is the first to decide: of a unit, either all is begun or nothing."""
        with self._lock:
            is_first, self._is_decided = not self._is_decided, True
        return is_first


class Submission(AdmittedUnit):
    """Queries of one analyst to one dataset, at least one, with the promises of their answers in the same order."""

    __slots__ = ("requests", "writer")

    def __init__(self, requests: Sequence[QueryRequest], cost: PublicCost, writer: "Writing") -> None:
        super().__init__([request.plan.dimension for request in requests], cost)
        self.requests, self.writer = requests, writer

    def is_asked(self, address: Address, writer: "Writing") -> bool:
        """Whether one of the queries is of this dataset and under this key."""
        return self.writer is writer and any(request.address == address for request in self.requests)

    @property
    def analyst_id(self) -> UUID:
        """The principal whose turn it takes."""
        return self.requests[0].analyst.id

    def begin(self, reservation: Reservation) -> None:
        """Hand it to its writer alone."""
        self.writer.begin([self], reservation)


class Writing(Protocol):
    """A dataset's writer, as far as submissions go."""

    def begin(self, jobs: Sequence[Submission], reservation: Reservation) -> None:
        """Work on them now, in one transaction."""

    def submit(self, submission: Submission) -> None:
        """Let one wait for the next transaction."""


def refused(refusal: Exception) -> PendingAnswer:
    """A promise that has failed already."""
    promise = PendingAnswer(0)
    promise.set_exception(refusal)
    return promise
