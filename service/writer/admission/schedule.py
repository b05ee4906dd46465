"""Time-triggered slots: which work begins in which slot, and when its answers leave, as a function of public events.

Time is cut into slots at whole multiples of their length. Requests that arrived before a slot begins may begin in it,
in the order of their principals' turns. Together they get as many slots as their public costs need (`SlotRules`). Their
work begins with the first of these slots, and all their responses leave when the last one ends, however long the work
really took. So slot, order and instant depend on arrivals, disconnects and public costs alone, and an observer of these
can compute them (tests/writer/admission/test_schedule.py does).

Turns are start-time fair queueing (Goyal, Vin and Cheng 1996): a request is tagged with the virtual time at which its
principal's previous request would end, or with the current virtual time if that is later. The smallest tag is served
first. So principals that always have requests waiting get equal shares of the time (`FairQueue`).

The schedule is passive: its caller tells it of arrivals and of the time, and it has no clock, thread or lock of its own
(`service.writer.admission.scheduler`). Instants are whole nanoseconds of one monotonic clock.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, count
from operator import is_
from typing import Any, Final, Generic, TypeVar

from service.query.cost import PublicCost

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue in which principals take turns; not thread-safe.

    `heap` is empty when no item waits, and only this class changes it.
    """

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, T]] = []  # tag, order of arrival, cost, item
        self._ends: dict[Hashable, int] = {}  # the virtual time at which a principal's last request ends
        self._now = 0  # virtual time: the tag of what was served last
        self._arrivals = count()

    def __len__(self) -> int:
        return len(self.heap)

    def __iter__(self) -> Iterator[T]:
        """The items in no particular order."""
        return (item for _, _, _, item in self.heap)

    def put(self, principal: Hashable, cost: int, item: T) -> None:
        """Let an item wait for its turn; `cost` is not negative."""
        if not self.heap:  # with nothing waiting, no principal has a turn to wait for
            self._ends.clear()
            self._now = 0
        tag = max(self._now, self._ends.get(principal, 0))
        self._ends[principal] = tag + cost
        heapq.heappush(self.heap, (tag, next(self._arrivals), cost, item))

    def peek(self) -> T:
        """The item whose turn is next. Raises IndexError when there is none."""
        return self.heap[0][3]

    def take(self) -> T:
        """Remove and return the item whose turn is next. Raises IndexError when there is none."""
        self._now, _, _, item = heapq.heappop(self.heap)
        return item

    def remove(self, gone: Callable[[T], bool]) -> list[T]:
        """Remove the items that are `gone`, and return them.

        Their costs still count against their principals' turns.
        """
        removed = [item for _, _, _, item in self.heap if gone(item)]
        if removed:
            self.heap = [waiting for waiting in self.heap if not gone(waiting[3])]
            heapq.heapify(self.heap)
        return removed

    def before(self, principal: Hashable, cost: int = 0) -> list[T]:
        """The items to be served before one that this principal would put after others of together `cost`."""
        tag = max(self._now, self._ends.get(principal, 0)) + cost
        return [item for other, _, _, item in self.heap if other <= tag]


@dataclass(frozen=True, kw_only=True)
class SlotRules:
    """The rules by which work is fitted into slots. All lengths are in ns and are rounded to whole slots.

    Every reservation has `commit_ns` for each dataset that commits in it. It has `margin_ns` once, for the departure of
    the responses before it and for anything that is not its work. `reserve_percent` of the work are added, since the
    errors in the costs of many queries add up.

    Requests share a commit if they fit into `shared_ns` together; a larger request has its slots to itself. After
    `busy_ns` of reserved slots in a row, `free_ns` are left free, in which acts can run. A waiting request that would
    be late is refused, and the refusal leaves `refusal_ns` after the slot that shows this.
    """

    slot_ns: int
    commit_ns: int
    margin_ns: int
    reserve_percent: int = 0
    shared_ns: int = 160_000_000
    busy_ns: int = 160_000_000
    free_ns: int = 10_000_000
    refusal_ns: int = 10_000_000

    def slots(self, work_ns: int, commits: int) -> int:
        """The number of slots for work of a public cost and its commits."""
        booked_ns = self.booked_ns(work_ns) + commits * self.commit_ns + self.margin_ns
        return -(-booked_ns // self.slot_ns)

    def booked_ns(self, work_ns: int) -> int:
        """The time for work of a public cost, with the reserve."""
        return work_ns + work_ns * self.reserve_percent // 100

    @cached_property
    def shared_slots_max(self) -> int:
        """The most slots that several requests may share."""
        return max(self.shared_ns // self.slot_ns, 1)

    @cached_property
    def busy_slots_max(self) -> int:
        """The most slots that are reserved in a row before some are left free."""
        return -(-self.busy_ns // self.slot_ns)

    @cached_property
    def rest_ns(self) -> int:
        """The length of the slots that are left free after `busy_slots_max` slots, in ns."""
        return -(-self.free_ns // self.slot_ns) * self.slot_ns

    def refused_ns(self, shown_ns: int) -> int:
        """The instant at which a refusal leaves, if the slot that begins at `shown_ns` shows that it is due."""
        return shown_ns - (-self.refusal_ns // self.slot_ns) * self.slot_ns


WAITING_MAX: Final = 1024
LATEST_KEPT: Final = 64
"""The number of past reservations that the schedule remembers, for responses that become due during one of them."""

_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """The slots of some requests: work begins at `begins_ns`, and every response leaves at `leaves_ns`."""

    begins_ns: int
    leaves_ns: int


@dataclass(slots=True, kw_only=True, eq=False)
class SlotRequest:
    """A request that waits for its slots. Everything that decides about it is public.

    `job` is its work. `commits_to` is the writer that commits for it, None when nothing is committed. The response has
    to leave by `leave_before_ns`. It leaves at `leaves_ns`, which is None until it is known.
    """

    principal: Hashable
    cost: PublicCost
    arrived_ns: int = 0
    leave_before_ns: int = 0
    job: Any = None
    commits_to: Any = None
    cancelled_ns: int | None = None
    reservation: Reservation | None = None
    leaves_ns: int | None = None


class RequestTooCostly(Exception):
    """The request needs more slots than its deadline leaves room for, even alone."""

    def __init__(self, needed_ns: int, allowed_ns: int) -> None:
        super().__init__(f"needs {needed_ns} ns of {allowed_ns} ns")
        self.needed_ns, self.allowed_ns = needed_ns, allowed_ns


class ScheduleFull(Exception):
    """The request would leave after its deadline; there may be room after `retry_after_s`."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"no room for {retry_after_s} s")
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Begun:
    """The requests of one reservation whose slots have come, in order. Those of one dataset share a commit."""

    reservation: Reservation
    requests: Sequence[SlotRequest]


@dataclass(slots=True)
class Progress:
    """Everything that has come about up to an instant: the requests that begin, and those refused as too late."""

    begun: list[Begun] = field(default_factory=list)
    refused: list[SlotRequest] = field(default_factory=list)


class Schedule:
    """The slots of one server. Not thread-safe; the instants given to it never decrease."""

    def __init__(self, rules: SlotRules) -> None:
        self.rules = rules
        self._arriving: deque[SlotRequest] = deque()  # in order of arrival, not yet in turn
        self._turns: FairQueue[SlotRequest] = FairQueue()
        self.waiting = 0  # requests
        self._waiting: Counter[Hashable] = Counter()  # the same, by principal
        self._free_ns = 0  # the next instant at which a reservation may begin
        self._latest: deque[Reservation] = deque([Reservation(0, 0)], maxlen=LATEST_KEPT)
        self._busy_slots = 0  # reserved in a row up to there

    def requests(self) -> Iterator[SlotRequest]:
        """The requests that wait, in no particular order."""
        return chain(self._arriving, self._turns)

    def admit(self, request: SlotRequest) -> None:
        """Let a request wait. Call `advance` up to its arrival first.

        Raises RequestTooCostly if it could never leave in time, ScheduleFull if it could not leave in time now.
        """
        own_ns = self._alone_ns(request)
        allowed_ns = request.leave_before_ns - request.arrived_ns
        if own_ns + self.rules.slot_ns > allowed_ns:
            raise RequestTooCostly(own_ns + self.rules.slot_ns, allowed_ns)
        due_ns = self.due_ns(request)
        own = self._waiting[request.principal]  # as many as are left for others, so that none is kept out
        if due_ns > request.leave_before_ns or self.waiting + own >= WAITING_MAX:
            raise ScheduleFull(max(-(-(due_ns - request.leave_before_ns) // _NS_PER_S), 1))
        self._arriving.append(request)
        self._waiting[request.principal] += 1
        self.waiting += 1

    def cancel(self, request: SlotRequest, now_ns: int) -> bool:
        """Remove a waiting request. Returns False when it has begun or is gone. Call `advance` up to `now_ns` first."""
        if request in self._arriving:
            self._arriving.remove(request)
        elif not self._turns.remove(lambda waiting: waiting is request):
            return False
        self._forget([request])
        request.cancelled_ns = now_ns
        return True

    def advance(self, now_ns: int) -> Progress:
        """The requests that begin, or are refused, at slots up to `now_ns`."""
        progress = Progress()
        while self.waiting > 0:
            begins_ns = self._next_begin()
            if begins_ns > now_ns:
                break
            self._compose(begins_ns, progress)
        return progress

    def drain(self) -> Progress:
        """Refuse everything that waits."""
        refused = [*self._turns, *self._arriving]
        self._turns, self._arriving, self._waiting, self.waiting = FairQueue(), deque(), Counter(), 0
        return Progress(refused=refused)

    def next_ns(self) -> int | None:
        """The instant at which the next reservation can begin; None while nothing waits."""
        return self._next_begin() if self.waiting > 0 else None

    @property
    def ended_ns(self) -> int:
        """The instant from which on no slot is reserved, if the schedule has advanced up to now."""
        return self._latest[-1].leaves_ns

    def free_from_ns(self, instant_ns: int) -> int:
        """The end of the reservation in which an instant lies, else the instant.

        Only the latest reservations are known.
        """
        ends = (each.leaves_ns for each in self._latest if each.begins_ns < instant_ns < each.leaves_ns)
        return next(ends, instant_ns)

    def due_ns(self, request: SlotRequest) -> int:
        """The instant by which a request that arrives now leaves, if no deadline is near and no request comes after it.

        Two reservations in a row need more slots than requests can share, or they would be one. This bounds the number
        of reservations up to the one that has the request. Each reservation has its commits, its margin and the
        rounding to a slot, and may have free slots after it. The request may share its reservation with later requests.
        """
        rules, own_ns = self.rules, request.cost.time_ns
        arriving_ns = sum(each.cost.time_ns for each in self._arriving if each.principal == request.principal)
        before = [*self._turns.before(request.principal, arriving_ns), *self._arriving]
        waiting = [*(each for _, _, _, each in self._turns.heap), *self._arriving]
        work_ns: int = own_ns + sum(each.cost.time_ns for each in before)
        after_ns = own_ns + sum(each.cost.time_ns for each in waiting) - work_ns
        shared_ns = rules.shared_slots_max * rules.slot_ns
        work_ns += min(after_ns, max(shared_ns - own_ns, 0))
        booked_ns = rules.booked_ns(work_ns)
        commits = len({each.commits_to for each in (*waiting, request)} | {None}) - 1
        room_ns = shared_ns - rules.margin_ns - commits * rules.commit_ns
        reservations = len(before) + 1
        if room_ns > 0:
            reservations = min(reservations, max(2 * -(-booked_ns // room_ns) - 1, 1))
        begins_ns = max(self._free_ns, (request.arrived_ns // rules.slot_ns + 1) * rules.slot_ns)
        if reservations == 1:
            return begins_ns + rules.slots(work_ns, commits) * rules.slot_ns
        each_ns = commits * rules.commit_ns + rules.margin_ns + rules.slot_ns + rules.rest_ns
        return begins_ns + booked_ns + reservations * each_ns

    # Within

    def _next_begin(self) -> int:
        """The beginning of the first free slot after the arrival of some waiting request."""
        if self._turns.heap:
            return self._free_ns
        after_arrival_ns = (self._arriving[0].arrived_ns // self.rules.slot_ns + 1) * self.rules.slot_ns
        return max(self._free_ns, after_arrival_ns)

    def _compose(self, begins_ns: int, progress: Progress) -> None:
        """Reserve slots from `begins_ns` on for the requests whose turn it is.

        Reserve none when all of them are refused.
        """
        while self._arriving and self._arriving[0].arrived_ns < begins_ns:
            request = self._arriving.popleft()
            self._turns.put(request.principal, request.cost.time_ns, request)
        chosen, slots = self._choose(begins_ns, progress)
        self._forget(chosen)
        if not chosen:
            return
        reservation = Reservation(begins_ns, begins_ns + slots * self.rules.slot_ns)
        is_adjacent = begins_ns == self._latest[-1].leaves_ns
        self._busy_slots = slots + (self._busy_slots if is_adjacent else 0)
        self._latest.append(reservation)
        self._free_ns = reservation.leaves_ns
        if self._busy_slots >= self.rules.busy_slots_max:
            self._free_ns += self.rules.rest_ns
        if self._turns.heap:
            self._refuse(self._is_late, begins_ns, progress)
        for request in chosen:
            request.reservation, request.leaves_ns = reservation, reservation.leaves_ns
        progress.begun.append(Begun(reservation, chosen))

    def _choose(self, begins_ns: int, progress: Progress) -> tuple[list[SlotRequest], int]:
        """The next requests in turn that fit together, and the number of slots that they need."""
        chosen: list[SlotRequest] = []
        commits: set[Hashable] = set()
        work_ns = slots = 0
        while self._turns.heap:
            request = self._turns.peek()
            all_commits = commits | ({request.commits_to} - {None})
            needed = self.rules.slots(work_ns + request.cost.time_ns, len(all_commits))
            if chosen and needed > self.rules.shared_slots_max:
                break
            leaves_ns = begins_ns + needed * self.rules.slot_ns
            if leaves_ns > request.leave_before_ns:
                self._refuse(partial(is_, request), begins_ns, progress)
                continue
            if any(leaves_ns > other.leave_before_ns for other in chosen):
                break
            chosen.append(self._turns.take())
            commits, work_ns, slots = all_commits, work_ns + request.cost.time_ns, needed
        return chosen, slots

    def _refuse(self, late: Callable[[SlotRequest], bool], now_ns: int, progress: Progress) -> None:
        """Refuse the requests that can no longer leave in time. Their refusals leave together."""
        refused = self._turns.remove(late)
        self._forget(refused)
        progress.refused.extend(refused)
        for request in refused:
            request.leaves_ns = self.rules.refused_ns(now_ns)

    def _forget(self, requests: Sequence[SlotRequest]) -> None:
        """Stop counting these requests as waiting."""
        self._waiting -= Counter(request.principal for request in requests)
        self.waiting -= len(requests)

    def _is_late(self, waiting: SlotRequest) -> bool:
        """Tell whether a request could not leave in time even if it were the next to begin."""
        left_ns = waiting.leave_before_ns - self._free_ns - waiting.cost.time_ns
        overhead_ns = self.rules.commit_ns + self.rules.margin_ns + self.rules.slot_ns
        return left_ns < overhead_ns and self._free_ns + self._alone_ns(waiting) > waiting.leave_before_ns

    def _alone_ns(self, request: SlotRequest) -> int:
        """The length of the slots that the request needs if it shares them with no other request."""
        commits = 0 if request.commits_to is None else 1
        return self.rules.slots(request.cost.time_ns, commits) * self.rules.slot_ns
