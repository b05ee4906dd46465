"""Long acts: queries and pauses between their two parts, repeated preparations, and commits with unknown outcome."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from service.ledger.model.errors import InvalidRequest, Unavailable
from service.ledger.model.views import Principal
from service.ledger.ports.store import CommitUnclear, HeadMoved, Store, StoreUnavailable
from service.ledger.ports.transaction import LongAct
from service.query.keys import Key
from service.store.postgres.store import PostgresStore
from service.workflows.replica import Replica
from service.writer.committer import BaseVersion
from service.writer.operations import ATTEMPTS_MAX
from service.writer.state import DatasetState
from tests.factories import PEOPLE, TWO_PEOPLE, VISITS, SeededEntropy, analyst, ask, open_replica, register, upload
from tests.keys import LEDGER_KEY
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import findings, newest, surveyed, writer_of

EVE = [("eve", "NO", 71, 0)]
NEW_VISITS: dict[str, Any] = {"from": "visits", "where": {"in": [{"col": "item"}, [3, 4]]}}


@dataclass
class Between:
    """Stops the next long act after its long part, until the test lets it on."""

    reached: threading.Event = field(default_factory=threading.Event)
    on: threading.Event = field(default_factory=threading.Event)
    acts: int = 0

    def hasten(self) -> None:
        """Called where the long part ends."""
        self.acts += 1
        self.reached.set()
        assert self.on.wait(PATIENCE_S)

    @contextmanager
    def during(self, task: Callable[[], Any]) -> Iterator[Future[Any]]:
        """Run the block between the two parts of a task's long act."""
        self.reached.clear()
        self.on.clear()
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(task)
            assert self.reached.wait(PATIENCE_S)
            try:
                yield future
            finally:
                self.on.set()


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each store in turn; one connection is left for everything but long acts."""
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = PostgresStore(request.getfixturevalue("database_url"), LEDGER_KEY, connections_max=1, lock_timeout_ms=2000)
    yield opened
    opened.close()


@pytest.fixture
def between(store: Store, monkeypatch: pytest.MonkeyPatch) -> Between:
    """A stop in every long act of the store."""
    stop, real = Between(), store.long_act
    stop.on.set()

    @contextmanager
    def long_act(dataset_id: int) -> Iterator[LongAct]:
        with real(dataset_id) as transaction:
            transaction.hasten = stop.hasten  # type: ignore[method-assign]
            yield transaction

    monkeypatch.setattr(store, "long_act", long_act)
    return stop


@pytest.fixture
def replica(store: Store, between: Between) -> Iterator[Replica]:
    """A dataset of two people with a visit each."""
    visits = VISITS | {"unknown_individuals": "create", "rows_per_individual": 3}
    with surveyed(store, TWO_PEOPLE, tables={"people": PEOPLE, "visits": visits}) as opened:
        upload(opened, "visits", [("ann", 1), ("bob", 2)])
        yield opened
    assert findings(store) == []


def charged(replica: Replica, key: str, **query: Any) -> int:
    """The number of individuals charged by a query."""
    ask(replica, analyst(replica), key, reuse=False, **query)
    return newest(replica).charged


def pause(replica: Replica, key: str) -> None:
    """Pause an individual, as itself."""
    replica.individuals.lower_limit(individual(key), "survey", pause=True)


def resume(replica: Replica, key: str) -> None:
    """End the pause."""
    replica.individuals.resume(individual(key), "survey")


def individual(key: str) -> Principal:
    """The principal of one individual."""
    return Principal(
        id=UUID(int=9), role="individual", name=key, dataset="survey", individual=Key(key), allowance_units=None
    )


def state_of(replica: Replica) -> DatasetState:
    """The replica's state of the dataset."""
    return writer_of(replica)._state


def check(replica: Replica, store: Store) -> None:
    """Check that memory equals a fresh load."""
    state, fresh = state_of(replica), DatasetState(replica.registry.record("survey"))
    with store.transaction(1, lock=False) as transaction:
        fresh.catch_up(transaction)
    assert state.position == fresh.position
    for held, wanted in (
        (only_shard(state).memory.people.present, only_shard(fresh).memory.people.present),
        (only_shard(state).memory.accounts.limits, only_shard(fresh).memory.accounts.limits),
        (only_shard(state).memory.accounts.spent, only_shard(fresh).memory.accounts.spent),
        (only_shard(state).memory.accounts.paused, only_shard(fresh).memory.accounts.paused),
    ):
        assert np.array_equal(held, wanted)
    assert only_shard(state).memory.events["visits"].rows == only_shard(fresh).memory.events["visits"].rows


def test_queries_are_answered_while_an_upload_is_prepared(replica: Replica, store: Store, between: Between) -> None:
    """Without its rows before its end, and with all of them after."""
    with between.during(lambda: upload(replica, "people", EVE)):
        assert charged(replica, "before") == 2
    assert charged(replica, "after") == 3
    with between.during(lambda: upload(replica, "visits", [("ann", 3), ("kim", 4)])):
        assert charged(replica, "v before", **NEW_VISITS) == 0
    assert charged(replica, "v after", **NEW_VISITS) == 2
    check(replica, store)


@pytest.mark.parametrize("act", ["erase", "upload"])
def test_a_pause_waits_for_no_long_act(replica: Replica, store: Store, between: Between, act: str) -> None:
    """Neither for an upload nor for the individual's own erasure, which locks its account; all of them end."""

    def task() -> None:
        if act == "erase":
            replica.curators.erase_individual("survey", "ann")
        else:
            upload(replica, "visits", [("ann", 3)])

    with between.during(task) as done:
        pause(replica, "ann")
        assert charged(replica, "during") == 1
    done.result()
    assert charged(replica, "after") == 1
    assert bool(only_shard(state_of(replica)).memory.accounts.paused[0])
    check(replica, store)


def test_a_preparation_from_before_a_load_is_repeated(replica: Replica, store: Store, between: Between) -> None:
    """Its records were replaced by the load: it is prepared again, and applied once."""
    acts = between.acts
    with between.during(lambda: upload(replica, "people", EVE)) as done:
        state_of(replica).invalidate_all()
        assert charged(replica, "during") == 2
    done.result()
    assert between.acts == acts + 2
    assert charged(replica, "after") == 3
    check(replica, store)


def test_individuals_that_join_during_a_reconciliation_join_under_its_terms(
    replica: Replica, store: Store, between: Between
) -> None:
    """The fence has moved: their limits are lower by the charges that may have been lost."""
    with between.during(lambda: upload(replica, "people", EVE)) as done, store.transaction(1, lock=True) as transaction:
        transaction.fence_off(7, 1000)
        transaction.journal("reconcile", {"fence": 7, "joining_units": "1000"})
        transaction.commit()
    done.result()
    assert (
        int(only_shard(state_of(replica)).memory.accounts.limits[2])
        == replica.registry.record("survey").budget_units - 1000
    )
    check(replica, store)


def test_a_preparation_that_is_always_in_vain_is_given_up(
    replica: Replica, store: Store, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is unavailable, and nothing is stored."""

    def check_nothing(self: BaseVersion, state: DatasetState, head: object) -> None:
        raise HeadMoved

    acts = between.acts
    with monkeypatch.context() as patch:
        patch.setattr(BaseVersion, "check", check_nothing)
        with pytest.raises(Unavailable):
            upload(replica, "people", EVE)
    assert between.acts == acts + ATTEMPTS_MAX
    assert charged(replica, "after") == 2
    check(replica, store)


def test_a_refused_upload_holds_up_no_other(replica: Replica, store: Store) -> None:
    """The transaction of the refused upload has ended."""
    with pytest.raises(InvalidRequest, match="registered already"):
        upload(replica, "people", [*EVE, TWO_PEOPLE[0]])
    upload(replica, "people", EVE)
    check(replica, store)


def test_replicas_give_out_each_slot_once(replica: Replica, store: Store, between: Between) -> None:
    """The second upload begins when the first has ended, at any replica."""
    if isinstance(store, PostgresStore):
        store._pool._pool.resize(1, 6)  # for two replicas
    with open_replica(store, SeededEntropy(6)) as second:
        with between.during(lambda: upload(replica, "people", EVE)), ThreadPoolExecutor(1) as pool:
            other = pool.submit(lambda: upload(second, "people", [("kim", "SE", 5, 5)]))
            between.on.set()
            other.result()
        assert charged(replica, "first") == charged(second, "second") == 4
        check(second, store)
        assert charged(replica, "last") == 4
        check(replica, store)


class UnclearTransaction(MemoryTransaction):
    """A COMMIT without a response; whether it takes effect is set before."""

    takes_effect = True

    def commit(self) -> None:
        if self.takes_effect:
            super().commit()
        raise CommitUnclear


@pytest.mark.parametrize("takes_effect", [True, False])
@pytest.mark.parametrize("act", ["erase", "join", "pause", "resume"])
def test_an_act_whose_commit_is_unclear_is_followed_if_it_is_durable(
    monkeypatch: pytest.MonkeyPatch, takes_effect: bool, act: str
) -> None:
    """The request is unavailable; the next query sees the outcome, and memory is not loaded again."""
    store = MemoryStore()
    with surveyed(store, TWO_PEOPLE) as replica:
        acts: dict[str, Callable[[], None]] = {
            "erase": lambda: replica.curators.erase_individual("survey", "ann"),
            "join": lambda: upload(replica, "people", EVE),
            "pause": lambda: pause(replica, "ann"),
            "resume": lambda: resume(replica, "bob"),
        }
        if act == "resume":
            pause(replica, "bob")
        memory = only_shard(state_of(replica)).memory
        with monkeypatch.context() as patch:
            patch.setattr(UnclearTransaction, "takes_effect", takes_effect)
            patch.setattr("tests.memory.store.MemoryTransaction", UnclearTransaction)
            with pytest.raises(Unavailable):
                acts[act]()
        usual = 1 if act == "resume" else 2
        assert (
            charged(replica, "after") == {"erase": 1, "join": 3, "pause": 1, "resume": 2}[act]
            if takes_effect
            else usual
        )
        assert only_shard(state_of(replica)).memory is memory
        check(replica, store)


def test_a_store_that_fails_in_the_long_part_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is unavailable, as after a failure in the short part."""
    store = MemoryStore()
    with open_replica(store) as replica:
        register(replica)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryTransaction, "add_records", _fail)
            with pytest.raises(Unavailable):
                upload(replica, "people", TWO_PEOPLE)
        upload(replica, "people", TWO_PEOPLE)
        check(replica, store)


def _fail(*_: object) -> None:
    raise StoreUnavailable
