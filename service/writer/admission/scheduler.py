"""The schedule of a running server: a lock, a clock and a thread that begins work when its slots come.

Whichever thread notices first that a slot has come begins its jobs, in the order of the schedule; the `begin` of a job
must only hand the work over. Work begins `START_NS` after its slot, because the responses of the reservation before
leave when the slot begins, and meanwhile nothing that depends on data should run.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Protocol

from service.ledger.model.errors import Unavailable
from service.query.cost import Speed
from service.writer.admission.schedule import (
    Begun,
    FairQueue,
    Reservation,
    Schedule,
    ScheduleFull,
    SlotRequest,
    SlotRules,
)

START_NS: Final = 500_000
"""The time from the beginning of a slot to the beginning of its work, in ns."""

MARGIN_NS: Final = 1_000_000
"""The part of a reservation that is kept free for anything but its own work, in ns."""

RESERVE_PERCENT: Final = 6
"""The reserve added to the work, since the errors of many queries' costs add up (docs/decisions/0036)."""

ACT_EVERY_NS: Final = 10_000_000
"""The least time between the beginnings of two acts, in ns, so that acts do not queue up before a reservation."""

ACTS_WAITING_MAX: Final = 256
"""The most acts of principals that wait; one of them begins in each `ACT_EVERY_NS` at best."""

_FREE_PART: Final = 2
"""An act begins only in the first half (1/_FREE_PART) of a free slot, or in its first `2 * START_NS` if longer."""


def slot_rules(slot_ns: int, speed: Speed) -> SlotRules:
    """The rules of slots of length `slot_ns` on a server of this speed.

    A commit may take longer than a slot. Then the margin also has room for the rest of the commit of an act in the slot
    before.
    """
    commit_ns = int(speed.commit)
    return SlotRules(
        slot_ns=slot_ns,
        commit_ns=commit_ns,
        margin_ns=START_NS + MARGIN_NS + max(commit_ns - slot_ns, 0),
        reserve_percent=RESERVE_PERCENT,
        free_ns=START_NS + commit_ns + MARGIN_NS,
    )


Act = Callable[[int], None]
"""Short work without a reservation. It is called with the beginning of its slot."""


@dataclass(frozen=True, slots=True)
class ServersOwn:
    """The owner of the server's own acts on a dataset.

    They take turns with principals' acts, and their number is bounded elsewhere.
    """

    dataset_id: int


class Job(Protocol):
    """Work that waits for its slots."""

    def begin(self, reservation: Reservation) -> None:
        """Hand over the work: its slots have come."""

    def refuse(self) -> None:
        """Refuse the work, which will never begin, because its response could no longer leave before its deadline."""


class Committing(Protocol):
    """A dataset's writer, which gives all jobs that it gets together one commit."""

    def begin(self, jobs: list[Any], reservation: Reservation) -> None:
        """Hand over these jobs for this writer: their slots have come."""


@dataclass(eq=False)
class Dispatcher:
    """The schedule with a lock and a clock: it begins due work whenever it is stepped or called. Thread-safe.

    It has no thread, so that a test can decide what time it is and when that is noticed. It calls `observe` with every
    public event of a request: arrived, refused, cancelled, begun.
    """

    rules: SlotRules
    _: KW_ONLY
    deadline_ns: int
    observe: Callable[[SlotRequest, str], None] = lambda _request, _event: None
    now_ns: Callable[[], int] = time.monotonic_ns

    def __post_init__(self) -> None:
        self._schedule = Schedule(self.rules)
        self._due: deque[Begun] = deque()  # composed at the beginning of their slots, to begin `START_NS` later
        self._acts: FairQueue[tuple[Hashable, Act]] = FairQueue()
        self._act_after_ns = 0  # no act begins before, since one has begun
        self._is_open = True
        self._changed = threading.Condition(threading.Lock())

    def reserve(self, request: SlotRequest) -> None:
        """Let a request, which arrives now, wait for its slots. Its job is a `Job`, its writer a `Committing`.

        Raises RequestTooCostly, ScheduleFull, and Unavailable after `close`.
        """
        with self._changed:
            if not self._is_open:
                raise Unavailable
            request.arrived_ns = self._advance()
            request.leave_before_ns = request.arrived_ns + self.deadline_ns
            self.observe(request, "arrived")
            self._schedule.admit(request)
            self._changed.notify()

    def cancel(self, request: SlotRequest) -> bool:
        """Remove a request whose client has gone. Returns False when its slots have come."""
        with self._changed:
            is_removed = self._schedule.cancel(request, self._advance())
            if is_removed:
                self.observe(request, "cancelled")
            return is_removed

    def withdraw(self, is_meant: Callable[[Job], bool]) -> Job | None:
        """Remove the first waiting request whose job `is_meant`, and return the job; None if there is none."""
        with self._changed:
            now_ns = self._advance()
            for request in self._schedule.requests():
                job: Job = request.job
                if is_meant(job):
                    self._schedule.cancel(request, now_ns)
                    self.observe(request, "cancelled")
                    return job
            return None

    def when_free(self, act: Act, principal: Hashable) -> None:
        """Call `act` with the beginning of a slot in which no request works; at once after `close`.

        At most one act begins in `ACT_EVERY_NS`, and principals take turns. Raises ScheduleFull when too many acts of
        the principal wait.
        """
        with self._changed:
            if self._is_open:
                self._refuse_crowd(principal)
                self._acts.put(principal, 1, (principal, act))
                self._changed.notify()
                return
        act(self.now_ns())

    def forget(self, act: Act) -> None:
        """Remove a waiting act that is no longer wanted. This does nothing if the act has begun."""
        with self._changed:
            self._acts.remove(lambda waiting: waiting[1] is act)

    def free_from_ns(self, instant_ns: int) -> int:
        """The end of the reservation during which a recent instant lies, or the instant itself."""
        with self._changed:
            self._advance()
            return self._schedule.free_from_ns(instant_ns)

    def step(self) -> int | None:
        """Begin what is due. Returns the next instant at which something may begin, or None while nothing waits."""
        with self._changed:
            return self._step()

    def close(self) -> None:
        """Take nothing new, begin the acts that wait, and refuse the requests that wait."""
        with self._changed:
            self._is_open = False
            self._changed.notify()
            self._refuse(self._schedule.drain().refused)
            while self._due:
                self._begin(self._due.popleft())
            while self._acts.heap:
                self._acts.take()[1](self.now_ns())

    def _step(self) -> int | None:
        now_ns = self._advance()
        if self._acts.heap:
            self._begin_act(now_ns)
        if self._due:
            return self._due[0].reservation.begins_ns + START_NS
        next_ns = self._schedule.next_ns()
        if self._acts.heap:
            free_ns = max(self._slot_at(now_ns) + self.rules.slot_ns, self._schedule.ended_ns, self._act_after_ns)
            next_ns = free_ns if next_ns is None else min(next_ns, free_ns)
        return None if next_ns is None else next_ns + START_NS

    def _advance(self) -> int:
        """Bring the schedule up to now, begin what is due, and return the present instant."""
        now_ns = self.now_ns()
        if self._schedule.waiting > 0:
            progress = self._schedule.advance(now_ns)
            self._due.extend(progress.begun)
            if progress.refused:
                self._refuse(progress.refused)
        while self._due and self._due[0].reservation.begins_ns + START_NS <= now_ns:
            self._begin(self._due.popleft())
        return now_ns

    def _refuse(self, requests: Sequence[SlotRequest]) -> None:
        for request in requests:
            self.observe(request, "refused")
            request.job.refuse()

    def _begin(self, begun: Begun) -> None:
        """Hand each dataset its requests together, in the order of the datasets' first requests."""
        shared: dict[Committing | None, list[Job]] = {}
        for request in begun.requests:
            self.observe(request, "begun")
            shared.setdefault(request.commits_to, []).append(request.job)
        for writer, jobs in shared.items():
            if writer is not None:
                writer.begin(jobs, begun.reservation)
                continue
            for job in jobs:
                job.begin(begun.reservation)

    def _begin_act(self, now_ns: int) -> None:
        slot_ns = self._slot_at(now_ns)
        is_early = now_ns - slot_ns < max(self.rules.slot_ns // _FREE_PART, 2 * START_NS)
        is_free = slot_ns >= max(self._schedule.ended_ns, self._act_after_ns)
        if is_early and is_free:
            self._act_after_ns = slot_ns + -(-ACT_EVERY_NS // self.rules.slot_ns) * self.rules.slot_ns
            self._acts.take()[1](slot_ns)

    def _refuse_crowd(self, principal: Hashable) -> None:
        """Raise ScheduleFull if a principal has as many acts waiting as it leaves room for. The server is exempt."""
        own = sum(owner == principal for owner, _ in self._acts)
        if not isinstance(principal, ServersOwn) and len(self._acts) + own >= ACTS_WAITING_MAX:
            raise ScheduleFull(1)

    def _slot_at(self, now_ns: int) -> int:
        """The beginning of the slot in which work that begins now lies."""
        return (now_ns - START_NS) // self.rules.slot_ns * self.rules.slot_ns


class Scheduler(Dispatcher):
    """A dispatcher with a thread that steps it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._thread = threading.Thread(target=self._run, name="slots", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close, and stop the thread."""
        super().close()
        self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while self._is_open:
                wake_ns = self._step()
                self._changed.wait(None if wake_ns is None else max(wake_ns - self.now_ns(), 0) / 1e9)
