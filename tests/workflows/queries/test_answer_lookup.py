"""Another replica's answer: the same bytes without the dataset's writer, or the writer's own answer."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from service.query.parse import parse_query
from service.workflows.model.errors import Fenced, KeyConflict, Unavailable
from service.workflows.ports.witness import WitnessUnavailable
from service.workflows.queries.answer_lookup import LOOKING_MAX
from tests.contracts.caches import TIMEOUT_S
from tests.factories import ask, witness_of
from tests.gated_store import GatedStore
from tests.workflows.replicas import Replicas, analyst_like, eventually, replicas, truth

QUERY = parse_query(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":3.0}}')


@pytest.fixture
def world() -> Iterator[Replicas]:
    """Two replicas over a store whose locked transactions can be held."""
    with replicas(GatedStore()) as made:
        yield made
        made.store.gate.set()


def told(world: Replicas, key: str, *, number: int = 1) -> None:
    """Wait until a replica has a hint for a key."""
    cache, replica = world.caches[number], world.replicas[number]
    hint = cache.hint(replica.registry.record("survey").genesis, (world.analyst.id, key))
    eventually(lambda: hint in replica._exchange.hints)


def test_a_retry_at_another_replica_does_not_wait_for_the_writer(world: Replicas) -> None:
    """The stored bytes, while the dataset is locked; nothing is drawn or charged."""
    first = ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    world.store.gate.clear()
    again = ask(world.replicas[1], world.analyst, "k")
    assert (again.body, again.query_id, again.sequence) == (first.body, first.query_id, first.sequence)
    assert again.values().tolist() == first.values().tolist()
    assert world.drawn[1].drawn == []
    world.store.gate.set()
    assert world.store.head(1).seq == 1


def test_another_analyst_with_the_same_key_gets_an_answer_of_its_own(world: Replicas) -> None:
    """Even if a hint leads to a lookup in the cache."""
    first = ask(world.replicas[0], world.analyst, "k", reuse=False)
    told(world, "k")
    other = analyst_like(world.analyst, 8)
    replica, cache = world.replicas[1], world.caches[1]
    replica._exchange.hints.add([cache.hint(replica.registry.record("survey").genesis, (other.id, "k"))])
    theirs = ask(replica, other, "k", reuse=False)
    assert theirs.query_id != first.query_id
    assert theirs.body != first.body


def test_another_query_under_the_key_is_refused_by_the_writer(world: Replicas) -> None:
    """Conflicts are decided by the database."""
    ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    with pytest.raises(KeyConflict):
        ask(world.replicas[1], world.analyst, "k", noise={"sigma": 5.0})


def test_a_key_without_a_hint_never_asks_the_cache(world: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary query costs no round trip; a retry costs one."""
    ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    asked: list[object] = []
    monkeypatch.setattr(world.caches[1], "answer", lambda genesis, address: asked.append(address))
    for n in range(5):
        ask(world.replicas[1], world.analyst, f"new {n}", reuse=False)
    assert asked == []
    ask(world.replicas[1], world.analyst, "k")
    assert asked == [(world.analyst.id, "k")]


@pytest.mark.parametrize("change", [{"fence": 7}, {"entry_hash": bytes(32)}, {"seq": 99}])
def test_an_answer_of_another_history_is_not_given(world: Replicas, change: dict[str, Any]) -> None:
    """An answer of another fence, or one that shows an entry missing in this ledger."""
    first = ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    genesis = world.replicas[0].registry.record("survey").genesis
    shared = world.caches[0].answer(genesis, (world.analyst.id, "k"))
    assert shared is not None
    record = replace(shared.record, body=b'{"values":[666]}', seq=change.pop("seq", shared.record.seq))
    world.caches[0].share([replace(shared, record=record, **change)], [])
    assert ask(world.replicas[1], world.analyst, "k").body == first.body


def test_an_answer_lost_by_the_cache_comes_from_the_writer(world: Replicas) -> None:
    """The writer returns the same bytes."""
    first = ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    world.caches[0]._values._room.values.clear()  # type: ignore[attr-defined]
    assert ask(world.replicas[1], world.analyst, "k").body == first.body


def test_many_concurrent_retries_get_the_same_bytes(world: Replicas) -> None:
    """Some by lookups and, beyond the number of lookup threads, some by the writer."""
    first = ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    promises = [world.replicas[1].analysts.submit(world.analyst, "survey", "k", QUERY) for _ in range(5 * LOOKING_MAX)]
    assert {promise.result(timeout=TIMEOUT_S).body for promise in promises} == {first.body}
    assert world.store.head(1).seq == 1


def test_an_unwitnessed_answer_is_not_given(world: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A committed answer that was withheld is not given by another replica either; a later retry returns it."""
    told_of: list[object] = []
    monkeypatch.setattr(world.replicas[0]._exchange, "committed", lambda *told: told_of.append(told))

    def unwritable(*_: object) -> None:
        raise WitnessUnavailable

    witness = witness_of(world.store)
    with monkeypatch.context() as patched:
        patched.setattr(witness, "write", unwritable)
        with pytest.raises(Unavailable):
            ask(world.replicas[0], world.analyst, "k")
    assert world.store.head(1).seq == 1
    assert told_of == []
    assert ask(world.replicas[0], world.analyst, "k").sequence == 1
    ask(world.replicas[0], world.analyst, "another", reuse=False)
    assert len(told_of) == 1


def test_a_dataset_that_its_witness_keeps_closed_is_closed_for_retries_too(world: Replicas) -> None:
    """With the database behind its witness, an answer in the cache and in the ledger is not given."""
    ask(world.replicas[0], world.analyst, "k", reuse=False)
    told(world, "k", number=0)
    before = world.store.kept[1]
    ask(world.replicas[0], world.analyst, "later", reuse=False)
    world.store.kept[1] = before
    with pytest.raises(Fenced):
        ask(world.replicas[0], world.analyst, "k", reuse=False)


def test_a_closed_replica_leaves_no_promise_open(world: Replicas) -> None:
    """A submission after the close is refused by the writer."""
    ask(world.replicas[0], world.analyst, "k")
    told(world, "k")
    lookup, writer = world.replicas[1]._submitter.lookup, world.writer(1)
    assert lookup is not None
    lookup.close()
    assert ask(world.replicas[1], world.analyst, "k").sequence == 1
    assert writer.length == 0


def test_replicas_agree_on_what_was_spent(world: Replicas) -> None:
    """Two replicas answer in turn, each following the other's commits."""
    for n in range(12):
        ask(world.replicas[n % 2], world.analyst, f"k{n}", reuse=False)
    assert truth(world.store) == world.spent(1)
    eventually(lambda: world.spent(0) == world.spent(1))
