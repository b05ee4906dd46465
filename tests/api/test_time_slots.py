"""The whole stack on slots of 10 ms and the machine's own clock: instants, units and memory, however a request ends."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from service.api.app import HttpOptions
from service.api.middleware.release_clock import ReleaseClock, TimerFd
from service.api.middleware.release_slots import Slots, tickets_of
from service.query.cost import Speed
from service.workflows.admission.admission import Admission
from service.workflows.admission.schedule import SlotRequest
from service.workflows.admission.scheduler import Scheduler, slot_rules
from service.workflows.model.rows import Asked as Looked
from service.workflows.ports.store import StoreUnavailable
from tests.api.world import COUNT, World, build_world
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.waiting import until_async
from tests.workflows.slotwise import Asked, Slotwise

MS = 1_000_000
SLOT = 10 * MS
ASK = "/v1/datasets/care/queries"
RULES = slot_rules(SLOT, Speed())


class Watched(ReleaseClock):
    """The machine's clock; notes for which instants responses have waited."""

    def __init__(self) -> None:
        super().__init__(TimerFd())
        self.instants: list[int] = []

    async def until(self, instant_ns: int) -> None:
        self.instants.append(instant_ns)
        await super().until(instant_ns)


class Stack:
    """A world behind slots, the requests that its schedule was told of, and when each response began to leave."""

    def __init__(self, store: MemoryStore | None = None, *, has_slots: bool = True) -> None:
        self.clock, self.requests = Watched(), list[SlotRequest]()
        scheduler = Scheduler(RULES, deadline_ns=25_000 * MS, observe=self._observe) if has_slots else None
        self.admission = Admission(scheduler=scheduler)
        edge = HttpOptions(slots=Slots(length_ns=SLOT) if has_slots else None, clock=self.clock)
        self.world: World = build_world(edge=edge, admission=self.admission, store=store)
        self.left: list[tuple[int, int | None]] = []  # when, and when its reservation ended
        self.world.client = httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://sparing")

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {}

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                ends = [ticket.leaves_ns for ticket in tickets_of(scope)]
                self.left.append((self.clock.now_ns(), max((end for end in ends if end is not None), default=None)))
            await send(message)

        await self.world.app(scope, receive, send_noted)

    def _observe(self, request: SlotRequest, event: str) -> None:
        if event == "arrived":
            self.requests.append(request)


@asynccontextmanager
async def stacked(store: MemoryStore | None = None, *, has_slots: bool = True) -> AsyncIterator[Stack]:
    """A stack that is closed at the end."""
    made = Stack(store, has_slots=has_slots)
    yield made
    await made.world.client.aclose()
    made.world.replica.close()


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    """With the usual store."""
    async with stacked() as made:
        yield made


def count(sigma: float) -> bytes:
    """A count with a value of its own."""
    return COUNT.replace(b"20.0", b"%f" % sigma)


def batch(name: str, size: int, *, sigma: float = 30) -> bytes:
    """The body of a batch of counts."""
    entries = [{"idempotency_key": f"{name}{n}", "query": json.loads(count(sigma + n / 64))} for n in range(size)]
    return json.dumps({"queries": entries}).encode()


def simulated(requests: Sequence[SlotRequest]) -> list[tuple[int, int] | None]:
    """The reservations that the plain simulation gives for what was told to a schedule."""
    zero_ns = requests[0].arrived_ns // SLOT * SLOT
    plain = [
        Asked(
            principal=request.principal,
            cost_ns=request.cost.time_ns,
            arrived_ns=request.arrived_ns - zero_ns,
            leave_before_ns=request.leave_before_ns - zero_ns,
            dataset=request.commits_to,
            cancelled_ns=None if request.cancelled_ns is None else request.cancelled_ns - zero_ns,
        )
        for request in requests
    ]
    Slotwise(rules=RULES).run(plain, until_ns=60_000 * MS)
    return [None if each.slots is None else (each.slots[0] + zero_ns, each.slots[1] + zero_ns) for each in plain]


async def test_responses_leave_at_the_instants_that_public_events_give(stack: Stack) -> None:
    """Queries, reads, refusals and batches of two analysts at once: whole multiples of the slot, never sooner."""
    stack.world.enrol("other", "analyst")
    before = len(stack.requests)

    async def busy(role: str, number: int) -> None:
        for n in range(4):
            headers = {"Idempotency-Key": f"{number}-{n}", "Content-Type": "application/json"}
            match (number + n) % 4:
                case 0:
                    await stack.world.call(role, "POST", ASK, headers=headers, content=count(50 + number + n / 8))
                case 1:
                    await stack.world.call(role, "GET", "/v1/queries?limit=20")
                case 2:
                    await stack.world.call(role, "POST", ASK, headers=headers, content=b"{}")
                case _:
                    await stack.world.call(role, "POST", f"{ASK}/batch", content=batch(f"{number}-{n}-", 6))

    await asyncio.gather(*(busy(role, number) for number in range(6) for role in ("analyst", "other")))
    assert len(stack.left) == 48
    assert all(instant_ns % SLOT == 0 for instant_ns in stack.clock.instants)
    assert 48 <= len(stack.clock.instants) <= 48 + 12  # a refusal that is due within a reservation waits for its end
    for left_ns, ends_ns in stack.left:
        assert ends_ns is None or left_ns >= ends_ns
        assert any(instant_ns <= left_ns for instant_ns in stack.clock.instants)
    reserved = [
        None if request.reservation is None else (request.reservation.begins_ns, request.reservation.leaves_ns)
        for request in stack.requests
    ]
    assert len(reserved) == before + 36
    assert reserved == simulated(stack.requests)


async def test_a_batch_is_one_unit_among_others_queries(stack: Stack) -> None:
    """Its sequence numbers adjoin whatever other analysts ask for meanwhile, and so do those of its replay."""
    stack.world.enrol("other", "analyst")
    sequences: list[list[int]] = []

    async def batches() -> None:
        for n in range(6):
            response = await stack.world.call(
                "analyst", "POST", f"{ASK}/batch", content=batch(f"b{n}-", 12, sigma=30 + n)
            )
            sequences.append([answer["sequence"] for answer in response.json()["answers"]])

    async def singles(number: int) -> None:
        for n in range(8):
            headers = {"Idempotency-Key": f"s{number}-{n}", "Content-Type": "application/json"}
            answered = await stack.world.call(
                "other", "POST", ASK, headers=headers, content=count(100 + number + n / 16)
            )
            assert answered.status_code == 200

    before = await stack.world.call("analyst", "POST", f"{ASK}/batch", content=batch("b0-", 12, sigma=30))
    await asyncio.gather(batches(), *(singles(number) for number in range(4)))
    replayed = [answer["sequence"] for answer in before.json()["answers"]]
    assert replayed == sequences[0]
    assert len({sequence for unit in sequences for sequence in unit}) == 6 * 12
    assert all(unit == list(range(unit[0], unit[0] + 12)) for unit in sequences)


# Memory is given back once, however a request ends


class FallingStore(MemoryStore):
    """A store whose locked transactions do as `fault` says."""

    fault = ""

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Looked] = ()) -> Iterator[MemoryTransaction]:
        if lock and self.fault == "away":
            raise StoreUnavailable
        if lock and self.fault == "breaks":
            raise ZeroDivisionError
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction


async def ended(world: World, case: str) -> int:
    """The status with which a request of that kind ends."""
    headers = {"Idempotency-Key": "first" if case == "conflict" else case, "Content-Type": "application/json"}
    calls: dict[str, Any] = {
        "batch": ("analyst", "POST", f"{ASK}/batch", {"content": batch(case, 3)}),
        "batch of one bad": (
            "analyst",
            "POST",
            f"{ASK}/batch",
            {"content": batch(case, 3).replace(b"30.015625", b"-1")},
        ),
        "invalid": ("analyst", "POST", ASK, {"content": b"{}", "headers": headers}),
        "allowance": ("poor", "POST", ASK, {"content": count(41), "headers": headers}),
        "listing": ("analyst", "GET", "/v1/queries", {}),
        "listing with a bad limit": ("analyst", "GET", "/v1/queries?limit=0", {}),
        "preview": ("analyst", "POST", f"{ASK}/preview", {"content": COUNT}),
        "nothing there": ("analyst", "GET", f"/v1/queries/{'0' * 32}", {}),
    }
    role, method, path, options = calls.get(case, ("analyst", "POST", ASK, {"content": count(43), "headers": headers}))
    response = await world.call(role, method, path, **options)
    return response.status_code


ENDS = {
    "answered": 200,
    "conflict": 422,
    "batch": 200,
    "batch of one bad": 200,
    "invalid": 422,
    "allowance": 403,
    "listing": 200,
    "listing with a bad limit": 422,
    "preview": 200,
    "nothing there": 404,
    "away": 503,
    "breaks": 503,
}


@pytest.mark.parametrize("has_slots", [True, False])
async def test_memory_is_given_back_however_a_request_ends(has_slots: bool) -> None:
    """Answered, refused for whatever reason, or an incident; with slots and without."""
    store = FallingStore()
    async with stacked(store, has_slots=has_slots) as stack:
        stack.world.enrol("poor", "analyst", allowance_rho=Decimal("0.0000001"))
        for case, status in ENDS.items():
            store.fault = case
            assert await ended(stack.world, case) == status, case
            assert (stack.admission.memory.requests, stack.admission.memory.kept_bytes) == (0, 0), case


async def test_memory_is_held_until_the_response_has_left(stack: Stack) -> None:
    """From admission on; a client that goes while its request is worked on changes nothing before its end."""
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    asked = asyncio.ensure_future(stack.world.call("analyst", "POST", ASK, headers=headers, content=count(44)))
    before = len(stack.requests)
    await until_async(lambda: len(stack.requests) > before)
    assert stack.admission.memory.requests == 1
    assert stack.admission.memory.kept_bytes == stack.requests[-1].cost.kept_bytes
    await asked
    assert stack.admission.memory.requests == 0


async def test_what_needs_more_than_there_is_is_refused_with_both_numbers(stack: Stack) -> None:
    """422 where it never fits, 429 where it does not fit now; the same query is answered when there is room."""
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first = await stack.world.ask("a", count(45))
    needed = int(first.headers["public-cost-bytes"])
    stack.admission.memory.bytes_max = 2 * needed - 2
    refused = await stack.world.ask("b", count(46))
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:sparing:problem:invalid-request")
    assert f"{needed} bytes" in refused.json()["detail"]
    assert f"have {needed - 1};" in refused.json()["detail"]
    stack.admission.memory.bytes_max = 2 * needed
    both = await asyncio.gather(stack.world.ask("b", count(46)), stack.world.ask("c", count(47)))
    assert sorted(response.status_code for response in both) == [200, 429]
    (busy,) = (response for response in both if response.status_code == 429)
    assert busy.headers["retry-after"] == "1"
    assert (await stack.world.call("analyst", "POST", ASK, headers=headers, content=count(48))).status_code == 200
