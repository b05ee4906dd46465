"""Admission by public cost: refusals name both numbers; memory is bounded, shared, and given back exactly once."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.model.errors import Busy, InvalidRequest, Unavailable
from service.query.cost import PublicCost, Speed
from service.query.parse import parse_query
from service.workflows.queries.submit import compiled
from service.writer.admission.admission import Admission, MemoryBound, MemoryFull, RequestTooLarge, Ticket
from service.writer.admission.scheduler import START_NS, Dispatcher, slot_rules
from tests.factories import analyst, upload
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import surveyed

MS = 1_000_000
SLOT = 10 * MS


class Clock:
    """A clock that is set by the test."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Job:
    """A job that does nothing and counts its calls."""

    begun = refused = 0

    def begin(self, reservation: object) -> None:
        self.begun += 1

    def refuse(self) -> None:
        self.refused += 1


def cost(time_ms: float = 1, *, kept_bytes: int = 10, working_bytes: int = 0) -> PublicCost:
    """A public cost of this time and memory."""
    return PublicCost(time_ns=int(time_ms * MS), kept_bytes=kept_bytes, working_bytes=working_bytes)


def admission(clock: Clock | None = None, *, bytes_max: int = 1000, deadline_ms: int = 100) -> Admission:
    """Admission with slots on a clock that the test sets, or without slots."""
    dispatcher = None
    if clock is not None:
        dispatcher = Dispatcher(slot_rules(SLOT, Speed()), deadline_ns=deadline_ms * MS, now_ns=clock)
    return Admission(memory=MemoryBound(bytes_max), scheduler=dispatcher)


@pytest.mark.parametrize("clock", [Clock(), None], ids=["slots", "no slots"])
class TestMemory:
    """Memory bounds."""

    def test_a_request_that_never_fits_names_both_numbers(self, clock: Clock | None) -> None:
        """422; one principal may hold half of all memory."""
        admitting = admission(clock)
        with pytest.raises(InvalidRequest, match=r"need 501 bytes .* together have 500;") as refused:
            admitting.admit("ana", cost(kept_bytes=301, working_bytes=200), Job())
        assert [error.field for error in refused.value.errors] == ["query"]
        assert admitting.memory.requests == 0

    def test_a_request_that_does_not_fit_now_is_busy(self, clock: Clock | None) -> None:
        """429 until the held memory is given back, once."""
        admitting = admission(clock)
        ticket = admitting.admit("ana", cost(kept_bytes=400), Job())
        with pytest.raises(Busy) as refused:
            admitting.admit("ana", cost(kept_bytes=200), Job())
        assert refused.value.retry_after_s == 1
        for _ in range(2):
            ticket.release()
        assert admitting.memory.requests == 0
        admitting.admit("ana", cost(kept_bytes=200), Job())


class TestSlots:
    """Refusals for requests that cannot finish in time, and the state of those admitted."""

    def test_a_request_that_never_finishes_in_time_names_both_numbers(self) -> None:
        """422: its own slots plus the wait for the first exceed the deadline. Nothing is held for it."""
        admitting = admission(Clock())
        with pytest.raises(InvalidRequest, match=r"need 110 ms .* within 100 ms;"):
            admitting.admit("ana", cost(90), Job())
        assert admitting.memory.requests == 0

    def test_no_request_has_the_slots_of_more_than_five_seconds(self) -> None:
        """422 whatever the deadline: the cheapest query may have to wait that long for it."""
        admitting = admission(Clock(), deadline_ms=60_000)
        with pytest.raises(InvalidRequest, match=r"need 53\d\d ms .* within 5000 ms;"):
            admitting.admit("ana", cost(5000), Job())
        admitting.admit("ana", cost(4700), Job())
        assert admitting.memory.requests == 1

    def test_a_request_that_cannot_finish_in_time_now_is_busy(self) -> None:
        """429 with the seconds until it could be admitted."""
        clock = Clock()
        admitting = admission(clock, deadline_ms=100)
        admitting.admit("ana", cost(70), Job())
        with pytest.raises(Busy):
            admitting.admit("bo", cost(70), Job())
        assert admitting.memory.requests == 1

    def test_after_the_end_it_is_unavailable_and_holds_nothing(self) -> None:
        """503."""
        admitting = admission(Clock())
        assert admitting.scheduler is not None
        admitting.scheduler.close()
        with pytest.raises(Unavailable):
            admitting.admit("ana", cost(), Job())
        assert admitting.memory.requests == 0

    def test_a_ticket_says_when_the_response_leaves_once_that_is_decided(self) -> None:
        """The delay that its own cost means is known from the beginning."""
        clock = Clock()
        admitting = admission(clock)
        job = Job()
        ticket = admitting.admit("ana", cost(12), job)
        assert (ticket.is_scheduled, ticket.leaves_ns, ticket.delay_ms) == (True, None, 20)
        assert admitting.delay_ms(cost(12)) == 20
        clock.now_ns = SLOT + START_NS
        assert not ticket.cancel()
        assert (job.begun, ticket.leaves_ns) == (1, 3 * SLOT)

    def test_a_ticket_that_is_cancelled_in_time_begins_nothing(self) -> None:
        """Its memory is given back only when its response has ended."""
        clock = Clock()
        admitting = admission(clock)
        job = Job()
        ticket = admitting.admit("ana", cost(), job)
        assert ticket.cancel()
        clock.now_ns = 10 * SLOT
        admitting.admit("ana", cost(), Job())
        assert (job.begun, ticket.leaves_ns, admitting.memory.requests) == (0, None, 2)


def test_memory_is_given_back_once() -> None:
    """Repeated releases of one response give its memory back once."""
    admitting = admission()
    first, second = (admitting.admit("ana", cost(), Job()) for _ in range(2))
    held = admitting.memory.kept_bytes
    for _ in range(3):
        first.release()
    assert (admitting.memory.kept_bytes, admitting.memory.requests) == (held // 2, 1)
    second.release()
    assert (admitting.memory.kept_bytes, admitting.memory.requests) == (0, 0)


def test_without_slots_nothing_is_booked() -> None:
    """There is no delay and no instant; the caller begins the job."""
    admitting, job = admission(), Job()
    ticket: Ticket = admitting.admit("ana", cost(10**9), job)
    assert (ticket.is_scheduled, ticket.leaves_ns, ticket.delay_ms, admitting.delay_ms(cost(12))) == (False, None, 0, 0)
    assert ticket.cancel()
    assert (job.begun, job.refused) == (0, 0)


def test_a_larger_read_costs_more_of_both() -> None:
    """Two reads run at the same time, so no part of their cost counts as shared."""
    admitting = admission()
    one, two = admitting.read_cost(1000), admitting.read_cost(2000)
    assert one.time_ns < two.time_ns
    assert 1000 <= one.kept_bytes < two.kept_bytes
    assert one.working_bytes == two.working_bytes == 0


# The cost, and the size of what is really stored

PERSONS = 120
LONG = [("NO", "SE")[n % 2] for n in range(PERSONS)]
QUERIES: list[dict[str, Any]] = [
    {},
    {"where": {"ge": [{"col": "age"}, 40]}},
    {"select": [{"sum": {"column": "spend"}}]},
    {
        "select": [{"sum": {"column": "age"}}, {"count": {}}],
        "group_by": ["country"],
        "noise": {"sigma": [2400.1, 20.7]},
    },
    {"select": [{"sum": {"column": name}} for name in ("age", "spend")], "noise": {"share": 0.1}},
    {"select": [{"histogram": {"column": "age"}}], "group_by": ["country"]},
    {"select": [{"histogram": {"column": "age"}}], "noise": {"sigma": 1e9}},
    {"from": "visits", "per_individual": {"l2_clip": 4096}},
    {
        "from": "visits",
        "select": [{"histogram": {"column": "item"}}],
        "noise": {"sigma": 1e9},
        "per_individual": {"l2_clip": 4096},
    },
    {"where": {"in": [{"col": "age"}, [*range(1, 120, 2)]]}},
]


@pytest.mark.parametrize("asked", QUERIES)
def test_what_is_stored_of_a_query_never_exceeds_its_public_cost(asked: dict[str, Any]) -> None:
    """With a dataset filled to its capacity: the entry, its charges, the answer and the released numbers."""
    document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 20}} | asked
    with surveyed(people=[(f"p{n}", LONG[n], n % 100, n % 7) for n in range(PERSONS)], capacity=PERSONS) as replica:
        upload(replica, "visits", [(f"p{n}", item) for n in range(PERSONS) for item in range(n % 5)])
        who, record = analyst(replica), replica.registry.record("survey")
        query = parse_query(orjson.dumps(document))
        answer = replica.analysts.submit(who, "survey", "k", query).result(timeout=PATIENCE_S)
        with replica.registry.guard(record).transaction(lock=False) as transaction:
            (entry,) = transaction.entries(after=0)
        parts = (*(piece.content for piece in entry.pieces), entry.values, entry.canonical, answer.body)
        stored = sum(map(len, parts))
        public = replica.admission.cost_of(compiled(query, record), record)
    assert 3 * stored <= public.kept_bytes  # encoded, packed for the database, and the answer


MAX = 1000
costs = st.builds(PublicCost, time_ns=st.just(0), kept_bytes=st.integers(0, 300), working_bytes=st.integers(0, 300))
# A request (principal, writer, cost), or the index of a holder that releases its memory.
operations = st.lists(st.one_of(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), costs), st.integers(0, 100)))


def memory(kept_bytes: int = 0, working_bytes: int = 0) -> PublicCost:
    """A cost of this much memory and no time."""
    return PublicCost(time_ns=0, kept_bytes=kept_bytes, working_bytes=working_bytes)


@given(steps=operations)
def test_held_memory_stays_within_the_bound(steps: Sequence[tuple[str, str, PublicCost] | int]) -> None:
    """Kept memory plus the largest working memory of each worker; each principal always has its own share left."""
    bound, held = MemoryBound(MAX), list[tuple[str, str, PublicCost]]()
    for what in steps:
        if isinstance(what, int):
            if held:
                principal, worker, asked = held.pop(what % len(held))
                bound.release(principal, asked, worker)
            continue
        principal, worker, asked = what
        if asked.memory_bytes > MAX // 2:
            with pytest.raises(RequestTooLarge, match=f"{asked.memory_bytes} bytes of {MAX // 2}"):
                bound.admit(principal, asked, worker)
            continue
        try:
            bound.admit(principal, asked, worker)
        except MemoryFull:
            continue
        held.append((principal, worker, asked))
        working = sum(max((each.working_bytes for _, w, each in held if w == name), default=0) for name in "xy")
        used = sum(each.kept_bytes for _, _, each in held) + working
        own = sum(each.kept_bytes for name, _, each in held if name == principal) + asked.working_bytes
        assert used <= MAX
        assert own <= MAX - used
        assert bound.kept_bytes == used - working
    assert bound.requests == len(held)
    for principal, worker, asked in held:
        bound.release(principal, asked, worker)
    assert (bound.kept_bytes, bound.requests) == (0, 0)
    bound.admit("a", memory(kept_bytes=MAX // 2))


def test_one_principal_cannot_keep_others_out() -> None:
    """One principal can take half, in any pieces; the next one can take half of the rest."""
    bound = MemoryBound(MAX)

    def greedy(principal: str) -> int:
        taken = 0
        for size in (500, 100, 10, 1):
            while True:
                try:
                    bound.admit(principal, memory(kept_bytes=size))
                except MemoryFull:
                    break
                taken += size
        return taken

    assert [greedy(name) for name in "abc"] == [500, 250, 125]


def test_queries_of_one_worker_share_their_working_memory_and_those_of_two_do_not() -> None:
    """A dataset's queries are worked on one after the other, two datasets' at the same time."""
    bound = MemoryBound(MAX)
    for _ in range(5):
        bound.admit("a", memory(working_bytes=400), "x")
    bound.admit("b", memory(working_bytes=200), "y")
    with pytest.raises(MemoryFull):
        bound.admit("c", memory(working_bytes=300), "z")
