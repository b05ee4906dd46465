"""A key that was answered replays even if its query is refused today; all other refusals stand."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import Busy, Fenced, InvalidRequest, KeyConflict, Unavailable
from service.ledger.model.rows import Asked, DatasetRecord, WitnessRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import StoreUnavailable
from service.ledger.ports.witness import WitnessUnavailable
from service.query import plan
from service.query.cost import Speed
from service.query.items.count import Count
from service.query.layout import Layout
from service.query.parse import parse_query
from service.query.schema import Schema
from service.store.postgres.store import PostgresStore
from service.workflows.queries import stored_answers as replaying
from service.workflows.queries.stored_answers import ANSWER_BYTES
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.admission.admission import Admission, MemoryBound
from service.writer.admission.scheduler import Scheduler, slot_rules
from service.writer.submission import PendingAnswer
from tests.factories import PEOPLE, THREE_PEOPLE, VISITS, analyst, ask, open_replica, register, upload
from tests.keys import LEDGER_KEY
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import findings

OF_AGE: dict[str, Any] = {"where": {"ge": [{"col": "age"}, 40]}, "noise": {"sigma": 3.0}}
IN_STEPS: dict[str, Any] = {"select": [{"sum": {"column": "age"}}], "per_individual": {"l2_clip": 0.3}}
REFUSED: dict[str, Any] = {"where": {"ge": [{"col": "nothing"}, 40]}}
DOCUMENT: dict[str, Any] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}}


def narrowed(record: DatasetRecord | None) -> DatasetRecord | None:
    """The dataset as a later version may read it: without the column `age`."""
    if record is None:
        return None
    columns = {name: column for name, column in PEOPLE["columns"].items() if name != "age"}  # type: ignore[attr-defined]
    tables = {"people": PEOPLE | {"columns": columns}, "visits": VISITS}
    return replace(record, schema=Schema.model_validate(tables))


class LaterMemoryStore(MemoryStore):
    """The in-memory store, which can switch to a narrower schema, and counts its transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.is_later, self.is_away = False, False
        self.transactions: list[bool] = []
        self.gate = threading.Event()
        self.gate.set()

    def dataset(self, name: str) -> DatasetRecord | None:
        record = super().dataset(name)
        return narrowed(record) if self.is_later else record

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.transactions.append(lock)
        self.gate.wait(PATIENCE_S)
        if self.is_away:
            raise StoreUnavailable
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction


class LaterPostgresStore(PostgresStore):
    """A store on Postgres that can switch to a narrower schema."""

    is_later = False

    def dataset(self, name: str) -> DatasetRecord | None:
        record = super().dataset(name)
        return narrowed(record) if self.is_later else record


class MoodyWitness(MemoryWitness):
    """A witness whose writes can be made to fail."""

    is_away = False

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        if self.is_away:
            raise WitnessUnavailable
        return super().write(dataset, record)


@pytest.fixture(params=["memory", "postgres"])
def either(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each store, before the change."""
    if request.param == "memory":
        yield LaterMemoryStore()
        return
    opened = LaterPostgresStore(request.getfixturevalue("database_url"), LEDGER_KEY)
    yield opened
    opened.close()


@pytest.fixture
def store() -> LaterMemoryStore:
    """The in-memory store, before the change."""
    return LaterMemoryStore()


@contextmanager
def replica_on(
    store: Any, witness: MemoryWitness | None = None, admission: Admission | None = None
) -> Iterator[Replica]:
    """A replica with a dataset of three individuals, newly registered or already in the store."""
    with open_replica(store, witness=witness, options=ReplicaOptions(admission=admission or Admission())) as opened:
        if not store.datasets():
            register(opened)
            upload(opened, "people", THREE_PEOPLE)
        yield opened


def submitted(replica: Replica, who: Principal, key: str, query: dict[str, Any]) -> PendingAnswer:
    """The pending answer of a submitted query."""
    return replica.analysts.submit(who, "survey", key, parse_query(orjson.dumps(DOCUMENT | query)))


def answered_before(store: LaterMemoryStore) -> tuple[Principal, StoredAnswer]:
    """An analyst, and the answer under its key to a query that is refused from now on."""
    with replica_on(store) as replica:
        who = analyst(replica)
        first = ask(replica, who, "k", **OF_AGE)
    store.is_later = True
    return who, first


def test_an_answered_key_replays_a_query_refused_today(either: Any) -> None:
    """The key gives the same bytes, charged once; under another key the query is refused."""
    with replica_on(either) as replica:
        who = analyst(replica)
        firsts = {key: ask(replica, who, key, **query) for key, query in (("a", OF_AGE), ("b", IN_STEPS))}
    either.is_later = True
    with replica_on(either) as replica:
        for key, query in (("a", OF_AGE), ("b", IN_STEPS)):
            first, again = firsts[key], ask(replica, who, key, **query)
            assert (again.body, again.query_id, again.sequence) == (first.body, first.query_id, first.sequence)
            assert again.values().tolist() == first.values().tolist() == orjson.loads(first.body)["values"]
        assert orjson.loads(firsts["b"].body)["grid"] < 1
        with pytest.raises(InvalidRequest, match="age"):
            ask(replica, who, "c", **OF_AGE)
    assert either.head(1).seq == 2
    either.is_later = False
    assert findings(either) == []


def test_a_key_answered_when_items_could_be_repeated_replays(store: LaterMemoryStore) -> None:
    """Under another key the query is refused, naming the item."""
    twice: dict[str, Any] = {"select": [{"count": {}}, {"count": {}}]}
    with replica_on(store) as replica:
        who = analyst(replica)
        with pytest.MonkeyPatch.context() as earlier:
            twice_counted = Layout(groups=(), items=(Count(), Count()), places=(0, 1))
            earlier.setattr(plan, "_layout", lambda *_: twice_counted)
            first = ask(replica, who, "a", **twice)
        assert (first.body, orjson.loads(first.body)["dimension"]) == (ask(replica, who, "a", **twice).body, 2)
        with pytest.raises(InvalidRequest, match=r"select\[1\]: repeats select\[0\]"):
            ask(replica, who, "b", **twice)
    assert store.head(1).seq == 1


def test_a_key_with_a_share_among_items_replays(store: LaterMemoryStore) -> None:
    """A plan states the weights that the query left out: the request is found by the query as it is meant."""
    divided = OF_AGE | {"select": [{"count": {}}, {"sum": {"column": "spend"}}], "noise": {"share": 0.5}}
    with replica_on(store) as replica:
        who = analyst(replica)
        first = ask(replica, who, "k", **divided)
    store.is_later = True
    with replica_on(store) as replica:
        assert ask(replica, who, "k", **divided).body == first.body


@pytest.mark.parametrize("other", ["analyst", "query", "reuse", "dataset"])
def test_the_answer_to_another_request_is_not_given(either: Any, other: str) -> None:
    """An answer to another analyst, another query, another value of `reuse`, or about another dataset."""
    with replica_on(either) as replica:
        register(replica, "other")
        who, eva = analyst(replica), analyst(replica, "eva")
        ask(replica, who, "k", **OF_AGE)
    either.is_later = True
    query = OF_AGE
    if other == "query":
        query = OF_AGE | {"noise": {"sigma": 4.0}}
    elif other == "reuse":
        query = OF_AGE | {"reuse": False}
    with replica_on(either) as replica, pytest.raises(InvalidRequest):
        ask(replica, eva if other == "analyst" else who, "k", "other" if other == "dataset" else "survey", **query)


def test_an_accepted_query_is_looked_up_by_the_writer_alone(store: LaterMemoryStore) -> None:
    """Neither an accepted query nor a conflict costs a lookup."""
    with replica_on(store) as replica:
        who = analyst(replica)
        ask(replica, who, "k")
        store.transactions.clear()
        ask(replica, who, "l", reuse=False)
        with pytest.raises(KeyConflict):
            ask(replica, who, "k", noise={"sigma": 4.0})
        assert False not in store.transactions
        with pytest.raises(InvalidRequest):
            ask(replica, who, "m", where={"ge": [{"col": "nothing"}, 40]})
        assert store.transactions.count(False) == 1


def test_submitting_waits_for_no_database(store: LaterMemoryStore) -> None:
    """It may be called in an event loop."""
    with replica_on(store) as replica:
        who = analyst(replica)
        ask(replica, who, "k")
        store.gate.clear()
        promises = [submitted(replica, who, f"k{n}", REFUSED) for n in range(10)]
        assert not any(promise.done() for promise in promises)
        store.gate.set()
        assert {type(promise.exception(timeout=PATIENCE_S)) for promise in promises} == {InvalidRequest}


def test_looking_is_admitted_by_its_public_cost(store: LaterMemoryStore) -> None:
    """A batch is one lookup; it is Busy without room, and refused where there can never be room."""
    room = MemoryBound(10 * ANSWER_BYTES)
    with replica_on(store, admission=Admission(memory=room)) as replica:
        who = analyst(replica)
        query = parse_query(orjson.dumps(DOCUMENT | REFUSED))
        first, second = replica.analysts.submit_all(who, "survey", [("a", query), ("b", query)])
        assert first.unit is second.unit
        assert first.unit is not None
        assert room.kept_bytes == 4 * ANSWER_BYTES
        assert isinstance(submitted(replica, who, "c", REFUSED).exception(timeout=PATIENCE_S), Busy)
        assert first.unit.ticket is not None
        first.unit.ticket.release()
        assert isinstance(submitted(replica, who, "c", REFUSED).exception(timeout=PATIENCE_S), InvalidRequest)
        store.transactions.clear()
        many = replica.analysts.submit_all(who, "survey", [(f"k{n}", query) for n in range(5)])
        assert {type(promise.exception(timeout=PATIENCE_S)) for promise in many} == {InvalidRequest}
        assert store.transactions == []


def test_a_lookup_begins_in_its_slots_and_can_be_cancelled(store: LaterMemoryStore) -> None:
    """Its response leaves at the end of the slots, as a query's does."""
    who, first = answered_before(store)
    scheduler = Scheduler(slot_rules(100_000_000, Speed()), deadline_ns=10**10)
    with replica_on(store, admission=Admission(scheduler=scheduler)) as replica:
        store.transactions.clear()
        gone = submitted(replica, who, "k", OF_AGE)
        assert gone.unit is not None
        gone.unit.cancel()
        again, refused = (submitted(replica, who, key, OF_AGE) for key in ("k", "l"))
        assert store.transactions == []
        assert again.result(timeout=PATIENCE_S).body == first.body
        assert isinstance(refused.exception(timeout=PATIENCE_S), InvalidRequest)
        assert gone.cancelled()
        assert len(store.transactions) == 2
        for promise in (again, refused):
            assert promise.unit is not None
            assert promise.unit.ticket is not None
            assert promise.unit.ticket.leaves_ns is not None


def test_a_batch_replays_where_it_is_refused_and_answers_the_rest(store: LaterMemoryStore) -> None:
    """Each query's result is at its place."""
    with replica_on(store) as replica:
        who = analyst(replica)
        first = ask(replica, who, "k", **OF_AGE)
        later = narrowed(replica.registry.record("survey"))
        assert later is not None
        replica.registry.writer(later).committer.state.record = later
        fresh, stored = (parse_query(orjson.dumps(DOCUMENT | query)) for query in ({"reuse": False}, OF_AGE))
        entries = [("a", fresh), ("k", stored), ("b", fresh), ("l", stored)]
        one, again, two, refused = replica.analysts.submit_all(who, "survey", entries)
        assert [one.result(timeout=PATIENCE_S).sequence, two.result(timeout=PATIENCE_S).sequence] == [2, 3]
        assert again.result(timeout=PATIENCE_S).body == first.body
        assert isinstance(refused.exception(timeout=PATIENCE_S), InvalidRequest)


def test_while_the_database_is_unavailable_a_key_is_not_refused(store: LaterMemoryStore) -> None:
    """While the database is unavailable the key may have an answer, so the refusal is Unavailable, which is retried."""
    who, first = answered_before(store)
    with replica_on(store) as replica:
        store.is_away = True
        assert isinstance(submitted(replica, who, "k", OF_AGE).exception(timeout=PATIENCE_S), Unavailable)
        store.is_away = False
        assert ask(replica, who, "k", **OF_AGE).body == first.body
    assert isinstance(submitted(replica, who, "k", OF_AGE).exception(timeout=PATIENCE_S), Unavailable)  # it is closed


def test_a_withheld_answer_leaves_only_when_it_is_witnessed(store: LaterMemoryStore) -> None:
    """A stored answer is confirmed recorded before it leaves; a closed dataset gives none."""
    witness = MoodyWitness()
    with replica_on(store, witness) as replica:
        who = analyst(replica)
        earlier = dict(store.kept)
        ask(replica, who, "first")
        witness.is_away = True
        with pytest.raises(Unavailable):
            ask(replica, who, "k", **OF_AGE)
    store.is_later = True
    with replica_on(store, witness) as replica:
        assert isinstance(submitted(replica, who, "k", OF_AGE).exception(timeout=PATIENCE_S), Unavailable)
        witness.is_away = False
        assert ask(replica, who, "k", **OF_AGE).sequence == 2
        store.kept = earlier
        assert isinstance(submitted(replica, who, "k", OF_AGE).exception(timeout=PATIENCE_S), Fenced)


def test_a_query_that_costs_too_much_today_replays(store: LaterMemoryStore) -> None:
    """Its public cost can never be admitted today; its key has the answer."""
    wide: dict[str, Any] = {"select": [{"histogram": {"column": "item"}}], "from": "visits", "noise": {"sigma": 9.0}}
    wide |= {"per_individual": {"l2_clip": 4096}}
    with replica_on(store) as replica:
        who = analyst(replica)
        first = ask(replica, who, "k", **wide)
    with replica_on(store, admission=Admission(memory=MemoryBound(9 * ANSWER_BYTES))) as replica:
        assert ask(replica, who, "k", **wide).body == first.body
        with pytest.raises(InvalidRequest, match="public cost"):
            ask(replica, who, "l", **wide, reuse=False)


def test_an_error_during_a_lookup_reaches_the_waiting_caller(
    store: LaterMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an incident, and the next lookup works."""
    who, first = answered_before(store)
    with replica_on(store) as replica:

        def broken(*_: object) -> int:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(replaying, "stored_answer", broken)
            assert isinstance(submitted(replica, who, "k", OF_AGE).exception(timeout=PATIENCE_S), ZeroDivisionError)
        assert submitted(replica, who, "k", OF_AGE).result(timeout=PATIENCE_S).body == first.body
