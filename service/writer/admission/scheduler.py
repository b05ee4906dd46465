"""The schedule of a running server: a lock, a clock and a thread that begins work when its slots come.

Begin callbacks are called in the order of the schedule, in whichever thread notices first that a slot has come; they
must only hand work over. Work begins `START_NS` after its slot does, because the responses of the reservation before
leave at that instant and nothing that depends on data should run meanwhile.
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
"""How long after the beginning of a slot work begins, in ns."""

MARGIN_NS: Final = 1_000_000
"""How much of a reservation is left to what is not its own work, in ns."""

RESERVE_PERCENT: Final = 6
"""How much of the work is kept free besides, since the errors of many queries' costs add up (docs/decisions/0036)."""

ACT_EVERY_NS: Final = 10_000_000
"""At most one act begins in so long a time, so that acts do not queue up before a reservation."""

ACTS_WAITING_MAX: Final = 256
"""More acts of principals than this are not kept: they begin in `ACT_EVERY_NS` each at best."""

_FREE_PART: Final = 2
"""An act begins in a free slot only while less than this part of it is over, or less than twice `START_NS`."""


def slot_rules(slot_ns: int, speed: Speed) -> SlotRules:
    """The rules of slots of a length on a server of a speed.

    Where a commit takes longer than a slot, work that begins in the slot after an act's has room for the rest of the
    act's commit.
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
"""Short work that has no reservation; it is told the beginning of its slot."""


@dataclass(frozen=True, slots=True)
class ServersOwn:
    """The owner of the server's own acts on a dataset: they take turns with principals, and are bounded elsewhere."""

    dataset_id: int


class Job(Protocol):
    """Work that waits for its slots."""

    def begin(self, reservation: Reservation) -> None:
        """The slots have come."""

    def refuse(self) -> None:
        """The response could no longer leave before its deadline, and the work will never begin."""


class Committing(Protocol):
    """A dataset's writer: all jobs that it is given together share a commit."""

    def begin(self, jobs: list[Any], reservation: Reservation) -> None:
        """The slots of these jobs, its own, have come."""


@dataclass(eq=False)
class Dispatcher:
    """Begins work in its slots whenever it is stepped, or is told of anything. Thread-safe.

    It has no thread, so that a test can decide what time it is and when that is noticed. `observe` is told of every
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
        """Let a request wait for its slots: it arrives now. Its job is a `Job`, its writer a `Committing`.

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
        """Remove a request whose client has gone; False when its slots have come."""
        with self._changed:
            is_removed = self._schedule.cancel(request, self._advance())
            if is_removed:
                self.observe(request, "cancelled")
            return is_removed

    def withdraw(self, is_meant: Callable[[Job], bool]) -> Job | None:
        """Remove the request whose job is meant, and return the job; None where none of those that wait is."""
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

        One act begins in `ACT_EVERY_NS`, and principals take turns. Raises ScheduleFull where many of a principal wait.
        """
        with self._changed:
            if self._is_open:
                self._refuse_crowd(principal)
                self._acts.put(principal, 1, (principal, act))
                self._changed.notify()
                return
        act(self.now_ns())

    def forget(self, act: Act) -> None:
        """An act is no longer wanted; nothing happens if it has begun."""
        with self._changed:
            self._acts.remove(lambda waiting: waiting[1] is act)

    def free_from_ns(self, instant_ns: int) -> int:
        """The end of the reservation that a recent instant lies within, or the instant."""
        with self._changed:
            self._advance()
            return self._schedule.free_from_ns(instant_ns)

    def step(self) -> int | None:
        """Begin what is due; the next instant at which something may begin, None while nothing waits."""
        with self._changed:
            return self._step()

    def close(self) -> None:
        """Take nothing new: acts that wait are begun, requests that wait are refused."""
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
        """A principal may have as many acts waiting as are left for others; the server's own are not counted."""
        own = sum(owner == principal for owner, _ in self._acts)
        if not isinstance(principal, ServersOwn) and len(self._acts) + own >= ACTS_WAITING_MAX:
            raise ScheduleFull(1)

    def _slot_at(self, now_ns: int) -> int:
        """The beginning of the slot in which work may begin now."""
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
