"""The dispatcher on a clock that the test sets, and the scheduler's thread on the real clock."""

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.model.errors import Unavailable
from service.query.cost import PublicCost, Speed
from service.writer.admission.schedule import Reservation, ScheduleFull, SlotRequest, SlotRules
from service.writer.admission.scheduler import (
    ACT_EVERY_NS,
    ACTS_WAITING_MAX,
    MARGIN_NS,
    RESERVE_PERCENT,
    START_NS,
    Act,
    Dispatcher,
    Scheduler,
    ServersOwn,
    slot_rules,
)
from tests.waiting import PATIENCE_S
from tests.workflows.slotwise import Asked, Slotwise

MS = 1_000_000
SLOT = 10 * MS
OWN = ServersOwn(7)
RULES = slot_rules(SLOT, Speed())
BEGIN = SLOT + START_NS
"""When the work of what arrives in the first slot begins."""


@dataclass(eq=False)
class Job:
    """A job that notes its calls."""

    clock: "Clock"
    begun: list[tuple[int, Reservation]] = field(default_factory=list)
    refused: int = 0

    def begin(self, reservation: Reservation) -> None:
        self.begun.append((self.clock.now_ns, reservation))

    def refuse(self) -> None:
        self.refused += 1


@dataclass(eq=False)
class Writer:
    """A writer that notes which jobs were handed over together."""

    clock: "Clock"
    begun: list[tuple[int, list[Job]]] = field(default_factory=list)

    def begin(self, jobs: Sequence[Job], reservation: Reservation) -> None:
        self.begun.append((self.clock.now_ns, list(jobs)))
        for job in jobs:
            job.begin(reservation)


@dataclass(eq=False)
class Clock:
    """A dispatcher on a clock that the test sets, with all events it reported."""

    now_ns: int = 0
    events: list[tuple[SlotRequest, str]] = field(default_factory=list)
    acts: list[int] = field(default_factory=list)
    deadline_ns: int = 10**12
    rules: SlotRules = RULES

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(
            self.rules,
            deadline_ns=self.deadline_ns,
            observe=lambda request, event: self.events.append((request, event)),
            now_ns=lambda: self.now_ns,
        )

    def at(self, now_ns: int) -> int | None:
        """Set the clock, and let the dispatcher look at it if it is due."""
        self.now_ns = now_ns
        return self.dispatcher.step()

    def reserve(
        self, cost_ms: float = 1, *, writer: Writer | None = None, principal: str = "ana"
    ) -> tuple[Job, SlotRequest]:
        """A job that arrives now."""
        job = Job(self)
        request = waiting(cost_ms, job, writer=writer, principal=principal)
        self.dispatcher.reserve(request)
        return job, request

    def act(self) -> None:
        """Submit an act that wants a free slot; its slot is noted when it begins."""
        self.dispatcher.when_free(lambda _: self.acts.append(self.now_ns), OWN)


def waiting(cost_ms: float, job: object, *, writer: object = None, principal: Hashable = "ana") -> SlotRequest:
    """A request that has not arrived yet."""
    cost = PublicCost(time_ns=int(cost_ms * MS), kept_bytes=0, working_bytes=0)
    return SlotRequest(principal=principal, cost=cost, job=job, commits_to=writer)


def noting(begun: list[str], name: str) -> Act:
    """An act that notes its name."""
    return lambda _begins_ns: begun.append(name)


def setting(event: threading.Event) -> Act:
    """An act that sets an event."""
    return lambda _begins_ns: event.set()


@pytest.fixture
def clock() -> Clock:
    """A clock at zero, the beginning of a slot."""
    return Clock()


class TestBegin:
    """The instants at which work is handed over."""

    def test_work_begins_half_a_millisecond_after_its_slot_does(self, clock: Clock) -> None:
        """At the start of a slot the responses of the previous reservation leave, and nothing else runs."""
        job, request = clock.reserve()
        assert clock.at(SLOT - 1) == BEGIN
        assert clock.at(BEGIN - 1) == BEGIN
        assert (job.begun, request.reservation) == ([], Reservation(SLOT, 2 * SLOT))
        assert clock.at(BEGIN) is None
        assert job.begun == [(BEGIN, Reservation(SLOT, 2 * SLOT))]

    def test_later_arrivals_are_not_in_a_slot_that_has_begun(self, clock: Clock) -> None:
        """This holds also in the half millisecond before the slot's work begins."""
        first, _ = clock.reserve()
        clock.now_ns = SLOT
        late, request = clock.reserve()
        assert clock.at(BEGIN) == BEGIN + SLOT
        assert len(first.begun) == 1
        assert late.begun == []
        clock.at(BEGIN + SLOT)
        assert request.reservation == Reservation(2 * SLOT, 3 * SLOT)

    def test_the_jobs_of_one_writer_are_handed_over_together(self, clock: Clock) -> None:
        """In the order of their turns; jobs without a writer begin separately."""
        one, other = Writer(clock), Writer(clock)
        jobs = [clock.reserve(writer=writer)[0] for writer in (one, None, other, one, None, other)]
        clock.at(BEGIN)
        assert [each for _, each in one.begun] == [[jobs[0], jobs[3]]]
        assert [each for _, each in other.begun] == [[jobs[2], jobs[5]]]
        assert all(len(job.begun) == 1 for job in jobs)

    def test_every_public_event_is_reported(self, clock: Clock) -> None:
        """Arrivals, including those refused at once; disconnects; beginnings."""
        _, begun = clock.reserve()
        _, gone = clock.reserve()
        clock.dispatcher.cancel(gone)
        clock.dispatcher.deadline_ns = 1
        with pytest.raises(Exception, match="needs"):
            clock.reserve(2)
        clock.at(BEGIN)
        assert [(request.cost.time_ns // MS, event) for request, event in clock.events] == [
            (1, "arrived"),
            (1, "arrived"),
            (1, "cancelled"),
            (2, "arrived"),
            (1, "begun"),
        ]
        assert clock.events[-1][0] is begun

    def test_a_request_that_can_no_longer_finish_in_time_is_refused_once(self, clock: Clock) -> None:
        """Other requests have come since and are before it: none of its work begins."""
        for _ in range(2):
            clock.reserve(150)
        clock.at(BEGIN)
        clock.dispatcher.deadline_ns = 61 * SLOT
        late, request = clock.reserve(150)
        clock.dispatcher.deadline_ns = clock.deadline_ns
        for n in range(6):
            clock.reserve(150, principal=f"other {n}")
        clock.at(200 * SLOT)
        assert (late.begun, late.refused, request.reservation) == ([], 1, None)
        assert [event for told, event in clock.events if told is request] == ["arrived", "refused"]


class TestCancel:
    """Clients that disconnect."""

    def test_before_its_slot_its_work_never_begins(self, clock: Clock) -> None:
        """The job is told once."""
        job, request = clock.reserve()
        clock.now_ns = SLOT - 1
        assert clock.dispatcher.cancel(request)
        assert not clock.dispatcher.cancel(request)
        assert clock.at(BEGIN) is None
        assert (job.begun, request.reservation, request.cancelled_ns) == ([], None, SLOT - 1)

    @pytest.mark.parametrize("late_ns", [0, 1, START_NS - 1, START_NS, SLOT])
    def test_from_the_beginning_of_its_slot_on_it_changes_nothing(self, clock: Clock, late_ns: int) -> None:
        """This holds also if its work was not handed over, or its slot was not noticed yet."""
        job, request = clock.reserve()
        clock.now_ns = SLOT + late_ns
        assert not clock.dispatcher.cancel(request)
        clock.at(10 * SLOT)
        assert len(job.begun) == 1
        assert request.reservation == Reservation(SLOT, 2 * SLOT)

    def test_a_request_that_is_withdrawn_never_begins(self, clock: Clock) -> None:
        """Its slots are for the next one; of two requests the meant one goes."""
        meant, request = clock.reserve()
        other, _ = clock.reserve()
        assert clock.dispatcher.withdraw(lambda job: job is meant) is meant
        assert clock.dispatcher.withdraw(lambda job: job is meant) is None
        clock.at(BEGIN)
        assert (len(meant.begun), len(other.begun), request.reservation) == (0, 1, None)


class TestActs:
    """Acts, whose work must not delay analysts."""

    def test_an_act_begins_where_a_free_slot_does(self, clock: Clock) -> None:
        """It begins half a millisecond into the first free slot after its arrival, as any work would."""
        clock.now_ns = 3 * MS
        clock.act()
        clock.at(4 * MS)
        assert clock.acts == [4 * MS]

    def test_it_does_not_begin_late_in_a_slot(self, clock: Clock) -> None:
        """Less than half of the slot would be left for it."""
        clock.now_ns = SLOT // 2
        clock.act()
        assert clock.at(SLOT // 2) == BEGIN
        assert clock.at(BEGIN - 1) == BEGIN
        assert clock.acts == []
        assert clock.at(BEGIN) is None
        assert clock.acts == [BEGIN]

    def test_one_act_begins_in_a_slot(self, clock: Clock) -> None:
        """One act per slot, however many wait and however often the dispatcher looks at the clock."""
        for _ in range(3):
            clock.act()
        for now_ns in range(0, 4 * SLOT, MS // 2):
            clock.at(now_ns)
        assert clock.acts == [START_NS, BEGIN, BEGIN + SLOT]

    def test_in_short_slots_acts_begin_no_more_often(self) -> None:
        """They would queue up, and a reservation has room for the rest of one."""
        clock = Clock(rules=slot_rules(2 * MS, Speed()))
        for _ in range(3):
            clock.act()
        for now_ns in range(0, 40 * MS, MS // 4):
            clock.at(now_ns)
        assert clock.acts == [START_NS, START_NS + ACT_EVERY_NS, START_NS + 2 * ACT_EVERY_NS]

    def test_in_the_shortest_slots_acts_begin_too(self) -> None:
        """Half of such a slot is over when work may begin in it."""
        clock = Clock(rules=slot_rules(MS, Speed()))
        clock.act()
        clock.now_ns = MS // 4
        assert clock.at(2 * START_NS - 1) is None
        assert clock.acts == [2 * START_NS - 1]

    def test_an_act_that_waits_wakes_nobody_before_it_may_begin(self) -> None:
        """Neither in the slots of a reservation nor in those after another act."""
        clock = Clock(rules=slot_rules(2 * MS, Speed()))
        _, request = clock.reserve(30)
        clock.at(2 * MS + START_NS)
        clock.act()
        clock.act()
        assert request.leaves_ns is not None
        free_ns = request.leaves_ns + START_NS
        assert clock.at(3 * MS) == free_ns
        assert clock.at(free_ns) == free_ns + ACT_EVERY_NS
        assert clock.at(free_ns + ACT_EVERY_NS) is None
        assert clock.acts == [free_ns, free_ns + ACT_EVERY_NS]

    def test_no_act_begins_in_a_reserved_slot(self, clock: Clock) -> None:
        """Three slots of work precede the act; work already waiting for the next slot goes before it."""
        clock.now_ns = 6 * MS
        clock.reserve(20)
        clock.act()
        for now_ns in range(6 * MS, 6 * SLOT, MS // 2):
            clock.at(now_ns)
        assert clock.acts == [4 * SLOT + START_NS]

    def test_under_load_a_slot_is_left_for_acts(self, clock: Clock) -> None:
        """Under any load a slot is free once sixteen in a row are full, which two reservations may exceed."""
        for _ in range(40):
            clock.reserve(140)
        clock.act()
        clock.act()
        clock.now_ns = SLOT
        for now_ns in range(SLOT, 70 * SLOT, MS // 2):
            clock.at(now_ns)
        reserved = {
            slot
            for request, event in clock.events
            if event == "begun" and request.reservation is not None
            for slot in range(request.reservation.begins_ns, request.reservation.leaves_ns, SLOT)
        }
        assert len(clock.acts) == 2
        assert not {now_ns // SLOT * SLOT for now_ns in clock.acts} & reserved
        assert clock.acts[1] < (1 + 2 * 31) * SLOT

    def test_an_act_is_told_the_beginning_of_its_slot(self, clock: Clock) -> None:
        """However late in it the act begins."""
        told: list[int] = []
        clock.dispatcher.when_free(told.append, OWN)
        clock.at(SLOT + 3 * MS)
        assert told == [SLOT]

    def test_acts_of_several_principals_take_turns(self, clock: Clock) -> None:
        """A crowd of one does not keep others waiting; the server has turns of its own for each dataset."""
        begun: list[str] = []
        for principal in ("ida", "ida", "ida", "ivo", OWN, ServersOwn(8)):
            clock.dispatcher.when_free(noting(begun, str(principal)), principal)
        for now_ns in range(0, 7 * SLOT, MS // 2):
            clock.at(now_ns)
        assert begun == ["ida", "ivo", str(OWN), str(ServersOwn(8)), "ida", "ida"]

    def test_a_principal_with_half_of_the_places_is_refused(self, clock: Clock) -> None:
        """Another is not, nor is the server itself."""
        for _ in range(ACTS_WAITING_MAX // 2):
            clock.dispatcher.when_free(lambda _: None, "ida")
        with pytest.raises(ScheduleFull):
            clock.dispatcher.when_free(lambda _: None, "ida")
        for principal in ("ivo", OWN):
            clock.dispatcher.when_free(lambda _: None, principal)

    def test_an_act_that_is_forgotten_never_begins(self, clock: Clock) -> None:
        """And the next one has its slot; one that has begun cannot be forgotten."""
        begun: list[str] = []
        acts = [noting(begun, name) for name in ("first", "second")]
        for act in acts:
            clock.dispatcher.when_free(act, OWN)
        clock.dispatcher.forget(acts[0])
        clock.at(START_NS)
        clock.dispatcher.forget(acts[1])
        clock.at(4 * SLOT)
        assert begun == ["second"]


def test_an_instant_within_a_reservation_is_free_at_its_end(clock: Clock) -> None:
    """Its first and last instants are free, as are all others; earlier reservations are remembered."""
    _, first = clock.reserve(20)
    clock.at(SLOT)
    _, second = clock.reserve(20)
    clock.now_ns = 10 * SLOT
    clock.dispatcher.step()
    spans = [(each.reservation.begins_ns, each.reservation.leaves_ns) for each in (first, second) if each.reservation]
    assert spans == [(SLOT, 4 * SLOT), (4 * SLOT, 7 * SLOT)]
    instants = {0: 0, SLOT: SLOT, SLOT + 1: 4 * SLOT, 4 * SLOT: 4 * SLOT, 5 * SLOT: 7 * SLOT, 8 * SLOT: 8 * SLOT}
    assert {instant_ns: clock.dispatcher.free_from_ns(instant_ns) for instant_ns in instants} == instants


class TestClose:
    """Closing the dispatcher."""

    def test_waiting_jobs_are_refused_and_scheduled_ones_begin(self, clock: Clock) -> None:
        """Every job gets exactly one call, and every act begins."""
        due, _ = clock.reserve(150)
        waiting, _ = clock.reserve(150)
        clock.now_ns = SLOT
        arriving, _ = clock.reserve()
        clock.act()
        clock.act()
        clock.dispatcher.close()
        assert [(len(job.begun), job.refused) for job in (due, waiting, arriving)] == [(1, 0), (0, 1), (0, 1)]
        assert clock.acts == [SLOT, SLOT]
        assert clock.dispatcher.step() is None

    def test_submissions_after_the_end_are_settled_at_once(self, clock: Clock) -> None:
        """Jobs are refused, acts are begun at once; closing again changes nothing."""
        clock.dispatcher.close()
        clock.dispatcher.close()
        with pytest.raises(Unavailable):
            clock.reserve()
        clock.act()
        assert clock.acts == [0]
        assert clock.events == []


# Any events at any times, also several between two looks at the clock

happenings = st.lists(
    st.tuples(st.integers(0, 30 * MS), st.sampled_from(["step", "act", "go", 0.1, 1, 8, 30, 140, 400])), max_size=40
)


@given(happening=happenings, looks=st.sets(st.integers(0, 2000 * MS), max_size=40))
def test_a_plain_simulation_says_what_begins_when(
    happening: Sequence[tuple[int, str | float]], looks: set[int]
) -> None:
    """The result does not depend on when the dispatcher looks; no work and no act begins before its time."""
    clock, made = Clock(), list[tuple[Job, SlotRequest]]()
    instant_ns = 0
    agenda: list[tuple[int, str | float]] = [(look, "step") for look in looks]
    for after_ns, what in happening:
        instant_ns += after_ns
        agenda.append((instant_ns, what))
    for now_ns, what in sorted(agenda, key=lambda each: each[0]):
        clock.now_ns = now_ns
        if what == "step":
            clock.dispatcher.step()
        elif what == "act":
            clock.act()
        elif what == "go":
            if made:
                clock.dispatcher.cancel(made[now_ns % len(made)][1])
        else:
            made.append(clock.reserve(float(what), principal=f"{now_ns % 3}"))
    clock.at(10**11)
    plain = [_asked(request) for _, request in made]
    Slotwise(rules=RULES).run(plain, until_ns=40_000 * MS)
    for (job, request), asked in zip(made, plain, strict=True):
        reservation = request.reservation
        assert (None if reservation is None else (reservation.begins_ns, reservation.leaves_ns)) == asked.slots
        assert [each for _, each in job.begun] == ([] if reservation is None else [reservation])
        assert all(now_ns >= each.begins_ns + START_NS for now_ns, each in job.begun)
    reserved = {slot for asked in plain if asked.slots is not None for slot in range(*asked.slots, SLOT)}
    assert not {(now_ns - START_NS) // SLOT * SLOT for now_ns in clock.acts} & reserved


def _asked(request: SlotRequest, *, zero_ns: int = 0) -> Asked:
    return Asked(
        principal=request.principal,
        cost_ns=request.cost.time_ns,
        arrived_ns=request.arrived_ns - zero_ns,
        leave_before_ns=request.leave_before_ns - zero_ns,
        dataset=request.commits_to,
        cancelled_ns=None if request.cancelled_ns is None else request.cancelled_ns - zero_ns,
    )


# On the real clock


class Worker:
    """A writer that notes the time of the scheduler's clock at which it was handed work."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.begun: list[tuple[int, Reservation]] = []

    def begin(self, jobs: Sequence["Waiting"], reservation: Reservation) -> None:
        self.begun.append((self.scheduler.now_ns(), reservation))
        for job in jobs:
            job.begin(reservation)


class Waiting:
    """A job that lets its request's thread continue."""

    def __init__(self) -> None:
        self.settled = threading.Event()

    def begin(self, reservation: Reservation) -> None:
        self.settled.set()

    def refuse(self) -> None:
        self.settled.set()


@pytest.fixture
def requests() -> list[SlotRequest]:
    """All observed requests, in order of arrival."""
    return []


@pytest.fixture
def scheduler(requests: list[SlotRequest]) -> Iterator[Scheduler]:
    """A scheduler with slots of 10 ms on the real clock."""

    def observe(request: SlotRequest, event: str) -> None:
        if event == "arrived":
            requests.append(request)

    with closing(Scheduler(RULES, deadline_ns=60_000 * MS, observe=observe)) as made:
        yield made


def test_on_the_real_clock_every_slot_is_what_the_public_events_say(
    scheduler: Scheduler, requests: list[SlotRequest]
) -> None:
    """Four principals ask, and some disconnect: a plain simulation of the public events gives the same slots."""
    worker = Worker(scheduler)

    def ask(number: int) -> None:
        random = Random(number)
        for _ in range(12):
            cost_ms, job = random.choice([1, 3, 20, 60]), Waiting()
            request = waiting(cost_ms, job, writer=worker if random.random() < 0.8 else None, principal=number % 4)
            scheduler.reserve(request)
            if random.random() < 0.3 and scheduler.cancel(request):
                continue
            assert job.settled.wait(PATIENCE_S)

    threads = [threading.Thread(target=ask, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(requests) == 8 * 12
    zero_ns = requests[0].arrived_ns // SLOT * SLOT
    plain = [_asked(request, zero_ns=zero_ns) for request in requests]
    Slotwise(rules=RULES).run(plain, until_ns=60_000 * MS)
    for request, asked in zip(requests, plain, strict=True):
        assert asked.slots == (
            None
            if request.reservation is None
            else (request.reservation.begins_ns - zero_ns, request.reservation.leaves_ns - zero_ns)
        )
    assert all(begun_ns >= reservation.begins_ns + START_NS for begun_ns, reservation in worker.begun)
    assert {asked.slots is None for asked in plain} == {False, True}


def test_on_the_real_clock_an_act_waits_for_a_free_slot_and_is_not_forgotten(scheduler: Scheduler) -> None:
    """An act before, after and without requests."""
    acts = [threading.Event() for _ in range(4)]
    scheduler.when_free(setting(acts[0]), OWN)
    assert acts[0].wait(PATIENCE_S)
    request = waiting(30, Waiting())
    scheduler.reserve(request)
    for act in acts[1:]:
        scheduler.when_free(setting(act), OWN)
    assert all(act.wait(PATIENCE_S) for act in acts)
    assert request.reservation is not None


def test_the_thread_ends_with_the_scheduler(requests: list[SlotRequest]) -> None:
    """Closing refuses the waiting requests."""
    scheduler = Scheduler(RULES, deadline_ns=10**15)
    jobs = [Waiting() for _ in range(3)]
    for job in jobs:
        scheduler.reserve(waiting(10**6, job))
    scheduler.close()
    scheduler.close()
    assert all(job.settled.is_set() for job in jobs)
    assert not scheduler._thread.is_alive()


def test_the_rules_follow_from_the_speed() -> None:
    """A commit's time, the margin and a reserve for the work are kept free in every reservation."""
    rules = slot_rules(SLOT, Speed(commit=2.8 * MS))
    assert rules == SlotRules(
        slot_ns=SLOT,
        commit_ns=2_800_000,
        margin_ns=START_NS + MARGIN_NS,
        reserve_percent=RESERVE_PERCENT,
        free_ns=4_300_000,
    )
    assert rules.slots(5 * MS, 1) == 1  # and 0.3 ms of reserve
    assert rules.slots(6 * MS, 1) == 2
    assert rules.slots(5 * MS, 2) == 2


def test_in_short_slots_work_has_room_for_the_rest_of_an_act() -> None:
    """The act began a slot before, and commits; under load it finds a commit and a margin free."""
    rules = slot_rules(2 * MS, Speed(commit=2.8 * MS))
    assert rules.margin_ns == START_NS + MARGIN_NS + 800_000
    assert rules.rest_ns == 6 * MS
    assert (rules.shared_slots_max, rules.busy_slots_max) == (80, 80)
    assert rules.refused_ns(0) == 10 * MS
