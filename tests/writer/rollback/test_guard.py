"""The guard: answers are witnessed before they leave, and a database that has forgotten some stays closed."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest

from service.ledger.model.errors import Fenced, InvalidRequest, NotFound, Unavailable, WitnessLost
from service.ledger.model.rows import WitnessRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import CommitUnclear, StoreUnavailable
from service.ledger.ports.witness import Witness, WitnessUnavailable
from service.maintenance.reconcile import Reconciled, after, before, reconcile, reconcile_plan
from service.maintenance.verify.report import verify_all
from service.store.witness.combined import CombinedWitness
from service.workflows.replica import Replica
from service.writer.rollback.guard import witness_name
from tests.factories import CLOCK, THREE_PEOPLE, ask, open_replica, register, upload
from tests.logged import records_of
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S
from tests.workflows.stores import FaultyStore
from tests.workflows.surveys import newest, surveyed

COST = 61_083_979_321  # of a count at sigma 3 for each individual in it: ceil(2^40 / 18)


class WatchedWitness(MemoryWitness):
    """A witness that can be away; on each write it notes the durable sequence and the released answers."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self.store = store
        self.is_away = False
        self.is_unreadable = False
        self.told: list[tuple[int, int]] = []

    def history(self, dataset: str) -> list[WitnessRecord]:
        if self.is_unreadable:
            raise WitnessUnavailable
        return super().history(dataset)

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        if self.is_away:
            raise WitnessUnavailable
        self.told.append((record.seq, self.store.head(1).seq))
        return super().write(dataset, record)


@pytest.fixture
def store() -> FaultyStore:
    """A store whose faults are set by the test."""
    return FaultyStore()


@pytest.fixture
def witness(store: FaultyStore) -> WatchedWitness:
    """A witness whose faults are set by the test."""
    return WatchedWitness(store)


@pytest.fixture
def replica(store: FaultyStore, witness: WatchedWitness) -> Iterator[Replica]:
    """Three registered people."""
    with surveyed(store, witness=witness) as opened:
        yield opened


def fresh(replica: Replica, ana: Principal, key: str) -> int:
    """Ask a query that is not reused; returns the answer's sequence."""
    return ask(replica, ana, key, reuse=False).sequence


def spent(replica: Replica) -> dict[str, int]:
    """The spent total of each individual."""
    return {row.key: row.spent_units for row in replica.curators.budgets("survey", cursor=None, limit=100).items}


def left(replica: Replica) -> dict[str, int]:
    """The remaining budget of each individual."""
    rows = replica.curators.budgets("survey", cursor=None, limit=100).items
    return {row.key: row.budget_units - row.spent_units for row in rows}


def copy_of(store: MemoryStore) -> MemoryStore:
    """A clone of the database."""
    clone = MemoryStore()
    clone.kept, clone._locks = dict(store.kept), {1: threading.Lock()}
    clone.principal_records = dict(store.principal_records)
    return clone


def mend(store: MemoryStore, witness: Witness, units: int | None = None) -> Reconciled | None:
    """Reconcile the dataset."""
    return reconcile(store, witness, "survey", burn_units=units, clock=lambda: CLOCK)


def burned(store: MemoryStore, witness: Witness) -> Reconciled:
    """Reconcile a dataset that has lost something."""
    done = mend(store, witness)
    assert done is not None
    return done


# Before an answer leaves


def test_every_answer_is_witnessed_after_it_is_durable_and_before_it_leaves(
    replica: Replica, ana: Principal, witness: WatchedWitness
) -> None:
    """The witness never runs ahead of the database, and is never behind what was released."""
    for n in range(1, 5):
        assert fresh(replica, ana, f"k{n}") == n
        assert witness.history(witness_name(replica.registry.record("survey")))[-1].seq == n
    assert all(told <= durable for told, durable in witness.told)
    assert [told for told, _ in witness.told] == [0, 0, 1, 2, 3, 4]


def test_an_answer_that_cannot_be_witnessed_is_withheld_on_every_path(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """It is durable but withheld from queries, retries and listings. Later each of them returns it."""
    witness.is_away = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            ask(replica, ana, "k")
    query_id = replica.analysts.releases(ana, cursor=None, limit=5).items[0].id
    with pytest.raises(Unavailable):
        replica.analysts.release(ana, query_id)
    assert replica.readiness.report().codes == ["witness-unavailable"]
    witness.is_away = False
    released = replica.analysts.release(ana, query_id)
    assert ask(replica, ana, "k").body == released.body
    assert store.head(1).seq == 1
    assert witness.told[-1] == (1, 1)


def test_readiness_tries_the_witness_again(
    store: FaultyStore, witness: WatchedWitness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A replica that is not ready gets no queries, so readiness itself has to try again."""
    monkeypatch.setattr("service.workflows.readiness.READY_FOR", timedelta(0))
    with surveyed(store, THREE_PEOPLE[:1], witness=witness) as replica:
        witness.is_away = True
        with pytest.raises(Unavailable):
            upload(replica, "people", THREE_PEOPLE[1:])
        assert replica.readiness.report().codes == ["witness-unavailable"]
        witness.is_away = False
        assert replica.readiness.report().codes == []
        assert spent(replica).keys() == {"ann", "bob", "eve"}
    assert [each for each in caplog.messages if "witness" in each] == ["dataset survey: its witness cannot be written"]


def test_a_witness_that_cannot_be_read_is_not_taken_for_an_empty_one(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """A new process that cannot read it answers nothing."""
    fresh(replica, ana, "a")
    witness.is_unreadable = True
    with open_replica(store, witness=witness) as other:
        assert other.readiness.check_witnesses() == ["witness-unavailable"]
        with pytest.raises(Unavailable) as refused:
            fresh(other, ana, "b")
        assert type(refused.value) is Unavailable
        with pytest.raises(Unavailable):
            mend(store, witness)
        assert [report.findings for report in verify_all(store, witness)] == [["witness: cannot be read"]]
        witness.is_unreadable = False
        assert other.readiness.check_witnesses() == []
        assert fresh(other, ana, "b") == 2


def test_a_stored_answer_is_witnessed_before_it_leaves_again(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """A process died between commit and witness and left an unreleased answer: the next confirms it recorded."""
    fresh(replica, ana, "a")
    body = ask(replica, ana, "b", reuse=False).body
    name = witness_name(replica.registry.record("survey"))
    witness.kept[name].pop()
    with open_replica(store, witness=witness) as other:
        assert witness.history(name)[-1].seq == 1
        assert ask(other, ana, "b", reuse=False).body == body
        assert witness.history(name)[-1].seq == 2


@pytest.mark.parametrize("how", ["asked", "fetched"])
def test_a_witness_record_that_was_only_read_is_rewritten_before_a_replay(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness, how: str
) -> None:
    """Its writer may have died before it was on the disk; writing the record again makes it durable."""
    first = ask(replica, ana, "a")
    with open_replica(store, witness=witness) as other:
        assert other.readiness.check_witnesses() == []
        witness.told.clear()
        body = ask(other, ana, "a").body if how == "asked" else other.analysts.release(ana, first.query_id).body
        assert body == first.body
        assert witness.told == [(1, 1)]
        assert ask(other, ana, "a").body == body
        assert witness.told == [(1, 1)]  # from then on it is certain


def test_after_a_restore_old_sequence_numbers_do_not_count_as_witnessed(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """The lost history had higher sequence numbers than the entries that came since."""
    backup = dict(store.kept)
    for n in range(5):
        fresh(replica, ana, f"k{n}")
    store.kept = backup
    mend(store, witness)
    with open_replica(store, witness=witness) as other:
        witness.is_away = True
        with pytest.raises(Unavailable):
            fresh(other, ana, "withheld")
        witness.is_away = False
        withheld = other.analysts.releases(ana, cursor=None, limit=5).items[0]
        assert withheld.sequence < 5
        witness.told.clear()
        replica.analysts.release(ana, withheld.id)
    assert witness.told == [(withheld.sequence, withheld.sequence)]


def test_the_first_witness_is_written_even_if_the_second_already_was(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """The second witness is written while the first is: after a power cut it alone may have the last answer."""
    body = ask(replica, ana, "a", reuse=False).body
    second, name = MemoryWitness(), witness_name(replica.registry.record("survey"))
    second.write(name, witness.kept[name].pop())
    with open_replica(store, witness=CombinedWitness(witness, [second])) as other:
        assert ask(other, ana, "a", reuse=False).body == body
    assert witness.history(name)[-1].seq == 1


@pytest.mark.parametrize("fault", ["lost-reply", "lost-request"])
def test_an_unclear_commit_is_witnessed_before_its_answer_leaves(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness, fault: str
) -> None:
    """An answer found by its key after an unclear commit is witnessed like any other."""
    store.faults, witness.is_away = [fault], True
    with pytest.raises(Unavailable):
        ask(replica, ana, "k")
    witness.is_away = False
    assert ask(replica, ana, "k").sequence == 1
    assert witness.told[-1] == (1, 1)
    assert store.head(1).seq == 1


def test_a_replica_without_queries_needs_no_witness(store: FaultyStore) -> None:
    """A dataset without answers is fresh; it is witnessed before its first act, and after it."""
    witness = WatchedWitness(store)
    with open_replica(store, witness=witness) as replica:
        register(replica)
        assert replica.readiness.check_witnesses() == []
        assert witness.kept == {}
        upload(replica, "people", THREE_PEOPLE)
        positions = [record.position for records in witness.kept.values() for record in records]
        assert positions == [(1, 0, 0), (1, 0, 1)]


# A database that is behind


def test_everything_is_closed_behind_the_witness(
    replica: Replica, ana: Principal, store: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Queries, acts, readings and previews, for analysts, curators and individuals; readiness and one line say so."""
    fresh(replica, ana, "a")
    backup = dict(store.kept)
    query_id = ask(replica, ana, "b", reuse=False).query_id
    me = replica.principals.create(role="individual", name="ann", dataset="survey", individual="ann")[0]
    store.kept = backup
    assert replica.readiness.report().codes == []  # before the first look
    closed: list[Any] = [
        lambda: ask(replica, ana, "c"),
        lambda: ask(replica, ana, "a", reuse=False),
        lambda: upload(replica, "people", [("joe", "NO", 1, 1)]),
        lambda: replica.curators.erase_individual("survey", "ann"),
        lambda: replica.curators.open_epoch("survey"),
        lambda: replica.curators.budgets("survey", cursor=None, limit=5),
        lambda: replica.overview.summary("survey"),
        lambda: replica.auditors.ledger("survey", cursor=None, limit=5),
        lambda: replica.individuals.budgets(me),
        lambda: replica.individuals.receipts(me, cursor=None, limit=5),
        lambda: replica.individuals.lower_limit(me, "survey", pause=True),
        lambda: replica.analysts.preview(ana, "survey", _count()),
    ]
    for call in closed:
        with pytest.raises(Fenced) as refused:
            call()
        assert type(refused.value) is Fenced
    with pytest.raises(NotFound):
        replica.analysts.release(ana, query_id)
    assert replica.readiness.check_witnesses() == ["ledger-rollback"]
    assert mend(store, replica.registry.witness) is not None
    assert replica.readiness.check_witnesses() == []
    for call in (closed[0], closed[5], closed[8], closed[11]):
        call()
    told = records_of(caplog, "sparing.witness")
    assert [each.getMessage() for each in told] == [
        "dataset survey: closed as ledger-rollback",
        "dataset survey: open again",
    ]
    assert {getattr(each, "dataset", None) for each in told} == {"survey"}


def _count() -> Any:
    from service.query.parse import parse_query  # noqa: PLC0415 - for one call

    return parse_query(b'{"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3}}')


def test_a_burn_charges_each_individual_the_lost_worst_cases_and_no_more(
    replica: Replica, ana: Principal, store: FaultyStore
) -> None:
    """The worst case of the lost answers, also for individuals that they had not touched; limits hold."""
    fresh(replica, ana, "a")
    backup = dict(store.kept)
    ask(replica, ana, "b", where={"ge": [{"col": "age"}, 40]}, reuse=False)
    ask(replica, ana, "c", where={"ge": [{"col": "age"}, 70]}, reuse=False)
    truth = spent(replica)
    assert truth == {"ann": 2 * COST, "bob": COST, "eve": 3 * COST}
    store.kept = backup
    done = burned(store, replica.registry.witness)
    assert (done.plan.missing_units, done.plan.joining_units) == (2 * COST, 0)
    assert (done.entry.charged_count, done.entry.charged_units, done.exhausted_count) == (3, 6 * COST, 0)
    assert spent(replica) == dict.fromkeys(truth, 3 * COST)
    assert (done.entry.seq, done.plan.fence) == (2, 2)
    assert fresh(replica, ana, "d") == 3
    assert mend(store, replica.registry.witness) is None
    assert [report.findings for report in verify_all(store, replica.registry.witness)] == [[]]
    assert after(None) == ["nothing to reconcile: all that was witnessed is in the ledger"]
    assert before(done.plan)[0] == (
        "ledger-rollback: the database is at sequence 1 under fence 1, with 1 acts;"
        " sequence 3, fence 1 and 1 acts were witnessed"
    )


def test_a_burn_stops_at_the_limit_and_analysts_do_not_see_it(
    replica: Replica, ana: Principal, store: FaultyStore
) -> None:
    """Curators see it in the ledger, individuals in their receipts; analysts do not see it."""
    me = replica.principals.create(role="individual", name="ann", dataset="survey", individual="ann")[0]
    replica.individuals.lower_limit(me, "survey", limit_rho=Decimal("0.1"))
    backup = dict(store.kept)
    for n in range(4):
        ask(replica, ana, f"k{n}", where={"ge": [{"col": "age"}, 70]}, reuse=False)
    store.kept = backup
    replica.readiness.check_witnesses()
    done = burned(store, replica.registry.witness)
    limit = int(Decimal("0.1") * 2**40)
    assert spent(replica) == {"ann": limit, "bob": 4 * COST, "eve": 4 * COST}
    assert done.exhausted_count == 1
    row = newest(replica)
    assert (row.kind, row.charged, row.dimension, row.sigma) == ("burn", 3, 0, 0.0)
    receipt = replica.individuals.receipts(me, cursor=None, limit=5).items[0]
    assert (receipt.kind, receipt.outcome) == ("burn", "charged")
    assert receipt.asked == {"burn": {"why": "ledger-rollback", "units": str(4 * COST)}}
    assert replica.analysts.releases(ana, cursor=None, limit=5).items == ()


def test_lost_acts_alone_close_a_dataset_too(replica: Replica, ana: Principal, store: FaultyStore) -> None:
    """A lowered limit is undone, or an erased record is back: the operator has to know."""
    fresh(replica, ana, "a")
    backup = dict(store.kept)
    replica.curators.erase_individual("survey", "bob")
    store.kept = backup
    with pytest.raises(Fenced):
        fresh(replica, ana, "b")
    done = burned(store, replica.registry.witness)
    assert (done.plan.missing_units, done.entry.charged_count) == (0, 0)
    assert fresh(replica, ana, "b") == 3


def test_lost_individuals_do_not_return_with_a_fresh_budget(
    replica: Replica, ana: Principal, store: FaultyStore
) -> None:
    """The lost people are unknown: individuals that join after the burn get a limit lower by it, the others pay."""
    fresh(replica, ana, "a")
    backup = dict(store.kept)
    upload(replica, "people", [("joe", "NO", 50, 1)])
    fresh(replica, ana, "b")
    assert spent(replica)["joe"] == COST
    before_loss = left(replica)
    store.kept = backup
    done = burned(store, replica.registry.witness)
    assert done.plan.joining_units == COST
    upload(replica, "people", [("joe", "NO", 50, 1), ("zoe", "SE", 20, 1)])
    assert left(replica) == before_loss | {"zoe": before_loss["joe"]}
    sequence = replica.curators.dataset("survey").sequence
    assert sequence == 2  # joining takes no number: an analyst would see a gap


def test_people_lost_with_another_history_are_counted_as_lost(
    replica: Replica, ana: Principal, store: FaultyStore
) -> None:
    """The lost and the restored history may give the same slots to different people."""
    backup = dict(store.kept)
    upload(replica, "people", [("joe", "NO", 50, 1)])
    fresh(replica, ana, "a")
    with_joe = dict(store.kept)
    store.kept = backup
    mend(store, replica.registry.witness)
    upload(replica, "people", [("zoe", "NO", 50, 1)])
    fresh(replica, ana, "b")
    store.kept = with_joe
    assert len(with_joe[1].people) == 4
    done = burned(store, replica.registry.witness)
    assert done.plan.fence == 3  # no other history was ever under it
    upload(replica, "people", [("zoe", "NO", 50, 1)])
    assert left(replica)["zoe"] == 2**39 - COST  # the charge of b


def test_erased_individuals_are_burned_too(replica: Replica, ana: Principal, store: FaultyStore) -> None:
    """They may have come back in the lost history, and may come back again: their account exists all the while."""
    fresh(replica, ana, "a")
    replica.curators.erase_individual("survey", "bob")
    backup = dict(store.kept)
    upload(replica, "people", [THREE_PEOPLE[1]])
    fresh(replica, ana, "b")
    truth = spent(replica)
    store.kept = backup
    done = burned(store, replica.registry.witness)
    assert done.entry.charged_count == 3
    upload(replica, "people", [THREE_PEOPLE[1]])
    assert spent(replica) == truth == dict.fromkeys(truth, 2 * COST)


def test_a_saturated_sum_of_worst_cases_burns_everything(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """A saturated sum of worst cases says nothing about the lost answers."""
    wild: dict[str, Any] = {
        "select": [{"sum": {"column": "spend"}}],
        "noise": {"sigma": 0.0000004},
        "where": {"eq": [{"col": "age"}, 0]},
    }
    for n in range(2):
        ask(replica, ana, f"wild{n}", **wild)
    assert store.head(1).worst_case_units == 2**62
    backup = dict(store.kept)
    fresh(replica, ana, "a")
    store.kept = backup
    done = burned(store, witness)
    assert "everything" in before(done.plan)[1]
    assert set(left(replica).values()) == {0}


# A witness that is lost, late, or of another history


def test_a_lost_witness_is_never_recreated_silently(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """The dataset closes until the operator states what to burn, also for individuals that join later."""
    fresh(replica, ana, "a")
    witness.kept.clear()
    with open_replica(store, witness=witness) as other:
        assert other.readiness.check_witnesses() == ["witness-lost"]
        with pytest.raises(WitnessLost):
            fresh(other, ana, "b")
        assert witness.kept == {}
        assert "nothing is left" in next(iter(verify_all(store, witness))).findings[0]
        with pytest.raises(InvalidRequest):
            mend(store, witness)
        plan = reconcile_plan(store, witness, "survey", burn_units=2**36)
        assert plan is not None
        assert (plan.missing_units, plan.joining_units) == (2**36, 2**36)
        assert before(plan)[-1] == "individuals that join from now on have a limit lower by 0.0625 rho"
        assert mend(store, witness, 2**36) is not None
        assert spent(other) == dict.fromkeys(["ann", "bob", "eve"], COST + 2**36)
        assert other.readiness.check_witnesses() == []
        assert fresh(other, ana, "b") == 3


def test_a_running_replica_notices_a_restore_without_its_witness(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """With the witness deleted under it, it still notices a database that goes back, and restores the witness."""
    fresh(replica, ana, "a")
    backup = dict(store.kept)
    fresh(replica, ana, "b")
    witness.kept.clear()
    now = dict(store.kept)
    store.kept = backup
    with pytest.raises(Fenced):
        fresh(replica, ana, "c")
    store.kept = now
    assert fresh(replica, ana, "c") == 3
    assert witness.history(witness_name(replica.registry.record("survey")))[-1].seq == 3


def test_a_witness_that_is_behind_is_brought_forward(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """An older copy of the witness, or a process that died before writing it: nothing is lost."""
    for n in range(4):
        fresh(replica, ana, f"k{n}")
    name = witness_name(replica.registry.record("survey"))
    del witness.kept[name][2:]
    with open_replica(store, witness=witness) as other:
        assert other.readiness.check_witnesses() == []
        assert fresh(other, ana, "k") == 5
    assert witness.history(name)[-1].seq == 5


def test_replicas_on_one_database_share_a_witness(replica: Replica, ana: Principal, store: FaultyStore) -> None:
    """In turn or at once, neither takes the other for a clone."""
    with open_replica(store, witness=replica.registry.witness) as other:
        for n in range(6):
            fresh((replica, other)[n % 2], ana, f"k{n}")
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(fresh, (replica, other)[n % 2], ana, f"at once {n}") for n in range(24)]
            assert sorted(each.result(timeout=PATIENCE_S) for each in asked) == list(range(7, 31))
        assert replica.readiness.check_witnesses() == other.readiness.check_witnesses() == []


def test_a_clone_on_the_same_witness_closes_both(replica: Replica, ana: Principal, store: FaultyStore) -> None:
    """Two databases cannot both continue one copy: a replica that finds the other's mark stops answering."""
    fresh(replica, ana, "a")
    clone = copy_of(store)
    with open_replica(clone, witness=replica.registry.witness) as other:
        fresh(replica, ana, "b")
        for _ in range(2):
            with pytest.raises(Fenced):
                fresh(other, ana, "c")
        assert other.readiness.check_witnesses() == ["ledger-rollback"]
        # The clone reaches the same number with other content.
        done = burned(clone, replica.registry.witness)
        with pytest.raises(Fenced):
            fresh(replica, ana, "d")
        assert fresh(other, ana, "d") == done.entry.seq + 1


def test_a_clone_that_writes_first_is_detected_at_the_next_write(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """Both were open when the clone was made; the second writer's answer is withheld, and both histories are burned."""
    fresh(replica, ana, "a")
    clone = copy_of(store)
    with open_replica(clone, witness=witness) as other:
        assert spent(other) == spent(replica)
        fresh(other, ana, "b")  # released
        with pytest.raises(Fenced):
            fresh(replica, ana, "c")  # withheld: the other's record stands where this one would
        assert replica.readiness.check_witnesses() == ["ledger-rollback"]
        truth = spent(other)
        burned(store, witness)
        assert all(spent(replica)[key] >= units for key, units in truth.items())
        with pytest.raises(Fenced):
            fresh(other, ana, "d")


def test_a_history_of_the_same_length_put_under_a_running_replica_is_noticed(
    replica: Replica, ana: Principal, store: FaultyStore
) -> None:
    """A clone ran beside it with a witness of its own and took its place: the numbers fit, but not the hash."""
    fresh(replica, ana, "a")
    clone, apart = copy_of(store), MemoryWitness()
    apart.kept = {name: list(records) for name, records in replica.registry.witness.kept.items()}  # type: ignore[attr-defined]
    fresh(replica, ana, "b")
    with open_replica(clone, witness=apart) as other:
        for n in range(2):
            fresh(other, ana, f"there {n}")
    store.kept = clone.kept
    with pytest.raises(Fenced):
        fresh(replica, ana, "c")
    assert replica.readiness.check_witnesses() == ["ledger-rollback"]


def test_histories_that_were_witnessed_apart_are_both_burned(
    replica: Replica, ana: Principal, store: FaultyStore
) -> None:
    """A clone ran beside it with a witness of its own: brought together, each must pay for the other's answers."""
    fresh(replica, ana, "a")
    clone, apart = copy_of(store), MemoryWitness()
    apart.kept = {name: list(records) for name, records in replica.registry.witness.kept.items()}  # type: ignore[attr-defined]
    with open_replica(clone, witness=apart) as other:
        for n in range(2):
            fresh(other, ana, f"there {n}")
        for n in range(3):
            fresh(replica, ana, f"here {n}")
    together = CombinedWitness(replica.registry.witness, [apart])
    with open_replica(store, witness=together) as merged:
        with pytest.raises(Fenced):
            fresh(merged, ana, "b")
        burned(store, together)
        assert set(spent(merged).values()) == {(1 + 3 + 2) * COST}


def test_reconciling_is_safe_to_repeat(
    replica: Replica, ana: Principal, store: FaultyStore, witness: WatchedWitness
) -> None:
    """Repeating the command burns once, at whichever step it failed."""
    fresh(replica, ana, "a")
    backup = dict(store.kept)
    fresh(replica, ana, "b")
    store.kept = backup
    store.faults = ["gone"]
    with pytest.raises(StoreUnavailable):
        mend(store, witness)
    store.faults = ["lost-reply"]
    with pytest.raises(CommitUnclear):
        mend(store, witness)
    assert store.head(1).fence == 2
    witness.is_away = True
    with pytest.raises(Unavailable):
        mend(store, witness)
    assert replica.readiness.check_witnesses() == []  # the burn is in the ledger and valid
    with pytest.raises(Unavailable):
        fresh(replica, ana, "c")
    witness.is_away = False
    assert mend(store, witness) is None
    assert spent(replica) == dict.fromkeys(["ann", "bob", "eve"], 3 * COST)
    assert fresh(replica, ana, "c") == 3
    with pytest.raises(NotFound):
        reconcile(store, witness, "nothing", burn_units=None, clock=lambda: CLOCK)


def test_a_reused_answer_survives_a_burn(replica: Replica, ana: Principal, store: FaultyStore) -> None:
    """A burn is not an answer, and answers released before it can still be reused at no charge."""
    first = ask(replica, ana, "a")
    backup = dict(store.kept)
    fresh(replica, ana, "b")
    store.kept = backup
    mend(store, replica.registry.witness)
    again = orjson.loads(ask(replica, ana, "c").body)
    assert (again["reused"], again["values"]) == (True, orjson.loads(first.body)["values"])
