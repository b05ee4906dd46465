"""Answers of more than 10,000 numbers are stored without them, and read as they were sent, in every store."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.maintenance.verify.report import verify_all
from service.query.layout import LABELS_MAX
from service.store.postgres.store import PostgresStore
from service.workflows.registration_changes import Archiving
from service.workflows.replica import Replica
from tests.factories import THREE_PEOPLE, VISITS, analyst, ask, open_replica, register, upload, values, witness_of

ITEMS = 12_000
LONG: dict[str, Any] = {
    "from": "visits",
    "select": [{"histogram": {"column": "item"}}],
    "per_individual": {"l2_clip": 3},
}
BY_ITEM: dict[str, Any] = {
    "from": "visits",
    "select": [{"histogram": {"column": "item"}}, {"count": {}}],
    "per_individual": {"l2_clip": [3, 2]},
    "noise": {"sigma": [2.5, 9]},
}
KINDS = {"whole numbers": LONG, "fractions": LONG | {"noise": {"sigma": 0.3}}, "several items": BY_ITEM}


@pytest.fixture
def replica(store: Store) -> Iterator[Replica]:
    """A replica with three individuals and their visits to some of many items."""
    visits = VISITS | {"columns": {"item": {"type": "category", "size": ITEMS}}}
    with open_replica(store) as opened:
        register(opened, rho="500", tables={"people": _people(), "visits": visits})
        upload(opened, "people", THREE_PEOPLE)
        upload(opened, "visits", [("ann", 3), ("ann", 11_007), ("eve", 3)])
        yield opened


def _people() -> dict[str, Any]:
    number = {"type": "real", "lower": 0, "upper": 500}
    columns = {"country": {"type": "category", "categories": ["NO", "SE"]}, "age": number, "spend": number}
    return {"kind": "individuals", "key": "person_id", "columns": columns}


def again(replica: Replica, who: Principal, asked: dict[str, Any]) -> list[StoredAnswer]:
    """The answer by its key under the lock, by its id, and after the query would be refused."""
    by_key = ask(replica, who, "k", **asked)
    by_id = replica.analysts.release(who, by_key.query_id)
    replica.curators.archive("survey", Archiving(rows="keep"))
    return [by_key, by_id, ask(replica, who, "k", **asked)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_answer_reads_the_same_each_time(replica: Replica, store: Store, kind: str) -> None:
    """By its key, by its id, when the dataset is archived; the answer of an analyst that reuses it; and verified."""
    ana, bo = analyst(replica), analyst(replica, "bo")
    first = ask(replica, ana, "k", **KINDS[kind])
    assert len(values(first)) > LABELS_MAX
    reused = ask(replica, bo, "k", **KINDS[kind])
    assert b'"reused":true' in reused.body
    assert values(reused) == values(first)
    assert [each.body for each in again(replica, ana, KINDS[kind])] == [first.body] * 3
    assert replica.analysts.release(bo, first.query_id).body == reused.body
    (report,) = verify_all(store, witness_of(store))
    assert report.findings == []


def test_the_numbers_are_stored_once(replica: Replica, store: Store, request: pytest.FixtureRequest) -> None:
    """On Postgres the row of a long answer is short."""
    ana = analyst(replica)
    first = ask(replica, ana, "k", **LONG)
    if not isinstance(store, PostgresStore):
        return
    with psycopg.connect(request.getfixturevalue("database_url"), autocommit=True) as owner:
        ((length,),) = owner.execute("SELECT length(body) FROM answers").fetchall()
        assert length < 1500
    assert [each.body for each in again(replica, ana, LONG)] == [first.body] * 3
    (report,) = verify_all(store, witness_of(store))
    assert report.findings == []
