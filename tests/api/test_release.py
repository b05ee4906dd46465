"""Every outcome of a query leaves when its slots end: an answer, a replay, and each refusal after its admission."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from typing import Any

import pytest

from service.api.app import HttpOptions
from service.api.middleware.release_slots import Slots
from service.ledger.model.rows import Asked
from service.ledger.ports.store import CommitUnclear, StoreUnavailable
from service.ledger.ports.telemetry import Telemetry
from service.query.cost import Costs, Speed
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.workflows.replica import ReplicaOptions
from service.writer.admission.admission import Admission
from service.writer.admission.scheduler import slot_rules
from tests.api.clocks import FakeTime, PassingDispatcher
from tests.api.route_table import ROUTES
from tests.api.world import COUNT, World, build_world
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction

MS = 1_000_000
SLOT = 10 * MS
SPEED = Speed(coordinate=94_000.0)
"""The speed of a server that needs 36.5 ms for the 365 days, with the reserve, of `WIDE`."""
FRESH = COUNT.replace(b"20.0", b"21.0")
OTHER = COUNT.replace(b"20.0", b"22.0")
WIDE = (
    b'{"version":1,"select":[{"histogram":{"column":"day"}}],"from":"visits","noise":{"sigma":90.0},'
    b'"per_individual":{"l2_clip":4096}}'
)


class TakingStore(MemoryStore):
    """An in-memory store whose locked transactions take `takes_ms` of the fake time, and fail as `fault` says."""

    def __init__(self, time: FakeTime) -> None:
        super().__init__()
        self.time, self.takes_ms, self.fault = time, 0.0, ""

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        if lock:
            self.time.ns += int(self.takes_ms * MS)
            if self.fault == "gone":
                raise StoreUnavailable
            if self.fault == "breaks":
                raise ZeroDivisionError
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            if lock and self.fault == "unclear":
                transaction.commit = _unclear  # type: ignore[method-assign]
            yield transaction


def _unclear() -> None:
    raise CommitUnclear


class Overruns(Telemetry):
    """Counts what was late."""

    count = 0

    def slot_overrun(self) -> None:
        self.count += 1


class Timed:
    """A world on slots of 10 ms, and when its last response left.

    A request comes at the beginning of a slot, so that its work begins with the next one, 10 ms later.
    """

    def __init__(self, *, deadline_ms: int = 30_000, has_slots: bool = True) -> None:
        self.time, self.overruns = FakeTime(passing=True), Overruns()
        self.store = TakingStore(self.time)
        slots = Slots(length_ns=SLOT) if has_slots else None
        edge = HttpOptions(slots=slots, clock=self.time.clock(), telemetry=self.overruns)
        dispatcher = PassingDispatcher(slot_rules(SLOT, SPEED), self.time, deadline_ns=deadline_ms * MS)
        admission = Admission(speed=SPEED, scheduler=dispatcher if has_slots else None)
        self.world: World = build_world(edge=edge, store=self.store, options=ReplicaOptions(admission=admission))
        self.time.pass_to(self.time.ns // SLOT * SLOT + SLOT)

    async def send(self, method: str, path: str, *, role: str = "analyst", **options: Any) -> tuple[int, float]:
        """(status, ms from the request's arrival to the response's leaving) of one request under /v1."""
        arrived = self.time.ns
        response = await self.world.call(role, method, f"/v1/{path}", **options)
        return response.status_code, (self.time.ns - arrived) / MS

    async def post(self, path: str, body: bytes, *, key: str = "k", role: str = "analyst") -> tuple[int, float]:
        """Send one POST as `send` does."""
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        return await self.send("POST", path, role=role, headers=headers, content=body)

    async def ask(self, body: bytes, *, key: str = "k", role: str = "analyst") -> tuple[int, float]:
        """Send one query as `post` does."""
        return await self.post("datasets/care/queries", body, key=key, role=role)

    async def stated_ms(self, body: bytes) -> float:
        """The delay that a preview states for a query."""
        response = await self.world.call("analyst", "POST", "/v1/datasets/care/queries/preview", content=body)
        delay_ms: float = response.json()["public_cost"]["delay_ms"]
        return delay_ms


@asynccontextmanager
async def timed_world(**options: Any) -> AsyncIterator[Timed]:
    """A fresh world; the analyst `poor` may ask for next to nothing."""
    made = Timed(**options)
    made.world.enrol("poor", "analyst", allowance_rho=Decimal("0.0000001"))
    yield made
    await made.world.close()


@pytest.fixture
async def timed() -> AsyncIterator[Timed]:
    """A world with the usual deadline."""
    async with timed_world() as made:
        yield made


@pytest.mark.parametrize("takes_ms", [0, 0.3, 7, 9.4])
async def test_every_outcome_leaves_at_the_same_instant(timed: Timed, takes_ms: float) -> None:
    """When the one slot ends that a count needs, whatever it is and however long it took."""
    timed.store.takes_ms = takes_ms
    outcomes = {
        "answered": await timed.ask(FRESH, key="a"),
        "replayed": await timed.ask(FRESH, key="a"),
        "reused": await timed.ask(FRESH, key="b"),
        "key conflict": await timed.ask(OTHER, key="a"),
        "allowance exceeded": await timed.ask(OTHER, key="c", role="poor"),
    }
    timed.store.fault = "gone"
    outcomes["database away"] = await timed.ask(OTHER, key="d")
    assert {name: status for name, (status, _) in outcomes.items()} == {
        "answered": 200,
        "replayed": 200,
        "reused": 200,
        "key conflict": 422,
        "allowance exceeded": 403,
        "database away": 503,
    }
    assert {left for _, left in outcomes.values()} == {20}
    assert timed.overruns.count == 0


async def test_a_refusal_before_admission_leaves_a_slot_later(timed: Timed) -> None:
    """No slots were reserved: whatever is wrong, it leaves at the beginning of the next slot."""
    assert await timed.ask(b"{}") == (422, 10)
    assert await timed.ask(FRESH, key="") == (400, 10)
    assert await timed.post("datasets/none/queries", FRESH) == (404, 10)
    assert await timed.ask(FRESH, role="auditor") == (403, 10)
    assert timed.overruns.count == 0


async def test_busy_leaves_a_slot_later(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is reserved for a request for which there is no room, however wide."""
    monkeypatch.setattr("service.writer.admission.schedule.WAITING_MAX", 0)
    assert await timed.ask(FRESH) == (429, 10)
    assert await timed.ask(WIDE) == (429, 10)
    assert timed.overruns.count == 0


async def test_what_could_never_leave_in_time_is_refused_with_both_numbers() -> None:
    """By its public cost alone: 422, when its key has been looked up, which takes the next slot."""
    async with timed_world(deadline_ms=50) as timed:
        headers = {"Idempotency-Key": "k"}
        assert (await timed.ask(FRESH))[0] == 200
        arrived = timed.time.ns
        path = "/v1/datasets/care/queries"
        refused = await timed.world.call("analyst", "POST", path, headers=headers, content=WIDE)
        assert (refused.status_code, timed.time.ns - arrived) == (422, 2 * SLOT)
        needed_ms = 10 + await timed.stated_ms(WIDE)
        assert f"{needed_ms:.0f} ms" in refused.json()["detail"]
        assert "50 ms" in refused.json()["detail"]


async def test_an_unclear_commit_that_stays_unclear_leaves_at_twice_the_delay(timed: Timed) -> None:
    """Two transactions, 12 ms: too late for the slot, and counted."""
    timed.store.takes_ms, timed.store.fault = 6, "unclear"
    assert await timed.ask(FRESH) == (503, 40)
    assert timed.overruns.count == 1


async def test_a_wide_answer_has_the_slots_that_its_preview_states(timed: Timed) -> None:
    """The number is public, and holds for its replay and for every refusal of it alike."""
    delay_ms = await timed.stated_ms(WIDE)
    assert delay_ms == 50
    timed.store.takes_ms = 45
    assert await timed.ask(WIDE, key="w") == (200, 10 + delay_ms)
    assert await timed.ask(WIDE, key="w") == (200, 10 + delay_ms)
    assert await timed.ask(WIDE.replace(b"90.0", b"91.0"), role="poor") == (403, 10 + delay_ms)
    assert timed.overruns.count == 0


async def test_an_answer_states_its_public_cost_and_delay(timed: Timed) -> None:
    """The numbers are those of its preview, and a function of schema, capacity and speed alone."""
    record, speed = timed.world.replica.registry.record("care"), timed.world.replica.admission.speed
    plan = compile_query(parse_query(WIDE), record.schema, capacity=record.capacity, budget_units=record.budget_units)
    expected = Costs(record.schema, capacity=record.capacity, speed=speed).of(plan)
    preview = await timed.world.call("analyst", "POST", "/v1/datasets/care/queries/preview", content=WIDE)
    cost, answer = preview.json()["public_cost"], await timed.world.ask("w", WIDE)
    assert (cost["time_ms"], cost["memory_bytes"]) == (expected.time_ns / 1e6, expected.memory_bytes)
    assert float(answer.headers["public-cost-ms"]) == pytest.approx(cost["time_ms"], abs=0.001)
    assert int(answer.headers["public-cost-bytes"]) == cost["memory_bytes"]
    assert float(answer.headers["public-delay-ms"]) == cost["delay_ms"]


async def test_a_batch_leaves_once(timed: Timed) -> None:
    """All of it at one instant, after the slots that all its valid queries need together."""
    entries = [{"idempotency_key": f"k{n}", "query": json.loads(FRESH)} for n in range(20)]
    entries[1] = {"idempotency_key": "k1", "query": {"version": 1}}
    body = json.dumps({"queries": entries}).encode()
    timed.store.takes_ms = 25
    assert await timed.post("datasets/care/queries/batch", body) == (200, 40)
    assert await timed.post("datasets/care/queries/batch", body[:-1]) == (422, 10)
    assert timed.overruns.count == 0


async def test_every_read_is_held(timed: Timed) -> None:
    """An analyst's until its slots end, an individual's or auditor's for five slots, a curator's not at all.

    A cancellation has no slots, since it must not wait for those of the query, and leaves with the next instant.
    """
    for route in ROUTES:
        role = "analyst" if "analyst" in route.roles else min(route.roles, key="auditor individual curator".find)
        arrived, alarms = timed.time.ns, len(timed.time.alarms)
        response = await route.call(timed.world, role)
        assert response.status_code == route.status, route
        held_ms = (timed.time.ns - arrived) / MS
        if role == "curator":
            assert len(timed.time.alarms) == alarms or route.template == "/v1/datasets", route
        else:
            own_slots_ms = 10 if str(route) == "DELETE /v1/datasets/{dataset}/queries" else 20
            assert held_ms == (own_slots_ms if role == "analyst" else 50), route
        timed.time.pass_to(-(-timed.time.ns // SLOT) * SLOT)
    assert timed.overruns.count == 0


ONE = ("analyst", "POST", "datasets/care/queries")
BATCH = b'{"queries":[{"idempotency_key":"x","query":%s},{"idempotency_key":"y","query":%s}]}'
ENDS: list[tuple[str, tuple[str, str, str], bytes, int]] = [
    ("answered", ONE, FRESH, 200),
    ("first", ONE, OTHER, 422),  # a key that was used
    ("invalid", ONE, b"{}", 422),
    ("allowance", ("poor", "POST", "datasets/care/queries"), OTHER, 403),
    ("batch", ("analyst", "POST", "datasets/care/queries/batch"), BATCH % (FRESH, OTHER), 200),
    ("one bad", ("analyst", "POST", "datasets/care/queries/batch"), BATCH % (FRESH, b'{"version":1}'), 200),
    ("preview", ("analyst", "POST", "datasets/care/queries/preview"), FRESH, 200),
    ("listing", ("analyst", "GET", "queries"), b"", 200),
    ("bad listing", ("analyst", "GET", "queries?limit=0"), b"", 422),
    ("nothing there", ("analyst", "GET", f"queries/{'0' * 32}"), b"", 404),
    ("gone", ONE, OTHER, 503),
    ("breaks", ONE, OTHER, 503),
]
"""The key and the fault, the role and the address, the body and the status of requests that end in every way."""


@pytest.mark.parametrize("has_slots", [True, False])
async def test_memory_is_given_back_however_a_request_ends(has_slots: bool) -> None:
    """Answered, refused for whatever reason, or an incident; with slots and without."""
    async with timed_world(has_slots=has_slots) as timed:
        memory = timed.world.replica.admission.memory
        for case, (role, method, path), body, status in ENDS:
            timed.store.fault = case
            headers = {"Idempotency-Key": case}
            found, _ = await timed.send(method, path, role=role, headers=headers, content=body)
            assert (case, found) == (case, status)
            assert (memory.requests, memory.kept_bytes) == (0, 0), case
