"""Under a clock that is wrong by years nothing is done, and all goes on where it stood once the clock is right."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.ledger.model.errors import ClockImplausible
from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.maintenance.summary_points import SummaryPoints
from service.workflows.replica import Replica
from tests.contracts.stores import STORES, open_store
from tests.factories import CLOCK, THREE_PEOPLE, analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.waiting import until

YEARS_500 = timedelta(days=500 * 365)


class World:
    """A replica with three people and an analyst that has asked once, and a clock that can be moved."""

    def __init__(self, store: Store) -> None:
        self.now, self.store = CLOCK, store
        self.coming: list[datetime] = []
        self.replica: Replica
        self.who: Principal
        self.key = ""

    def clock(self) -> datetime:
        return self.coming.pop(0) if self.coming else self.now

    def kept(self) -> dict[str, Any]:
        """Everything dated that the store keeps."""
        record = self.replica.registry.record("survey")
        with self.store.transaction(record.id, lock=False) as transaction:
            entries, head = list(transaction.entries(after=0)), transaction.head
        return {
            "head": head,
            "entries": entries,
            "principals": self.store.principals.listed(after=None, limit=100),
            "points": self.store.summaries.points(record.id),
        }


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """On each store in turn."""
    url = request.getfixturevalue("database_url") if request.param == "postgres" else None
    with open_store(request.param, url) as store:
        built = World(store)
        with open_replica(store, clock=built.clock) as replica:
            built.replica = replica
            register(replica)
            upload(replica, "people", THREE_PEOPLE)
            built.who = analyst(replica)
            _, built.key = replica.principals.create(role="auditor", name="eve")
            assert ask(replica, built.who, "first").sequence == 1
            yield built


ACTS: dict[str, Callable[[World], object]] = {
    "a query": lambda world: ask(world.replica, world.who, "second", reuse=False),
    "a key of before": lambda world: world.replica.principals.authenticate_all([world.key])[0],
    "a new key": lambda world: world.replica.principals.create(role="auditor", name="new"),
    "a revoked key": lambda world: world.replica.principals.revoke(world.who.id),
    "a sign-in": lambda world: world.replica.sign_ins.begin(world.who),
    "a sign-in of before": lambda world: world.replica.sign_ins.authenticate_all(["token"])[0],
    "a verification": lambda world: world.replica.overview.verify("survey"),
}


@pytest.mark.parametrize("off", [YEARS_500, -YEARS_500], ids=["ahead", "behind"])
def test_nothing_is_done_under_a_wrong_clock_and_all_goes_on_afterwards(world: World, off: timedelta) -> None:
    """No entry, charge, principal or point is kept, and a query that was refused is answered under the same key."""
    record = world.replica.registry.record("survey")
    points = SummaryPoints(world.store, clock=world.replica.readiness.clock)
    writer = world.replica.registry.writer(record)
    points.writer_opened(record, writer.guard, writer)
    before, token = world.kept(), world.replica.sign_ins.begin(world.who)
    world.now = CLOCK + off
    for act in ACTS.values():
        with pytest.raises(ClockImplausible):
            act(world)
    points.step()
    assert world.replica.readiness.report().codes == ["clock-implausible"]
    assert not world.replica.readiness.is_ready()
    assert world.kept() == before
    world.now = CLOCK
    points.step()
    assert world.replica.readiness.report().codes == []
    assert world.replica.sign_ins.authenticate_all([token])[0] == world.who
    assert ask(world.replica, world.who, "second", reuse=False).sequence == 2
    assert [point.seq for point in world.kept()["points"]] == [1]


def test_a_verification_that_ends_under_a_wrong_clock_keeps_its_result() -> None:
    """Its end has no date."""
    world = World(MemoryStore())
    with open_replica(world.store, clock=world.clock) as replica:
        register(replica)
        world.coming = [CLOCK, CLOCK + YEARS_500]
        begun = replica.overview.verify("survey")
        assert (begun.state, begun.began_at) == ("running", CLOCK)
        until(lambda: replica.overview.verification("survey").state != "running")
        ended = replica.overview.verification("survey")
    assert (ended.state, ended.began_at, ended.ended_at) == ("clean", CLOCK, None)
