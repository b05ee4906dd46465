"""Every outcome of a query leaves at the same instants: an answer, a replay, and each refusal after validation."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from service.api.app import Edge
from service.api.slots import COORDINATE_NS, QUERY_NS, Slots
from service.store.memory.store import MemoryStore
from service.store.memory.transaction import MemoryTransaction
from service.workflows.errors import Busy
from service.workflows.ports import CommitUnclear, StoreUnavailable
from service.workflows.records import Asked
from service.workflows.telemetry import Silent
from tests.api.clocks import FakeTime
from tests.api.routes import ROUTES
from tests.api.world import COUNT, World, build_world

MS = 1_000_000
SLOT = 10 * MS
FRESH = COUNT.replace(b"20.0", b"21.0")
OTHER = COUNT.replace(b"20.0", b"22.0")
WIDE = b'{"version":1,"select":[{"histogram":{"column":"day"}}],"from":"visits","noise":{"sigma":90.0}}'


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
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            if lock and self.fault == "unclear":
                transaction.commit = _unclear  # type: ignore[method-assign]
            yield transaction


def _unclear() -> None:
    raise CommitUnclear


class Overruns(Silent):
    """Counts what was late."""

    count = 0

    def slot_overrun(self) -> None:
        self.count += 1


class Timed:
    """A world on slots of 10 ms, and when its last response left."""

    def __init__(self) -> None:
        self.time, self.overruns = FakeTime(passing=True), Overruns()
        self.store = TakingStore(self.time)
        edge = Edge(slots=Slots(length_ns=SLOT), clock=self.time.clock(), telemetry=self.overruns)
        self.world: World = build_world(edge=edge, store=self.store)

    async def post(self, path: str, body: bytes, *, key: str = "k", role: str = "analyst") -> tuple[int, float]:
        """(status, ms from the request's arrival to the response's leaving) of one POST under /v1."""
        arrived = self.time.ns
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        response = await self.world.call(role, "POST", f"/v1/{path}", headers=headers, content=body)
        return response.status_code, (self.time.ns - arrived) / MS

    async def ask(self, body: bytes, *, key: str = "k", role: str = "analyst") -> tuple[int, float]:
        """The same of one query."""
        return await self.post("datasets/care/queries", body, key=key, role=role)


@pytest.fixture
async def timed() -> Any:
    """A fresh world; the analyst `poor` may ask for next to nothing."""
    made = Timed()
    made.world.enrol("poor", "analyst", allowance_rho=Decimal("0.0000001"))
    yield made
    await made.world.client.aclose()
    made.world.house.close()


@pytest.mark.parametrize("takes_ms", [0, 0.3, 7, 9.9])
async def test_every_outcome_leaves_at_the_same_instant(timed: Timed, takes_ms: float) -> None:
    """One slot after arrival, whatever it is and however long it took."""
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
    assert {left for _, left in outcomes.values()} == {10}
    assert timed.overruns.count == 0


async def test_busy_leaves_with_the_rest(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full line refuses at the door; the refusal leaves when the answer would have, which for a wide one is later."""
    monkeypatch.setattr("service.api.slots.COORDINATE_NS", 100_000)  # 365 days are then 36.5 ms
    house = timed.world.house

    def full(_: object) -> None:
        raise Busy

    monkeypatch.setattr(house.lines.line(house.lines.record("care")), "_enqueue", full)
    assert await timed.ask(FRESH) == (503, 10)
    assert await timed.ask(WIDE) == (503, 40)


async def test_an_unclear_commit_that_stays_unclear_leaves_on_a_slot(timed: Timed) -> None:
    """Two transactions, 12 ms: the next slot, counted."""
    timed.store.takes_ms, timed.store.fault = 6, "unclear"
    assert await timed.ask(FRESH) == (503, 20)
    assert timed.overruns.count == 1


async def test_work_that_takes_longer_leaves_at_the_next_slot(timed: Timed) -> None:
    """And the operator's count moves by one."""
    timed.store.takes_ms = 33
    assert await timed.ask(FRESH) == (200, 40)
    assert timed.overruns.count == 1


async def test_a_wide_answer_is_due_by_its_dimension(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is public, and holds for its replay and for every refusal of it alike."""
    monkeypatch.setattr("service.api.slots.COORDINATE_NS", 100_000)  # 365 days are then 36.5 ms
    timed.store.takes_ms = 30
    assert await timed.ask(WIDE, key="w") == (200, 40)
    assert await timed.ask(WIDE, key="w") == (200, 40)
    assert await timed.ask(WIDE.replace(b"90.0", b"91.0"), role="poor") == (403, 40)
    assert timed.overruns.count == 0


async def test_a_batch_leaves_once(timed: Timed) -> None:
    """All of it at one instant, by how many queries it has and how many numbers they ask for."""
    count = 2 + SLOT // QUERY_NS
    entries = [{"idempotency_key": f"k{n}", "query": json.loads(FRESH)} for n in range(count)]
    entries[1] = {"idempotency_key": "k1", "query": {"version": 1}}
    body = json.dumps({"queries": entries}).encode()
    timed.store.takes_ms = 4
    assert await timed.post("datasets/care/queries/batch", body) == (200, 20)
    assert await timed.post("datasets/care/queries/batch", body[:-1]) == (422, 10)
    assert count * COORDINATE_NS < SLOT
    assert timed.overruns.count == 0


async def test_all_that_analysts_read_is_held(timed: Timed) -> None:
    """Every route of theirs but the catalogue, which looks at no record; nobody else's."""
    for route in ROUTES:
        role = "analyst" if "analyst" in route.roles else min(route.roles)
        arrived = timed.time.ns
        await route.call(timed.world, role)
        held = (timed.time.ns - arrived) / MS
        assert held == (10 if route.roles == {"analyst"} else 0), route
