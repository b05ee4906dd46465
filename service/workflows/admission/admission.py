"""Admission by public cost: a request is refused before anything is read for it, or has its memory and slots reserved.

Bounds of memory always hold. With slots, a request also gets a place in the schedule, and is refused where its response
could not leave before its deadline.

The memory that all requests together may take, by their public costs, and how much of it one principal may take.

A principal may take as much as it leaves for all others: half of all when it is alone, and less while others hold
something. So one principal cannot keep the others out, whatever it asks for.
"""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from service.query.cost import Costs, PublicCost, Speed
from service.query.plan import Plan
from service.workflows.admission.rate_limit import Limiter
from service.workflows.admission.schedule import RequestTooCostly, ScheduleFull, SlotRequest
from service.workflows.admission.scheduler import Committing, Dispatcher, Job
from service.workflows.model.errors import Busy, InvalidRequest, Unavailable, WorkflowError
from service.workflows.model.rows import DatasetRecord


class RequestTooLarge(Exception):
    """The request needs more memory than one principal's requests together may take."""

    def __init__(self, needed_bytes: int, allowed_bytes: int) -> None:
        super().__init__(f"needs {needed_bytes} bytes of {allowed_bytes} bytes")
        self.needed_bytes, self.allowed_bytes = needed_bytes, allowed_bytes


class MemoryFull(Exception):
    """The requests under way leave no room for this one."""


class Hold:
    """The memory that one admitted request holds."""

    __slots__ = ("_account", "_bound", "_cost", "_worker")

    def __init__(self, bound: "MemoryBound", account: "_Account", cost: PublicCost, worker: Hashable) -> None:
        self._bound: MemoryBound | None = bound
        self._account, self._cost, self._worker = account, cost, worker

    def release(self) -> None:
        """The request holds nothing any more. Repeating this does nothing."""
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.release(self._account, self._cost, self._worker)


@dataclass(slots=True)
class _Account:
    """The bytes that one principal's requests keep together, and how many requests they are."""

    principal: Hashable
    kept_bytes: int = 0
    requests: int = 0


class MemoryBound:
    """Counts what admitted requests may hold. Thread-safe.

    A worker, such as a dataset's writer, works on its requests one after the other, so that of their working memory the
    largest counts once. What a request keeps counts until its response has left.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._accounts: dict[Hashable, _Account] = {}  # of the principals that hold something
        self._kept_bytes = 0  # of all accounts
        self._working: dict[Hashable, dict[int, int]] = {}  # requests with so much, by worker
        self._lock = threading.Lock()

    def admit(self, principal: Hashable, cost: PublicCost, worker: Hashable = None) -> Hold:
        """Count a request. Raises RequestTooLarge where it could never be admitted, MemoryFull where it cannot now."""
        allowed_bytes = self.bytes_max // 2
        if cost.memory_bytes > allowed_bytes:
            raise RequestTooLarge(cost.memory_bytes, allowed_bytes)
        with self._lock:
            account = self._accounts.get(principal)
            if account is None:
                account = self._accounts[principal] = _Account(principal)
            working = self._working.setdefault(worker, {})
            working[cost.working_bytes] = working.get(cost.working_bytes, 0) + 1
            self._count(account, cost.kept_bytes, 1)
            own_bytes = account.kept_bytes + cost.working_bytes
            if self._used_bytes() + own_bytes <= self.bytes_max:
                return Hold(self, account, cost, worker)
            self._forget(account, cost, worker)
        raise MemoryFull

    def release(self, account: _Account, cost: PublicCost, worker: Hashable) -> None:
        """A request that was admitted holds nothing any more; its `Hold` says so, once."""
        with self._lock:
            self._forget(account, cost, worker)

    @property
    def kept_bytes(self) -> int:
        """The memory that admitted requests keep, in bytes."""
        return self._kept_bytes

    @property
    def requests(self) -> int:
        """The number of requests that hold memory."""
        with self._lock:
            return sum(account.requests for account in self._accounts.values())

    def _used_bytes(self) -> int:
        return self._kept_bytes + sum(map(max, self._working.values()))

    def _count(self, account: _Account, kept_bytes: int, requests: int) -> None:
        account.kept_bytes += kept_bytes
        account.requests += requests
        self._kept_bytes += kept_bytes

    def _forget(self, account: _Account, cost: PublicCost, worker: Hashable) -> None:
        working = self._working[worker]
        left = working.pop(cost.working_bytes) - 1
        if left > 0:
            working[cost.working_bytes] = left
        elif not working:
            del self._working[worker]
        self._count(account, -cost.kept_bytes, -1)
        if account.requests == 0:
            del self._accounts[account.principal]


MEMORY_BYTES_MAX: Final = 2**31
LONGEST_NS: Final = 5_000_000_000
"""The longest reservation of one request: so long others may have to wait for it, however cheap theirs are."""

_NS_PER_MS: Final = 1_000_000


class Ticket:
    """An admitted request: the memory that it may hold, and its place in the schedule if there is one."""

    __slots__ = ("_hold", "_request", "_scheduler", "cost")

    def __init__(self, cost: PublicCost, hold: Hold, scheduler: Dispatcher | None) -> None:
        self.cost = cost
        self._hold, self._scheduler = hold, scheduler
        self._request: SlotRequest | None = None

    @property
    def leaves_ns(self) -> int | None:
        """The instant at which the response leaves; None until its turn has come, and always without slots."""
        return None if self._request is None else self._request.leaves_ns

    @property
    def is_scheduled(self) -> bool:
        """Whether the request begins in slots."""
        return self._scheduler is not None

    @property
    def delay_ms(self) -> float:
        """How long the slots last that the request's own cost needs, in ms; 0 without slots."""
        return _delay_ns(self._scheduler, self.cost) / _NS_PER_MS

    def reserve(self, principal: Hashable, job: Job, writer: Committing | None) -> None:
        """Take a place in the schedule. Raises RequestTooCostly, ScheduleFull, and Unavailable once it is closed."""
        if self._scheduler is not None:
            self._request = self._scheduler.reserve(principal, self.cost, job, writer)

    def cancel(self) -> bool:
        """The client has gone: a request leaves the schedule; False when its slots have come.

        True without slots: whether the work has begun is then for the work to say.
        """
        if self._scheduler is None or self._request is None:
            return True
        return self._scheduler.cancel(self._request)

    def release(self) -> None:
        """The response has left, or never will: its memory is free again. Repeating this does nothing."""
        self._hold.release()


class Admission:
    """Admits the requests of one server. Thread-safe."""

    def __init__(
        self,
        *,
        memory: MemoryBound | None = None,
        speed: Speed | None = None,
        scheduler: Dispatcher | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        """`limiter` bounds how often a principal may ask, before anything else is looked at."""
        self.memory = memory or MemoryBound(MEMORY_BYTES_MAX)
        self.speed, self.scheduler, self.limiter = speed or Speed(), scheduler, limiter
        self._costs: dict[int, Costs] = {}  # by dataset

    def cost_of(self, plan: Plan, record: DatasetRecord) -> PublicCost:
        """The public cost of a plan on this server."""
        costs = self._costs.get(record.id)
        if costs is None or costs.schema is not record.schema:
            costs = self._costs[record.id] = Costs(record.schema, capacity=record.capacity, speed=self.speed)
        return costs.of(plan)

    def read_cost(self, kept_bytes: int) -> PublicCost:
        """The public cost of a read of the database whose response has at most `kept_bytes`."""
        time_ns = int(self.speed.read + kept_bytes * self.speed.committed_byte)
        return PublicCost(time_ns=time_ns, kept_bytes=2 * kept_bytes, working_bytes=0)  # reads are worked on together

    def delay_ms(self, cost: PublicCost) -> float:
        """How long the slots last that a cost needs, in ms; 0 without slots."""
        return _delay_ns(self.scheduler, cost) / _NS_PER_MS

    def admit(self, principal: Hashable, cost: PublicCost, job: Job, writer: Committing | None = None) -> Ticket:
        """Reserve memory and slots for a job, for which `writer` commits.

        Raises InvalidRequest for what could never be admitted, naming both numbers, Busy for what cannot be now, and
        Unavailable once the schedule is closed.
        """
        delay_ns = _delay_ns(self.scheduler, cost)
        if delay_ns > LONGEST_NS:
            raise _refusal(RequestTooCostly(delay_ns, LONGEST_NS))
        try:
            hold = self.memory.admit(principal, cost, worker=None if writer is None else id(writer))
        except RequestTooLarge as error:
            raise InvalidRequest.of("query", _too_large(error)) from None
        except MemoryFull:
            raise Busy from None
        ticket = Ticket(cost, hold, self.scheduler)
        try:
            ticket.reserve(principal, job, writer)
        except (RequestTooCostly, ScheduleFull, Unavailable) as error:
            ticket.release()
            raise _refusal(error) from None
        return ticket


def _delay_ns(scheduler: Dispatcher | None, cost: PublicCost) -> int:
    """How long the slots last that a cost needs; 0 without slots."""
    return 0 if scheduler is None else scheduler.rules.delay_ns(cost.time_ns)


def _refusal(error: RequestTooCostly | ScheduleFull | Unavailable) -> WorkflowError:
    match error:
        case RequestTooCostly():
            return InvalidRequest.of("query", _too_costly(error))
        case ScheduleFull():
            return Busy(error.retry_after_s)
        case Unavailable():
            return error


def _too_large(error: RequestTooLarge) -> str:
    return (
        f"may need {error.needed_bytes} bytes of memory by its public cost, and all requests of one principal together"
        f" have {error.allowed_bytes}; ask for fewer numbers at once"
    )


def _too_costly(error: RequestTooCostly) -> str:
    return (
        f"may need {error.needed_ns / _NS_PER_MS:.0f} ms by its public cost, and a response has to leave within"
        f" {error.allowed_ns / _NS_PER_MS:.0f} ms; ask for fewer numbers at once, or for fewer queries in one batch"
    )
