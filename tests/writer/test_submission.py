"""The outcome of a request whose client disconnects depends on public instants and its slots, on no real duration."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from uuid import UUID

import orjson
import pytest

from service.ledger.model.views import Principal
from service.query.cost import PublicCost, Speed
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.query.schema import Schema
from service.writer.admission.admission import Admission
from service.writer.admission.schedule import Reservation
from service.writer.admission.scheduler import START_NS, Scheduler, slot_rules
from service.writer.submission import AdmittedUnit, PendingAnswer, QueryRequest, Submission
from tests.factories import CLOCK, PEOPLE

SLOT_NS = 10_000_000
COST = PublicCost(time_ns=1_000_000, kept_bytes=100, working_bytes=100)


class Behind:
    """A writer that is still busy with earlier slots: it only takes requests that have begun."""

    def __init__(self) -> None:
        self.begun: list[Submission] = []

    def begin(self, jobs: Sequence[Submission], reservation: Reservation) -> None:
        self.begun += jobs

    def submit(self, submission: Submission) -> None:
        self.begun.append(submission)


class Hand:
    """A clock that the test sets."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Hand:
    """A clock at zero."""
    return Hand()


@pytest.fixture
def scheduled(clock: Hand) -> Iterator[Callable[[Behind], Submission]]:
    """A schedule with slots of 10 ms."""
    scheduler = Scheduler(slot_rules(SLOT_NS, Speed()), deadline_ns=10**10, now_ns=clock)
    with closing(scheduler):
        yield lambda writer: admitted(Admission(scheduler=scheduler), writer)


def admitted(admission: Admission, writer: Behind) -> Submission:
    """One query, admitted for a writer."""
    schema = Schema.model_validate({"people": PEOPLE})
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}}))
    analyst = Principal(id=UUID(int=1), role="analyst", name="ana", dataset=None, individual=None, allowance_units=None)
    plan = compile_query(query, schema, capacity=100, budget_units=2**40)
    request = QueryRequest(analyst=analyst, key="k", request_hash=b"", plan=plan, accepted_at=CLOCK)
    submission = Submission([request], COST, writer)
    submission.ticket = admission.admit(submission.turn, COST, submission, writer)
    return submission


def test_a_disconnect_before_its_slot_cancels_a_request(clock: Hand, scheduled: Callable[[Behind], Submission]) -> None:
    """The request leaves the schedule, and its future is cancelled."""
    writer = Behind()
    submission = scheduled(writer)
    clock.now_ns = SLOT_NS - 1
    submission.cancel()
    assert submission.requests[0].cancelled()
    clock.now_ns = 10 * SLOT_NS
    scheduled(writer)
    assert writer.begun == []


def test_slots_that_have_come_are_begun_however_late_the_writer_is(
    clock: Hand, scheduled: Callable[[Behind], Submission]
) -> None:
    """A disconnect after the slots have come changes nothing, though the writer has not looked at the request yet.

    Otherwise the next sequence number would say whether the writer was late, which depends on data.
    """
    writer = Behind()
    submission = scheduled(writer)
    clock.now_ns = SLOT_NS + START_NS
    submission.cancel()
    assert writer.begun == [submission]
    assert not submission.requests[0].cancelled()
    assert submission.start()


def test_without_slots_work_that_has_not_begun_is_not_begun() -> None:
    """Nothing is reserved then; whether the work has begun decides."""
    gone, begun = (admitted(Admission(), Behind()) for _ in range(2))
    assert begun.start()
    for submission in (gone, begun):
        submission.cancel()
    assert gone.requests[0].cancelled()
    assert not begun.requests[0].cancelled()
    assert not gone.start()


def test_the_queries_of_a_unit_begin_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disconnect while the writer takes up its batch leaves no unsettled future."""
    begun, gone = (AdmittedUnit([PendingAnswer() for _ in range(3)], COST) for _ in range(2))
    second, other = begun.requests[1], gone.requests[1]
    run, cancel = second.set_running_or_notify_cancel, other.cancel

    def run_while_the_client_goes() -> bool:
        begun.cancel()
        return run()

    def cancel_while_the_writer_comes() -> bool:
        assert not gone.start()
        return cancel()

    monkeypatch.setattr(second, "set_running_or_notify_cancel", run_while_the_client_goes)
    monkeypatch.setattr(other, "cancel", cancel_while_the_writer_comes)
    assert begun.start()
    assert all(answer.running() for answer in begun.requests)
    gone.cancel()
    assert all(answer.cancelled() for answer in gone.requests)
