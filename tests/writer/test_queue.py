"""The writer of one dataset: batches, retries, reuse, allowances, and commits with unknown outcome."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson
import pytest

from service.ledger.model.errors import AllowanceExceeded, Busy, KeyConflict, NotFound, Unavailable
from service.query.parse import parse_query
from service.workflows.replica import Replica
from service.writer.admission.schedule import ScheduleFull
from service.writer.admission.scheduler import ServersOwn
from tests.factories import SeededEntropy, analyst, ask, individual_named, open_replica, register, upload, values
from tests.waiting import PATIENCE_S
from tests.workflows.stores import FaultyStore
from tests.workflows.surveys import findings, held, surveyed, writer_of


@pytest.fixture
def store() -> FaultyStore:
    """A store whose faults are set by the test."""
    return FaultyStore()


def test_a_retry_returns_the_same_bytes_without_a_charge(replica: Replica) -> None:
    """Same key and query: the stored answer; the ledger has one entry."""
    who = analyst(replica)
    first = ask(replica, who, "k", noise={"sigma": 3})
    again = ask(replica, who, "k", noise={"sigma": 3.0})
    assert again.body == first.body
    assert len(replica.auditors.ledger("survey", cursor=None, limit=10).items) == 1


def test_another_query_under_a_used_key_is_refused(replica: Replica) -> None:
    """Also when only `reuse` differs; nothing is charged."""
    who = analyst(replica)
    ask(replica, who, "k")
    for other in ({"noise": {"sigma": 4}}, {"reuse": False}):
        with pytest.raises(KeyConflict):
            ask(replica, who, "k", **other)
    assert len(replica.auditors.ledger("survey", cursor=None, limit=10).items) == 1


def test_a_key_belongs_to_its_analyst_and_dataset(replica: Replica) -> None:
    """Two analysts may use the same key; each gets an answer of its own."""
    register(replica, "other")
    ana, eva = analyst(replica), analyst(replica, "eva")
    answers = [
        ask(replica, ana, "k", reuse=False),
        ask(replica, eva, "k", reuse=False),
        ask(replica, ana, "k", "other", reuse=False),
    ]
    assert len({answer.query_id for answer in answers}) == 3


def test_an_identical_query_is_answered_from_the_ledger_until_the_next_epoch(replica: Replica) -> None:
    """Reuse costs no charge, returns the same values, and ends with the public epoch, not with an append."""
    ana, eva = analyst(replica), analyst(replica, "eva")
    first = ask(replica, ana, "a")
    spent = replica.curators.budgets("survey", cursor=None, limit=10)
    upload(replica, "people", [("joe", "SE", 20, 1)])
    reused = ask(replica, eva, "b")
    assert values(reused) == values(first)
    said, again = orjson.loads(first.body), orjson.loads(reused.body)
    assert again == said | {"reused": True, "notes": again["notes"]}
    assert orjson.loads(first.body)["reused"] is False
    assert replica.curators.budgets("survey", cursor=None, limit=3).items == spent.items
    assert ask(replica, eva, "c", reuse=False).query_id != first.query_id
    replica.curators.open_epoch("survey")
    fresh = ask(replica, ana, "d")
    assert orjson.loads(fresh.body)["reused"] is False
    assert orjson.loads(fresh.body)["epoch"] == 2


def test_a_reused_answer_belongs_to_its_key_for_good(replica: Replica, store: FaultyStore) -> None:
    """Alone in its transaction it is stored like any other: the next epoch neither changes its bytes nor charges."""
    who = analyst(replica)
    ask(replica, who, "a")
    reused = ask(replica, who, "b")
    replica.curators.open_epoch("survey")
    with pytest.raises(KeyConflict):
        ask(replica, who, "b", noise={"sigma": 4})
    assert ask(replica, who, "b").body == reused.body
    assert len(replica.auditors.ledger("survey", cursor=None, limit=10).items) == 1


def test_an_allowance_ends_an_analyst_on_public_numbers(replica: Replica) -> None:
    """The worst case decides, whichever individuals are touched; a refusal leaves nothing behind."""
    who = analyst(replica, allowance_rho=Decimal("0.12"))  # sigma 3: 1/18 = 0.0556 a query
    everybody = ask(replica, who, "a", reuse=False)
    nobody = ask(replica, who, "b", where={"ge": [{"col": "age"}, 100]}, reuse=False)
    assert everybody.sequence + 1 == nobody.sequence
    refused = r"may cost rho 0\.0594.*; rho 0\.0088.* of your allowance is left"
    with pytest.raises(AllowanceExceeded, match=refused):
        ask(replica, who, "c", where={"ge": [{"col": "age"}, 100]}, noise={"sigma": 2.9})
    left = replica.analysts.allowances(who)[0]
    assert Decimal(left.spent_rho) + Decimal(left.left_rho or 0) == pytest.approx(Decimal("0.12"))
    assert ask(replica, who, "a", reuse=False).body == everybody.body


def test_an_analyst_sees_only_its_dataset(replica: Replica) -> None:
    """Another dataset is refused like an unknown one."""
    register(replica, "other")
    who = analyst(replica, dataset="other")
    for name in ("survey", "nothing"):
        with pytest.raises(NotFound):
            ask(replica, who, "k", name)


@pytest.mark.parametrize("fault", ["lost-reply", "late", "lost-request", "gone"])
def test_an_unclear_commit_is_read_never_redone(
    replica: Replica, store: FaultyStore, entropy: SeededEntropy, fault: str
) -> None:
    """If it was durable, its bytes; if not, a 503, and the retry executes once. No second noise in either case.

    One that is still on its way is waited for: the answers are read under the lock.
    """
    who = analyst(replica)
    store.faults = [fault]
    entropy.drawn.clear()
    durable = fault in {"lost-reply", "late"}
    if durable:
        first = ask(replica, who, "k")
    else:
        with pytest.raises(Unavailable):
            ask(replica, who, "k")
    draws = len(entropy.drawn)
    again = ask(replica, who, "k")
    entries = replica.auditors.ledger("survey", cursor=None, limit=10).items

    assert len(entries) == 1
    assert entries[0].charged == 3
    assert (len(entropy.drawn) == draws) is durable
    if durable:
        assert again.body == first.body
    spent = {row.spent_units for row in replica.curators.budgets("survey", cursor=None, limit=10).items}
    assert spent == {61_083_979_321}  # ceil(2^40 / 18): each of the three paid once
    assert findings(store) == []


def test_a_failed_commit_leaves_no_debit_behind(replica: Replica, store: FaultyStore) -> None:
    """Also where another replica's entry has taken the place in the ledger: memory does not follow that entry."""
    who = analyst(replica)
    with open_replica(store) as other:
        store.faults = ["gone"]
        with pytest.raises(Unavailable):
            ask(replica, who, "k")
        ask(other, who, "nobody", where={"ge": [{"col": "age"}, 100]})
        assert {row.spent_units for row in replica.curators.budgets("survey", cursor=None, limit=10).items} == {0}


def test_everything_that_waits_shares_one_transaction(replica: Replica, store: FaultyStore) -> None:
    """Thirty queries behind a busy writer are answered in order, under one lock."""
    who = analyst(replica)
    before = store.locked
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 30}, "reuse": False}))
    with held(writer_of(replica)):
        futures = [replica.analysts.submit(who, "survey", f"k{n}", query) for n in range(30)]
    sequences = [future.result(timeout=PATIENCE_S).sequence for future in futures]
    assert sequences == list(range(1, 31))
    assert store.locked - before == 1


def test_the_same_key_twice_in_one_batch_executes_once(replica: Replica) -> None:
    """The second delivery finds the first one's answer before anything is committed."""
    who = analyst(replica)
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 30}}))
    futures = [replica.analysts.submit(who, "survey", "k", query) for _ in range(8)]
    assert len({future.result(timeout=PATIENCE_S).body for future in futures}) == 1
    assert len(replica.auditors.ledger("survey", cursor=None, limit=10).items) == 1


def test_a_full_queue_refuses_at_once(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy depends only on the lengths of the queue and of the analyst's own part, which may fill half of it."""
    monkeypatch.setattr("service.writer.queue.QUEUE_MAX", 4)
    register(replica, "small")
    who = analyst(replica)
    writer = replica.registry.writer(replica.registry.record("small"))
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 30}}))
    with held(writer):
        futures = [replica.analysts.submit(who, "small", f"k{n}", query) for n in range(2)]
        refused = replica.analysts.submit(who, "small", "k3", query)
        assert isinstance(refused.exception(timeout=PATIENCE_S), Busy)
        assert refused.dimension == 1
        futures.append(replica.analysts.submit(analyst(replica, "bo"), "small", "k", query))
    assert [future.result(timeout=PATIENCE_S).sequence for future in futures] == [1, 1, 1]


def test_a_failing_query_does_not_affect_the_rest_of_its_batch(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failing query in a batch is an incident; the others get their answers, once each."""
    who = analyst(replica)
    real = __import__("service.writer.shards.shard", fromlist=["contributions"]).contributions

    def fragile(plan: Any, memory: Any, **rule: Any) -> Any:
        if plan.scale.size == 13.0:
            raise RuntimeError("ann is 44")
        return real(plan, memory, **rule)

    monkeypatch.setattr("service.writer.shards.shard.contributions", fragile)
    bodies = [
        orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False})
        for sigma in (12.0, 13.0, 14.0)
    ]
    futures = [replica.analysts.submit(who, "survey", f"k{n}", parse_query(body)) for n, body in enumerate(bodies)]
    outcomes = [future.exception(timeout=PATIENCE_S) for future in futures]
    assert [type(outcome) for outcome in outcomes] == [type(None), Unavailable, type(None)]
    assert "44" not in str(outcomes[1])
    assert len(replica.auditors.ledger("survey", cursor=None, limit=10).items) == 2


def test_a_restart_stands_on_the_checkpoint(store: FaultyStore) -> None:
    """Closing writes the pages; a new replica starts from them and agrees."""
    with surveyed(store) as replica:
        who = analyst(replica)
        for n in range(5):
            ask(replica, who, f"k{n}", reuse=False)
        before = replica.curators.budgets("survey", cursor=None, limit=10).items
    assert store.head(1).checkpoint_seq == 5
    assert findings(store) == []
    with open_replica(store) as replica:
        assert replica.curators.budgets("survey", cursor=None, limit=10).items == before
        assert ask(replica, who, "k9", reuse=False).sequence == 6


def test_an_act_waits_in_the_turn_of_its_principal_and_the_servers_own_in_the_datasets(replica: Replica) -> None:
    """So that one principal's crowd delays none of another's, and each is counted."""
    bob, turns = individual_named(replica, "bob"), list[object]()
    writer = writer_of(replica)

    def begin(act: Callable[[int], None], principal: object) -> None:
        turns.append(principal)
        act(0)

    writer.when_free = begin
    replica.individuals.resume(bob, "survey")
    replica.individuals.ask_erasure(bob, "survey")
    replica.curators.open_epoch("survey")
    writer.checkpoint()
    assert turns == [bob.id, bob.id, *[ServersOwn(writer.committer.state.record.id)] * 2]


def test_an_act_too_many_of_a_principal_is_refused(replica: Replica) -> None:
    """With the seconds after which there may be room."""
    writer = writer_of(replica)

    def refuse(_act: Callable[[int], None], _principal: object) -> None:
        raise ScheduleFull(3)

    writer.when_free = refuse
    with pytest.raises(Busy) as refused:
        replica.individuals.resume(individual_named(replica, "bob"), "survey")
    assert refused.value.retry_after_s == 3
