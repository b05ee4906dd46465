"""Slots, order and instants follow from arrivals, disconnects and public costs; turns in the queue keep a law."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import eq
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.cost import PublicCost
from service.writer.admission import schedule as module
from service.writer.admission.schedule import (
    FairQueue,
    RequestTooCostly,
    Schedule,
    ScheduleFull,
    SlotRequest,
    SlotRules,
)
from tests.workflows.slotwise import Asked, Slotwise

SLOT = 1000
RULES = SlotRules(
    slot_ns=SLOT, commit_ns=400, margin_ns=150, shared_ns=16 * SLOT, busy_ns=16 * SLOT, free_ns=SLOT, refusal_ns=SLOT
)
FINE = replace(RULES, reserve_percent=12, shared_ns=7 * SLOT + 300, busy_ns=20 * SLOT + 1, free_ns=2 * SLOT + 1)
"""Lengths that are no whole slots, and a reserve."""
COARSE = replace(RULES, reserve_percent=12, shared_ns=SLOT - 1, busy_ns=SLOT - 1, free_ns=1)
"""Slots longer than what may be shared."""
rules_of_tests = st.sampled_from([RULES, FINE, COARSE])
FAR = 10**9


@dataclass(frozen=True, kw_only=True)
class Event:
    """An arrival `after_ns` after the previous one, and optionally a disconnect of its client."""

    after_ns: int
    principal: int
    cost_ns: int
    dataset: int | None
    deadline_ns: int
    goes_after_ns: int | None


def events(*, deadlines: st.SearchStrategy[int]) -> st.SearchStrategy[list[Event]]:
    """Bursts and pauses; costs around a slot, around what is shared, and above; instants on slots and beside them."""
    costs = st.one_of(st.integers(1, SLOT), st.integers(1, 4 * SLOT), st.sampled_from([450, 7 * SLOT, 15_450, 15_451]))
    costs = st.one_of(costs, st.integers(SLOT, 40 * SLOT))
    spans = st.one_of(st.just(0), st.just(0), st.integers(0, SLOT), st.just(SLOT), st.integers(0, 30 * SLOT))
    one = st.builds(
        Event,
        after_ns=spans,
        principal=st.integers(0, 3),
        cost_ns=costs,
        dataset=st.sampled_from([None, 0, 0, 1]),
        deadline_ns=deadlines,
        goes_after_ns=st.integers(0, 4).flatmap(lambda draw: spans if draw == 0 else st.none()),
    )
    return st.integers(0, 25).flatmap(lambda count: st.lists(one, min_size=count, max_size=count))


NEAR_OR_FAR = st.sampled_from([20 * SLOT, 60 * SLOT, 150 * SLOT, 150 * SLOT + 1, FAR])
extra_instants = st.lists(st.integers(0, 400 * SLOT), max_size=30)


def request_of(event: Event, arrived_ns: int) -> SlotRequest:
    """The request of an arrival."""
    return SlotRequest(
        principal=event.principal,
        cost=PublicCost(time_ns=event.cost_ns, kept_bytes=0, working_bytes=0),
        arrived_ns=arrived_ns,
        leave_before_ns=arrived_ns + event.deadline_ns,
        commits_to=event.dataset,
    )


@dataclass
class Played:
    """A schedule after some events; `requests` holds the admitted ones, in order of arrival."""

    requests: list[SlotRequest]
    refused: list[SlotRequest]
    begun: list[tuple[int, int, list[SlotRequest]]]


def play(happening: Sequence[Event], *, rules: SlotRules = RULES, extra: Sequence[int] = ()) -> Played:
    """Apply every arrival and disconnect to a schedule at its instant, and advance it to further instants."""
    schedule, played = Schedule(rules), Played([], [], [])

    def advance(now_ns: int) -> None:
        progress = schedule.advance(now_ns)
        played.refused.extend(progress.refused)
        for begun in progress.begun:
            played.begun.append((begun.reservation.begins_ns, begun.reservation.leaves_ns, list(begun.requests)))

    agenda: list[tuple[int, int, SlotRequest | None]] = [(instant, -1, None) for instant in extra]
    now_ns = 0
    for event in happening:
        now_ns += event.after_ns
        request = request_of(event, now_ns)
        agenda.append((now_ns, 2 * len(agenda), request))
        if event.goes_after_ns is not None:
            agenda.append((now_ns + event.goes_after_ns, 2 * len(agenda) + 1, request))
    for instant, place, asked in sorted(agenda, key=lambda each: each[:2]):
        advance(instant)
        if asked is None:
            continue
        if place % 2 == 0:
            with suppress(RequestTooCostly, ScheduleFull):
                schedule.admit(asked)
                played.requests.append(asked)
        elif asked in played.requests:
            schedule.cancel(asked, instant)
    advance(FAR)
    assert schedule.waiting == 0
    return played


@given(happening=events(deadlines=NEAR_OR_FAR), rules=rules_of_tests)
def test_a_plain_simulation_gives_the_same_reservations(happening: list[Event], rules: SlotRules) -> None:
    """Slot by slot, from the same public events; the refusals agree too."""
    played = play(happening, rules=rules)
    asked = [
        Asked(
            principal=request.principal,
            cost_ns=request.cost.time_ns,
            arrived_ns=request.arrived_ns,
            leave_before_ns=request.leave_before_ns,
            dataset=request.commits_to,
            cancelled_ns=request.cancelled_ns,
        )
        for request in played.requests
    ]
    Slotwise(rules=rules).run(asked, until_ns=3000 * SLOT)
    for request, plain in zip(played.requests, asked, strict=True):
        reservation = request.reservation
        assert (None if reservation is None else (reservation.begins_ns, reservation.leaves_ns)) == plain.slots
        assert any(request is each for each in played.refused) == plain.is_refused
        assert (plain.slots is None) == (plain.is_refused or request.cancelled_ns is not None)


@given(happening=events(deadlines=NEAR_OR_FAR), extra=extra_instants, rules=rules_of_tests)
def test_only_public_events_count_and_not_when_the_time_was_noticed(
    happening: list[Event], extra: list[int], rules: SlotRules
) -> None:
    """Advancing at further instants changes no reservation, no refusal and no order."""
    one, other = play(happening, rules=rules), play(happening, rules=rules, extra=extra)
    assert [(begins, leaves, [each.arrived_ns for each in requests]) for begins, leaves, requests in one.begun] == [
        (begins, leaves, [each.arrived_ns for each in requests]) for begins, leaves, requests in other.begun
    ]
    assert [each.leaves_ns for each in one.requests] == [each.leaves_ns for each in other.requests]
    assert [each.cancelled_ns for each in one.requests] == [each.cancelled_ns for each in other.requests]


@given(happening=events(deadlines=NEAR_OR_FAR), rules=rules_of_tests)
def test_reservations_are_whole_slots_that_follow_the_arrivals_and_never_overlap(
    happening: list[Event], rules: SlotRules
) -> None:
    """Each holds its requests' costs, their reserve, commits and margin, and is no longer than it must be."""
    played = play(happening, rules=rules)
    for begins_ns, leaves_ns, requests in played.begun:
        assert begins_ns % SLOT == leaves_ns % SLOT == 0
        assert all(request.arrived_ns < begins_ns for request in requests)
        assert all(leaves_ns <= request.leave_before_ns for request in requests)
        commits = len({request.commits_to for request in requests} - {None})
        work_ns = sum(request.cost.time_ns for request in requests)
        needed_ns = work_ns * (100 + rules.reserve_percent) // 100 + commits * rules.commit_ns + rules.margin_ns
        assert needed_ns <= leaves_ns - begins_ns < needed_ns + SLOT
        assert len(requests) == 1 or leaves_ns - begins_ns <= max(rules.shared_ns, SLOT)
    assert all(one[1] <= other[0] for one, other in pairwise(played.begun))


@given(happening=events(deadlines=st.just(FAR)), rules=rules_of_tests)
def test_no_more_than_a_reservation_and_the_busy_time_pass_without_free_slots(
    happening: list[Event], rules: SlotRules
) -> None:
    """An act therefore finds its time free, whatever analysts ask for."""
    busy_ns = 0
    played = play(happening, rules=rules)
    for before, (begins_ns, leaves_ns, _) in zip([None, *played.begun], played.begun, strict=False):
        if before is not None and busy_ns >= rules.busy_ns:
            assert begins_ns >= before[1] + rules.free_ns
        busy_ns = busy_ns if before is not None and before[1] == begins_ns else 0
        assert busy_ns < rules.busy_ns
        busy_ns += leaves_ns - begins_ns


@given(happening=events(deadlines=st.just(FAR)), late_ns=st.integers(0, 60 * SLOT), cost_ns=st.integers(1, 450))
def test_a_crowd_delays_another_principals_request_by_one_reservation_and_its_own(
    happening: list[Event], late_ns: int, cost_ns: int
) -> None:
    """However many requests one principal has waiting, at most one more of its reservations begins before."""
    schedule, now_ns = Schedule(RULES), 0
    for event in happening:
        now_ns += event.after_ns
        schedule.advance(now_ns)
        schedule.admit(request_of(Event(**{**vars(event), "principal": 0}), now_ns))
    now_ns += late_ns
    schedule.advance(now_ns)
    cheap = Event(after_ns=0, principal=1, cost_ns=cost_ns, dataset=0, deadline_ns=FAR, goes_after_ns=None)
    request = request_of(cheap, now_ns)
    schedule.admit(request)
    reservations = [begun.reservation for begun in schedule.advance(FAR).begun]
    assert request.reservation in reservations[:2]
    first = reservations[0]
    if request.reservation is not first:
        assert first.leaves_ns - first.begins_ns > 15 * SLOT
    assert request.reservation is not None
    assert request.reservation.leaves_ns - request.reservation.begins_ns <= 16 * SLOT


@given(happening=events(deadlines=st.just(FAR)), last=events(deadlines=st.just(FAR)), rules=rules_of_tests)
def test_a_request_leaves_by_its_estimate_if_nothing_comes_after_it(
    happening: list[Event], last: list[Event], rules: SlotRules
) -> None:
    """Admission uses this estimate; disconnects of other clients only bring it forward."""
    schedule, now_ns, waiting = Schedule(rules), 0, list[SlotRequest]()
    for event in [*happening, *last[:1]]:
        now_ns += event.after_ns
        schedule.advance(now_ns)
        request = request_of(event, now_ns)
        due_ns = schedule.due_ns(request)
        schedule.admit(request)
        waiting.append(request)
    for event, other in zip(happening, waiting[:-1], strict=False):
        if event.goes_after_ns is not None:
            schedule.cancel(other, now_ns)
    schedule.advance(FAR)
    if waiting:
        assert waiting[-1].leaves_ns is not None
        assert waiting[-1].leaves_ns <= due_ns


def small(arrived_ns: int, *, cost_ns: int = 100, deadline_ns: int = FAR, dataset: int | None = 0) -> SlotRequest:
    """A small request of one principal."""
    return request_of(
        Event(after_ns=0, principal=0, cost_ns=cost_ns, dataset=dataset, deadline_ns=deadline_ns, goes_after_ns=None),
        arrived_ns,
    )


class TestAdmission:
    """Refusals at arrival, and refusals later."""

    def test_alone_it_needs_its_own_slots_and_the_wait_for_the_first(self) -> None:
        """Both numbers are named; one ns more of deadline is enough."""
        schedule = Schedule(RULES)
        with pytest.raises(RequestTooCostly) as refused:
            schedule.admit(small(SLOT, cost_ns=2450, deadline_ns=4 * SLOT - 1))
        assert (refused.value.needed_ns, refused.value.allowed_ns) == (4 * SLOT, 4 * SLOT - 1)
        request = small(SLOT, cost_ns=2450, deadline_ns=4 * SLOT)
        schedule.admit(request)
        schedule.advance(2 * SLOT)
        assert request.leaves_ns == 5 * SLOT

    def test_behind_others_it_is_refused_for_now(self) -> None:
        """The refusal names the whole seconds until there is room, at least one."""
        schedule = Schedule(RULES)
        for _ in range(3):
            schedule.admit(small(0, cost_ns=15_450))
        with pytest.raises(ScheduleFull) as refused:
            schedule.admit(small(0, deadline_ns=20 * SLOT))
        assert refused.value.retry_after_s == 1
        assert schedule.waiting == 3

    def test_the_seconds_are_those_by_which_it_would_be_late(self) -> None:
        """Seconds are rounded up."""
        rules = SlotRules(slot_ns=10**9, commit_ns=0, margin_ns=0, shared_ns=16 * 10**9, busy_ns=16 * 10**9)
        schedule = Schedule(rules)
        schedule.admit(small(0, cost_ns=30 * 10**9, deadline_ns=10**12))
        with pytest.raises(ScheduleFull) as refused:
            schedule.admit(small(0, cost_ns=10**9, deadline_ns=10 * 10**9))
        request = small(0, cost_ns=10**9, deadline_ns=refused.value.retry_after_s * 10**9 + 10 * 10**9)
        schedule.admit(request)
        schedule.advance(10**12)
        assert request.leaves_ns is not None
        assert request.leaves_ns <= request.leave_before_ns

    def test_the_number_of_waiting_requests_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One principal may have half of all places, whatever the costs; a disconnect frees a place."""
        monkeypatch.setattr(module, "WAITING_MAX", 4)
        schedule = Schedule(RULES)
        first = small(0)
        schedule.admit(first)
        schedule.admit(small(0))
        with pytest.raises(ScheduleFull):
            schedule.admit(small(0))
        assert schedule.cancel(first, 1)
        schedule.admit(small(1))

    def test_one_principals_crowd_leaves_others_a_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second crowd gets half of what is left, the third a quarter; a request that begins frees its place."""
        monkeypatch.setattr(module, "WAITING_MAX", 8)
        schedule = Schedule(RULES)

        def admitted(principal: str, arrived_ns: int) -> int:
            for count in range(100):
                request = small(arrived_ns)
                request.principal = principal
                try:
                    schedule.admit(request)
                except ScheduleFull:
                    return count
            return 100

        assert [admitted(name, 0) for name in ("ana", "bo", "cy", "di")] == [4, 2, 1, 1]
        schedule.advance(SLOT)
        assert schedule.waiting == 0
        assert admitted("di", SLOT) == 4

    def test_a_request_that_can_no_longer_finish_in_time_is_refused_as_soon_as_that_is_known(self) -> None:
        """Later arrivals of others came before it: its refusal leaves at the end of the slot that shows this."""
        schedule = Schedule(RULES)
        schedule.admit(small(0, cost_ns=15_450))
        schedule.admit(small(0, cost_ns=15_450))
        schedule.advance(SLOT)
        late = small(SLOT + 1, cost_ns=15_450, deadline_ns=61 * SLOT)
        schedule.admit(late)
        others = [small(2 * SLOT, cost_ns=15_450) for _ in range(6)]
        for number, other in enumerate(others):
            other.principal = f"other {number}"
            schedule.admit(other)
        progress = schedule.advance(FAR)
        assert progress.refused == [late]
        assert late.reservation is None
        assert late.leaves_ns == (1 + 17 + 17 + 1) * SLOT  # known when the second of the requests before it begins
        assert all(other.reservation is not None for other in others)


class TestCancel:
    """Clients that disconnect."""

    def test_before_its_slots_it_frees_them(self) -> None:
        """The next request has the slot; a second disconnect finds nothing."""
        schedule = Schedule(RULES)
        gone, other = small(0, cost_ns=15_450), small(0)
        schedule.admit(gone)
        schedule.admit(other)
        assert schedule.cancel(gone, SLOT - 1)
        assert not schedule.cancel(gone, SLOT - 1)
        schedule.advance(SLOT)
        assert (gone.reservation, gone.leaves_ns) == (None, None)
        assert other.leaves_ns == 2 * SLOT

    def test_after_that_it_changes_nothing(self) -> None:
        """A request that has begun is finished, even if the client disconnects at that very instant."""
        schedule = Schedule(RULES)
        begun = small(0)
        schedule.admit(begun)
        schedule.advance(SLOT)
        assert not schedule.cancel(begun, SLOT)
        assert begun.cancelled_ns is None
        assert begun.leaves_ns == 2 * SLOT

    def test_a_waiting_one_is_taken_out_of_the_turns(self) -> None:
        """A request that has queued up is removed too, not only one that has just arrived."""
        schedule = Schedule(RULES)
        first, second, third = (small(0, cost_ns=15_450) for _ in range(3))
        for request in (first, second, third):
            schedule.admit(request)
        schedule.advance(SLOT)
        assert schedule.cancel(second, 2 * SLOT)
        schedule.advance(FAR)
        assert second.reservation is None
        assert third.reservation is not None
        assert third.reservation.begins_ns == 18 * SLOT  # sixteen slots for the first, and one left free


def test_slots_are_free_from_the_end_of_the_last_reservation_on() -> None:
    """Before, and while one is left free after sixteen."""
    schedule = Schedule(RULES)
    schedule.admit(small(0, cost_ns=15_450))
    schedule.admit(small(0))
    schedule.advance(0)
    assert schedule.ended_ns == 0
    schedule.advance(17 * SLOT)
    assert schedule.ended_ns == 17 * SLOT
    schedule.advance(18 * SLOT)
    assert schedule.ended_ns == 19 * SLOT
    assert schedule.next_ns() is None


def test_lengths_are_whole_slots() -> None:
    """The shared time is rounded down, but is at least a slot; the other lengths are rounded up."""
    assert (FINE.shared_slots_max, FINE.busy_slots_max, FINE.rest_ns) == (7, 21, 3 * SLOT)
    assert (COARSE.shared_slots_max, COARSE.busy_slots_max, COARSE.rest_ns) == (1, 1, SLOT)
    assert replace(FINE, refusal_ns=2 * SLOT + 1).refused_ns(5 * SLOT) == 8 * SLOT


def test_the_reserve_grows_with_the_work_of_all_that_share_it() -> None:
    """Twelve in a hundred, for one request as for many."""
    assert [FINE.booked_ns(work_ns) for work_ns in (0, 8, 9, 100, 25_600)] == [0, 8, 10, 112, 28_672]
    assert (FINE.slots(100 * 76, 0), RULES.slots(100 * 76, 0)) == (9, 8)


T = TypeVar("T")


def so_many(one: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    """Lists that are long as often as short."""
    return st.integers(0, 40).flatmap(lambda count: st.lists(one, min_size=count, max_size=count))


asked_for = st.tuples(st.sampled_from("abc"), st.integers(0, 20))
arrivals = so_many(asked_for)
# An operation on a queue: a request of a given cost, the next turn, or the removal of a waiting item.
operations = so_many(st.one_of(asked_for, asked_for, asked_for, st.none(), st.integers(0, 100)))


class Plain:
    """Start-time fair queueing as in the original paper, over a list."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int]] = []  # start tag, item
        self.finish: dict[str, int] = {}
        self.virtual = 0

    def put(self, principal: str, cost: int, item: int) -> None:
        start = max(self.virtual, self.finish.get(principal, 0))
        self.finish[principal] = start + cost
        self.waiting.append((start, item))

    def take(self) -> int:
        start, item = min(self.waiting)
        self.waiting.remove((start, item))
        self.virtual = start
        self.forget()
        return item

    def remove(self, item: int) -> None:
        self.waiting = [each for each in self.waiting if each[1] != item]
        self.forget()

    def forget(self) -> None:
        if not self.waiting:
            self.finish, self.virtual = {}, 0


@given(steps=operations)
def test_the_order_is_that_of_start_time_fair_queueing(steps: Sequence[tuple[str, int] | int | None]) -> None:
    """For any sequence of pushes, turns and removals; equal tags in the order of arrival."""
    queue, plain = FairQueue[int](), Plain()
    for item, what in enumerate(steps):
        if isinstance(what, tuple):
            queue.put(*what, item)
            plain.put(*what, item)
        elif isinstance(what, int) and plain.waiting:
            gone = sorted(plain.waiting)[what % len(plain.waiting)][1]
            assert queue.remove(partial(eq, gone)) == [gone]
            plain.remove(gone)
        elif plain.waiting:
            assert queue.peek() == min(plain.waiting)[1]
            assert queue.take() == plain.take()
        assert len(queue) == len(plain.waiting)
        assert sorted(queue) == sorted(item for _, item in plain.waiting)


@given(asked=arrivals, taken=st.integers(0, 40), cost=st.integers(0, 30))
def test_the_predicted_work_before_a_request_is_served_before_it(
    asked: Sequence[tuple[str, int]], taken: int, cost: int
) -> None:
    """Also after further requests of the principal's own, which are told by their cost."""
    queue = FairQueue[int]()
    for item, (principal, asked_for) in enumerate(asked):
        queue.put(principal, asked_for, item)
    for _ in range(min(taken, len(queue))):
        queue.take()
    before = set(queue.before("a", cost))
    if cost:
        queue.put("a", cost, -2)
    queue.put("a", 1, -1)
    served = set[int]()
    while (item := queue.take()) != -1:
        served.add(item)
    assert served - {-2} == before


def test_an_empty_queue_has_no_next() -> None:
    """Asking an empty queue for its next item raises an error."""
    queue = FairQueue[str]()
    for ask in (queue.peek, queue.take):
        with pytest.raises(IndexError):
            ask()
