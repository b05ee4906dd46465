"""Admission by public cost: a request is refused before anything is read for it, or has its memory and slots reserved.

Memory is always bounded. With slots, a request also gets a place in the schedule, and is refused if its response could
not leave before its deadline.

A principal may take as much memory as it leaves for all others: half of all memory when it is alone, and less while
others hold some. So one principal cannot keep the others out, whatever it asks for.
"""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from service.ledger.model.errors import Busy, InvalidRequest, Unavailable, WorkflowError
from service.ledger.model.rows import DatasetRecord
from service.query.cost import Costs, PublicCost, Speed
from service.query.plan import Plan
from service.writer.admission.rate_limit import Limiter
from service.writer.admission.schedule import RequestTooCostly, ScheduleFull, SlotRequest
from service.writer.admission.scheduler import Committing, Dispatcher, Job


class RequestTooLarge(Exception):
    """The request needs more memory than one principal's requests together may take."""

    def __init__(self, needed_bytes: int, allowed_bytes: int) -> None:
        super().__init__(f"needs {needed_bytes} bytes of {allowed_bytes} bytes")
        self.needed_bytes, self.allowed_bytes = needed_bytes, allowed_bytes


class MemoryFull(Exception):
    """The requests under way leave no room for this one."""


class MemoryBound:
    """A count of the bytes that admitted requests may hold. Thread-safe.

    A worker, such as a dataset's writer, works on its requests one after the other. So only the largest of their
    working memories counts. The bytes that a request keeps count until its response has left.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.kept_bytes = 0  # by all requests together
        self.requests = 0  # that hold memory
        self._accounts: dict[Hashable, tuple[int, int]] = {}  # requests of a principal, and the bytes that they keep
        self._working: dict[object, Counter[int]] = {}  # requests of a worker with this working memory
        self._lock = threading.Lock()

    def admit(self, principal: Hashable, cost: PublicCost, worker: object = None) -> None:
        """Count a request. Raises RequestTooLarge if it could never be admitted, MemoryFull if there is no room now."""
        needed_bytes, allowed_bytes = cost.kept_bytes + cost.working_bytes, self.bytes_max // 2
        if needed_bytes > allowed_bytes:
            raise RequestTooLarge(needed_bytes, allowed_bytes)
        with self._lock:
            requests, own_bytes = self._accounts.get(principal, (0, 0))
            working = self._working.get(worker, Counter())
            largest = max([cost.working_bytes, *working]) + sum(
                max(each) for other, each in self._working.items() if other != worker
            )
            used_bytes = self.kept_bytes + cost.kept_bytes + largest
            if used_bytes + own_bytes + needed_bytes > self.bytes_max:
                raise MemoryFull
            self._accounts[principal] = requests + 1, own_bytes + cost.kept_bytes
            self._working[worker] = working
            working[cost.working_bytes] += 1
            self.kept_bytes += cost.kept_bytes
            self.requests += 1

    def release(self, principal: Hashable, cost: PublicCost, worker: object = None) -> None:
        """Stop counting an admitted request, which holds nothing any more."""
        with self._lock:
            requests, own_bytes = self._accounts.pop(principal)
            if requests > 1:
                self._accounts[principal] = requests - 1, own_bytes - cost.kept_bytes
            working = self._working[worker]
            working[cost.working_bytes] -= 1
            if working[cost.working_bytes] == 0:
                del working[cost.working_bytes]
            if not working:
                del self._working[worker]
            self.kept_bytes -= cost.kept_bytes
            self.requests -= 1

    @contextmanager
    def holding(self, principal: Hashable, held_bytes: int) -> Iterator[None]:
        """Hold so many bytes beside all costs. Raises as `admit`."""
        cost = PublicCost(time_ns=0, kept_bytes=held_bytes, working_bytes=0)
        self.admit(principal, cost)
        try:
            yield
        finally:
            self.release(principal, cost)


MEMORY_BYTES_MAX: Final = 2**31
LONGEST_MS: Final = 5_000
"""The longest reservation of one request in ms. Even the cheapest of the others may have to wait that long for it."""

_NS_PER_MS: Final = 1_000_000


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket(SlotRequest):
    """An admitted request: the memory that it holds, and its place in the schedule if there is one.

    `delay_ms` is the length of the slots that its own cost needs; 0 without slots.
    """

    memory: MemoryBound | None
    scheduler: Dispatcher | None
    delay_ms: float

    @property
    def is_scheduled(self) -> bool:
        """Tell whether the request begins in slots."""
        return self.scheduler is not None

    def cancel(self) -> bool:
        """Remove the request of a client that has gone from the schedule. Returns False when its slots have come.

        Returns True without slots: then only the work itself can tell whether it has begun.
        """
        return self.scheduler is None or self.scheduler.cancel(self)

    def release(self) -> None:
        """Free the memory, after the response has left or when it never will. Repeated calls do nothing."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory.release(self.principal, self.cost, self.commits_to)


class Admission:
    """The admission of requests to one server. Thread-safe."""

    def __init__(
        self,
        *,
        memory: MemoryBound | None = None,
        speed: Speed | None = None,
        scheduler: Dispatcher | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        """Set the bounds; `limiter` bounds how often a principal may ask, and comes before the others."""
        self.memory = memory or MemoryBound(MEMORY_BYTES_MAX)
        self.speed, self.scheduler, self.limiter = speed or Speed(), scheduler, limiter
        self._costs: dict[int, Costs] = {}  # by dataset

    def cost_of(self, plan: Plan, record: DatasetRecord, shards: int = 1) -> PublicCost:
        """The public cost of a plan on this server, for a dataset with this number of shards."""
        costs = self._costs.get(record.id)
        if costs is None or costs.schema is not record.schema or costs.shards != shards:
            costs = Costs(record.schema, capacity=record.capacity, speed=self.speed, shards=shards)
            self._costs[record.id] = costs
        return costs.of(plan)

    def read_cost(self, kept_bytes: int) -> PublicCost:
        """The public cost of a read of the database whose response has at most `kept_bytes`."""
        time_ns = int(self.speed.read + kept_bytes * self.speed.committed_byte)
        return PublicCost(time_ns=time_ns, kept_bytes=2 * kept_bytes, working_bytes=0)  # reads are worked on together

    def delay_ms(self, cost: PublicCost) -> float:
        """The length of the slots that a cost needs, in ms; 0 without slots."""
        if self.scheduler is None:
            return 0
        rules = self.scheduler.rules
        return rules.slots(cost.time_ns, 1) * rules.slot_ns / _NS_PER_MS

    def admit(self, principal: Hashable, cost: PublicCost, job: Job, writer: Committing | None = None) -> Ticket:
        """Reserve memory and slots for a job, for which `writer` commits.

        Raises InvalidRequest, with both numbers, if the job could never be admitted; Busy if there is no room now; and
        Unavailable once the schedule is closed.
        """
        memory, scheduler, delay_ms = self.memory, self.scheduler, self.delay_ms(cost)
        if delay_ms > LONGEST_MS:
            raise _too_costly(delay_ms, LONGEST_MS)
        try:
            memory.admit(principal, cost, writer)
        except RequestTooLarge as error:
            raise _too_large(error) from None
        except MemoryFull:
            raise Busy from None
        ticket = Ticket(
            principal=principal,
            cost=cost,
            job=job,
            commits_to=writer,
            memory=memory,
            scheduler=scheduler,
            delay_ms=delay_ms,
        )
        try:
            if scheduler is not None:
                scheduler.reserve(ticket)
        except (RequestTooCostly, ScheduleFull, Unavailable) as error:
            ticket.release()
            raise _refusal(error) from None
        return ticket

    @contextmanager
    def holding(self, principal: Hashable, held_bytes: int) -> Iterator[None]:
        """Hold memory for a request that has no cost yet, because it is still coming. Raises InvalidRequest, Busy."""
        with ExitStack() as held:
            try:
                held.enter_context(self.memory.holding(principal, held_bytes))
            except RequestTooLarge as error:
                raise _too_large(error) from None
            except MemoryFull:
                raise Busy from None
            yield


def _refusal(error: RequestTooCostly | ScheduleFull | Unavailable) -> WorkflowError:
    match error:
        case RequestTooCostly():
            return _too_costly(error.needed_ns / _NS_PER_MS, error.allowed_ns / _NS_PER_MS)
        case ScheduleFull():
            return Busy(error.retry_after_s)
        case Unavailable():
            return error


def _too_large(error: RequestTooLarge) -> InvalidRequest:
    return InvalidRequest.of(
        "query",
        f"may need {error.needed_bytes} bytes of memory by its public cost, and all requests of one principal together"
        f" have {error.allowed_bytes}; ask for fewer numbers at once",
    )


def _too_costly(needed_ms: float, allowed_ms: float) -> InvalidRequest:
    return InvalidRequest.of(
        "query",
        f"may need {needed_ms:.0f} ms by its public cost, and a response has to leave within {allowed_ms:.0f} ms; ask"
        " for fewer numbers at once, or for fewer queries in one batch",
    )
