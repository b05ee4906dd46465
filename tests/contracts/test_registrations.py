"""Registrations that are extended, archived and deleted, and records that are corrected: in memory and on Postgres."""

import copy
import io
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from service.ledger.model.errors import DatasetArchived, DatasetNotEmpty, InvalidRequest, NotFound, Unavailable
from service.ledger.ports.store import Store
from service.maintenance.rebuild_answer import rebuild
from service.maintenance.verify.report import Report, verify_dataset
from service.query.parse import parse_query
from service.query.schema import Schema
from service.workflows.registration_changes import Archiving, Extension
from service.workflows.replica import Replica
from tests.factories import (
    PEOPLE,
    THREE_PEOPLE,
    VISITS,
    SeededEntropy,
    analyst,
    ask,
    individual_named,
    open_replica,
    register,
    upload,
    values,
    witness_of,
)
from tests.waiting import PATIENCE_S

BY_COUNTRY: dict[str, Any] = {"group_by": ["country"], "noise": {"sigma": 0.3}, "reuse": False}
TIMES = 5
"""The mean of so many answers, rounded, is the truth: the entropy is seeded."""


@pytest.fixture
def replica(store: Store) -> Iterator[Replica]:
    """A replica with three people and four visits."""
    with open_replica(store) as opened:
        register(opened, rho="1000000")
        upload(opened, "people", THREE_PEOPLE)
        upload(opened, "visits", [("ann", 1), ("ann", 2), ("bob", 3), ("eve", None)])
        yield opened


def extended() -> dict[str, Any]:
    """The tables with a category, two columns and a table more, whose name comes before all others."""
    tables: dict[str, Any] = {"people": copy.deepcopy(PEOPLE), "visits": copy.deepcopy(VISITS)}
    tables["people"]["columns"]["country"]["categories"] = ["NO", "SE", "DK"]
    tables["people"]["columns"]["member"] = {"type": "boolean"}
    tables["visits"]["columns"]["item"]["size"] = 300  # codes take two bytes from now on
    tables["visits"]["columns"]["day"] = {"type": "integer", "lower": 0, "upper": 364}
    tables["aid"] = {"kind": "events", "key": "person_id", "columns": {"kind": {"type": "category", "size": 3}}}
    return tables


def extension(**more: Any) -> Extension:
    """The extension to these tables."""
    return Extension.model_validate({"tables": extended()} | more)


def put(replica: Replica, table: str, text: str) -> None:
    """Rows in CSV."""
    replica.curators.append_rows("survey", table, "text/csv", io.BytesIO(text.encode()))


def shown(replica: Replica, key: str, **query: Any) -> list[float]:
    """The true values of a query, from the mean of its answers."""
    who = analyst(replica)
    answers = [values(ask(replica, who, f"{key}-{time}", **(BY_COUNTRY | query))) for time in range(TIMES)]
    return [round(sum(each) / TIMES) for each in zip(*answers, strict=True)]


def verified(store: Store) -> Report:
    """The verification of the dataset, with its witness."""
    record = store.dataset("survey")
    assert record is not None
    return verify_dataset(store, record, witness_of(store))


def test_what_was_asked_before_an_extension_is_kept_and_what_was_added_can_be_asked(
    store: Store, replica: Replica
) -> None:
    """Records keep their values, NULL included; the answer before keeps its bytes under its key."""
    who = analyst(replica)
    before = ask(replica, who, "before", **BY_COUNTRY)
    changed = replica.curators.extend("survey", extension(capacity=200_000))
    assert (changed.version, changed.epoch, changed.capacity) == (2, 2, 200_000)
    assert shown(replica, "a") == [2, 1, 0]
    assert shown(replica, "b", where={"eq": [{"col": "member"}, True]}) == [0, 0, 0]
    put(replica, "people", "person_id,country,age,spend,member\nada,DK,20,1,true\n")
    put(replica, "visits", "person_id,item,day\nada,299,7\nann,,\n")
    put(replica, "aid", "person_id,kind\nbob,2\n")
    assert shown(replica, "c") == [2, 1, 1]
    assert shown(replica, "d", where={"eq": [{"col": "member"}, True]}) == [0, 0, 1]
    item = {"from": "visits", "group_by": ["item"], "per_individual": {"l2_clip": 10}}
    assert [n for n, count in enumerate(shown(replica, "e", **item)) if count] == [1, 2, 3, 299]
    assert shown(replica, "f", **(item | {"from": "aid", "group_by": ["kind"]})) == [0, 0, 1]
    assert ask(replica, who, "before", **BY_COUNTRY).body == before.body
    report = verified(store)
    assert report.findings == []


def test_an_extension_is_read_by_a_process_that_starts_after_it(store: Store, replica: Replica) -> None:
    """And by one that is open meanwhile; a second extension is the third version."""
    with open_replica(store, SeededEntropy(6)) as other:
        assert shown(other, "a") == [2, 1]
        replica.curators.extend("survey", extension())
        with pytest.raises(Unavailable):  # until it has caught up
            shown(other, "b")
        assert shown(other, "b") == [2, 1, 0]
        again = extended()
        again["people"]["columns"]["country"]["categories"].append("FI")
        replica.curators.extend("survey", Extension(tables=Schema.model_validate(again)))
        replica.registry.opened()[0].catch_up()
        other.registry.opened()[0].catch_up()
        assert shown(other, "c") == [2, 1, 0, 0]
    with open_replica(store, SeededEntropy(7)) as later:
        assert later.curators.dataset("survey").version == 3
        assert shown(later, "d") == [2, 1, 0, 0]
    assert [act.act for act in replica.curators.acts("survey", cursor=None, limit=2).items] == ["extend", "extend"]
    assert verified(store).findings == []


def test_an_answer_from_before_an_extension_is_rebuilt_as_it_was(store: Store, replica: Replica) -> None:
    """Its labels are those of that time."""
    ask(replica, analyst(replica), "kept", **BY_COUNTRY)
    replica.curators.extend("survey", extension())
    assert rebuild(store, "survey", seq=1, key="kept", reuse=False) is None


def test_the_same_extension_again_changes_nothing(replica: Replica) -> None:
    """Neither the version nor the epoch."""
    first = replica.curators.extend("survey", extension())
    assert replica.curators.extend("survey", extension()) == first
    assert replica.curators.extend("survey", Extension()) == first


def test_a_plan_from_before_an_extension_is_not_answered(replica: Replica) -> None:
    """It speaks of other codes; sent again with the same key it is answered."""
    who = analyst(replica)
    ask(replica, who, "first", **BY_COUNTRY)
    writer = replica.registry.opened()[0]
    stale = writer.committer.state.record
    replica.curators.extend("survey", extension())
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}}))
    with pytest.raises(Unavailable):
        replica._submitter.submit(who, stale, "stale", query).result(timeout=PATIENCE_S)
    ask(replica, who, "stale")


def test_rows_that_were_coded_before_an_extension_are_not_stored(store: Store, replica: Replica) -> None:
    """NULL had the code that is a category now."""
    stale = replica.registry.record("survey")
    replica.curators.extend("survey", extension())
    replica.registry.writer(stale).committer.state.record = stale
    with pytest.raises(Unavailable):
        put(replica, "people", "person_id,country,age,spend\nada,,20,1\n")


@pytest.mark.parametrize("rows", ["keep", "delete"])
def test_an_archived_dataset_keeps_its_ledger_and_takes_nothing(store: Store, replica: Replica, rows: str) -> None:
    """Accounts, answers and receipts are there; a key that was answered replays; every other query is refused."""
    who, ann = analyst(replica), individual_named(replica, "ann")
    answer = ask(replica, who, "kept")
    wish = Archiving.model_validate({"rows": rows})
    view = replica.curators.archive("survey", wish)
    assert view.archived
    assert view.rows == ({"people": 3, "visits": 4} if rows == "keep" else {"people": 0, "visits": 0})
    assert ask(replica, who, "kept").body == answer.body
    for refused in ("new", "newer"):
        with pytest.raises(DatasetArchived):
            ask(replica, who, refused)
    with pytest.raises(DatasetArchived):
        put(replica, "visits", "person_id,item\nann,1\n")
    with pytest.raises(DatasetArchived):
        replica.curators.extend("survey", extension())
    with pytest.raises(DatasetArchived):
        replica.curators.correct("survey", "ann", {"age": 3})
    assert float(replica.individuals.budgets(ann)[0].spent_rho) > 0
    assert len(replica.individuals.receipts(ann, cursor=None, limit=10).items) == 1
    assert replica.curators.archive("survey", wish).sequence == 1
    with open_replica(store) as later, pytest.raises(DatasetArchived):
        ask(later, who, "later")
    assert verified(store).findings == []


def test_a_query_that_waits_while_its_dataset_is_archived_is_refused(replica: Replica) -> None:
    """It was compiled before."""
    who = analyst(replica)
    stale = replica.registry.record("survey")
    replica.curators.archive("survey", Archiving(rows="keep"))
    query = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}}))
    with pytest.raises(DatasetArchived):
        replica._submitter.submit(who, stale, "late", query).result(timeout=PATIENCE_S)


def test_only_a_dataset_that_never_answered_is_deleted(store: Store, replica: Replica) -> None:
    """With its rows, its keys and its name, under which the same registration begins anew, and is verified."""
    who = analyst(replica, dataset="survey")
    replica.curators.delete("survey")
    assert store.datasets() == []
    assert replica.principals.listed(cursor=None, limit=10).items == ()
    with pytest.raises(NotFound):
        ask(replica, who, "gone")
    register(replica, rho="1000000")
    upload(replica, "people", THREE_PEOPLE)
    assert shown(replica, "a") == [2, 1]
    assert verified(store).findings == []
    with pytest.raises(DatasetNotEmpty):
        replica.curators.delete("survey")
    assert shown(replica, "b") == [2, 1]


def test_a_corrected_record_keeps_its_events_and_its_account(store: Store, replica: Replica) -> None:
    """Only the named columns change, here and in another process."""
    with open_replica(store, SeededEntropy(6)) as other:
        assert shown(other, "a") == shown(replica, "b") == [2, 1]
        spent = replica.curators.account("survey", "ann").spent_units
        report = replica.curators.correct("survey", "ann", {"country": "SE", "age": 120})
        assert (report.rows, report.individuals) == (1, 0)
        assert replica.curators.account("survey", "ann").spent_units == spent
        own = replica.individuals.record(individual_named(replica, "ann"), "survey")
        assert own.tables["people"].rows == ({"country": "SE", "age": 120, "spend": 10.0},)
        assert own.tables["visits"].count == 2
        assert shown(other, "c") == shown(replica, "d") == [1, 2]
    replica.curators.correct("survey", "ann", {"country": None})
    assert shown(replica, "e") == [1, 1]
    act = replica.curators.acts("survey", cursor=None, limit=1).items[0]
    assert (act.act, act.individual, act.detail) == ("correct", "ann", {"columns": ["country"]})
    assert verified(store).findings == []


def test_a_correction_that_cannot_be_made_names_its_columns(replica: Replica) -> None:
    """And nothing is changed, a category that is not declared included: it would be lost."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "body"),
        ({"weight": 3}, "weight"),
        ({"person_id": "bob"}, "person_id"),
        ({"age": "old"}, "age"),
        ({"age": 3, "spend": "much", "x": 1}, "x"),
        ({"age": 3, "country": "No"}, "country"),
        ({"age": 300, "spend": 1}, "age"),
    ]
    for values_sent, field in wrong:
        with pytest.raises(InvalidRequest) as refused:
            replica.curators.correct("survey", "ann", values_sent)
        assert [error.field for error in refused.value.errors] == [field]
    with pytest.raises(NotFound):
        replica.curators.correct("survey", "nobody", {"age": 3})
    assert shown(replica, "a") == [2, 1]
