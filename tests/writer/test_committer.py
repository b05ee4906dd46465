"""A query rejected by the store is an incident of its own; its neighbours are answered."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import orjson
import psycopg
import pytest

from service.core.charge import CHARGE_UNITS_MAX
from service.ledger.model.views import Principal
from service.ledger.ports.store import CommitRejected, Store
from service.ledger.ports.telemetry import Telemetry
from service.query.parse import parse_query
from service.writer.state import DatasetState
from service.writer.submission import PendingAnswer
from tests.contracts.stores import open_store, spent_by
from tests.factories import REJECTED_SIGMA, PassiveReplica, RejectingStore, SeededEntropy, analyst
from tests.memory.shards import only_shard
from tests.memory.transaction import CHECK_VIOLATION
from tests.workflows.surveys import fill, findings


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each store, with that constraint."""
    if request.param == "memory":
        yield RejectingStore()
        return
    url = request.getfixturevalue("database_url")
    with psycopg.connect(url) as connection:
        connection.execute(f"ALTER TABLE ledger ADD CHECK (sigma <> {REJECTED_SIGMA})".encode())
    with open_store("postgres", url) as opened:
        yield opened


class Counted(Telemetry):
    """Telemetry that counts batches by size, and unclear commits."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.unclear = 0

    def batched(self, requests: int) -> None:
        self.batches.append(requests)

    def commit_unclear(self) -> None:
        self.unclear += 1


@pytest.fixture
def telemetry() -> Counted:
    """The committer's telemetry."""
    return Counted()


@pytest.fixture
def replica(store: Store, telemetry: Counted) -> PassiveReplica:
    """Three people, and a writer that the test steps."""
    fill(store)
    return PassiveReplica(store, SeededEntropy(), telemetry)


def together(replica: PassiveReplica, who: Principal, prefix: str, *sigmas: float) -> list[PendingAnswer]:
    """A count at each sigma, in one step."""
    asked = []
    for sigma in sigmas:
        query: dict[str, Any] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False}
        asked.append(replica.analysts.submit(who, "survey", f"{prefix}-{sigma}", parse_query(orjson.dumps(query))))
    replica.writer.step()
    return asked


def failures(asked: Sequence[PendingAnswer]) -> list[type[BaseException] | None]:
    """The kind of each failure, None for an answer."""
    raised = [future.exception(timeout=0) for future in asked]
    return [None if each is None else type(each) for each in raised]


def check_memory(replica: PassiveReplica, store: Store) -> None:
    """Check that memory stands at the ledger's head and equals the ledger's replay."""
    state = replica.writer._state
    spent = only_shard(state).memory.accounts.spent
    with store.transaction(1, lock=False) as transaction:
        replayed = spent_by(transaction.entries(after=0), spent.size)
        assert state.is_at(transaction.head)
    assert spent.tolist() == replayed.tolist()


def test_neighbours_of_a_rejected_query_are_answered(
    replica: PassiveReplica, store: Store, telemetry: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    """By a locked commit and by an optimistic one: one transaction for all, then one for each; none is unclear."""
    who = analyst(replica)
    for prefix in ("locked", "proposed"):
        telemetry.batches.clear()
        with caplog.at_level(logging.ERROR, "sparing.incidents"):
            asked = together(replica, who, prefix, 12.0, REJECTED_SIGMA, 14.0)
        assert failures(asked) == [None, CommitRejected, None]
        assert telemetry.batches == [3, 1, 1, 1]
        check_memory(replica, store)
    assert telemetry.unclear == 0
    assert store.head(1).seq == 4
    assert findings(store) == []
    told = f"on dataset 1 code={CHECK_VIOLATION} error=service.ledger.ports.store.CommitRejected"
    assert len([line for line in caplog.messages if told in line]) == 4
    assert "violates" not in caplog.text


def test_a_rejected_query_invalidates_nothing(replica: PassiveReplica, store: Store) -> None:
    """However often it is asked, memory is neither wrong nor loaded again, and its key is free for another query."""
    who = analyst(replica)
    assert failures(together(replica, who, "first", 12.0)) == [None]
    memory = only_shard(replica.writer._state).memory
    for n in range(3):
        assert failures(together(replica, who, "same", REJECTED_SIGMA)) == [CommitRejected], n
        check_memory(replica, store)
    assert only_shard(replica.writer._state).memory is memory
    query = parse_query(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":20.0}}')
    another = replica.analysts.submit(who, "survey", f"same-{REJECTED_SIGMA}", query)
    replica.writer.step()
    assert another.result(timeout=0).sequence == 2
    assert findings(store) == []


def test_queries_at_the_largest_worst_case_do_not_stop_the_writer(
    replica: PassiveReplica, store: Store, telemetry: Counted
) -> None:
    """At sigma 1.2e-9 and l2_clip 0.5 a charge exceeds the largest number; the other queries are answered."""
    who, other = analyst(replica), analyst(replica, "eva")
    query: dict[str, Any] = {"select": [{"count": {}}], "noise": {"sigma": 1.2e-9}, "per_individual": {"l2_clip": 0.5}}
    for n in range(3):
        body = orjson.dumps({"version": 1, "reuse": False, **query})
        asked = replica.analysts.submit(who, "survey", f"k{n}", parse_query(body))
        others = together(replica, other, f"other {n}", 12.0)
        assert failures([asked, *others]) == [None, None]
        check_memory(replica, store)
    assert store.worst_cases_of(who.id) == {"survey": CHARGE_UNITS_MAX}
    assert store.head(1).worst_case_units == CHARGE_UNITS_MAX
    assert telemetry.unclear == 0


def test_an_act_that_is_rejected_is_an_incident_too(
    replica: PassiveReplica, caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    """The incident has the error's code; memory is unchanged."""
    who = analyst(replica)
    together(replica, who, "first", 12.0)
    position = replica.writer.position

    def reject(_transaction: object, state: DatasetState) -> None:
        state.after_commit(state.invalidate_all)
        raise CommitRejected(CHECK_VIOLATION)

    with caplog.at_level(logging.ERROR, "sparing.incidents"), suppress(CommitRejected):
        replica.writer.committer.act(reject)
    assert f"an act on dataset 1 code={CHECK_VIOLATION}" in caplog.text
    assert replica.writer.position == position
    assert failures(together(replica, who, "second", 12.0)) == [None]
    check_memory(replica, store)
