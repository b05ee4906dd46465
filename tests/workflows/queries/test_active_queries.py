"""Coverage as a query, through the service: charged each time, answered anew each time, and verified as any other."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.model.errors import InvalidRequest, KeyConflict
from service.ledger.model.rows import AnswerRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import CommitRejected
from service.maintenance.rebuild_answer import rebuild
from service.query.asking import released_words
from service.query.canonical import request_hash
from service.query.parse import parse_query
from service.workflows.registration_changes import Archiving
from service.workflows.replica import Replica
from tests.factories import (
    REJECTED_SIGMA,
    TWO_PEOPLE,
    RejectingStore,
    SeededEntropy,
    analyst,
    ask,
    individual_named,
    open_replica,
    register,
    upload,
)
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import counts_of, findings, surveyed

ACTIVE: dict[str, Any] = {"select": [{"active": {"share": 0.5}}], "noise": {"sigma": 3.0}}
ONE = -(-(2**40) // 18)  # units that one count at sigma 3 costs
BUDGET = 2**39  # of the dataset: rho 0.5, of which a count takes a ninth


def told(replica: Replica, who: Principal, key: str, **more: Any) -> dict[str, Any]:
    """The answer to the query, as JSON."""
    shown: dict[str, Any] = orjson.loads(ask(replica, who, key, **ACTIVE | more).body)
    return shown


def test_every_query_is_answered_anew_and_charged(store: MemoryStore, replica: Replica, ana: Principal) -> None:
    """Under keys of their own, by the same analyst and another, until half of the budget is left to nobody."""
    bea = analyst(replica, "bea")
    answers = [told(replica, who, f"key {n}") for n, who in enumerate([ana, ana, bea, bea, ana, ana])]
    assert [answer["sequence"] for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert not any(answer["reused"] for answer in answers)
    assert counts_of(replica) == [(3, 0)] * 5 + [(0, 0)]
    (budget,) = replica.individuals.budgets(individual_named(replica, "ann"))
    assert (budget.queries_charged, budget.queries_left_out) == (5, 0)
    assert findings(store) == []


def test_the_same_query_twice_in_one_batch_is_two_queries(replica: Replica, ana: Principal) -> None:
    """The second is of the accounts as the first has left them."""
    document = orjson.dumps({"version": 1} | ACTIVE | {"select": [{"active": {"share": 0.9}}]})
    pending = replica.analysts.submit_all(ana, "survey", [(key, parse_query(document)) for key in "abc"])
    shown = [orjson.loads(each.result(timeout=PATIENCE_S).body) for each in pending]
    assert [answer["reused"] for answer in shown] == [False] * 3
    assert [charged for charged, _ in counts_of(replica)] == [3, 0, 0]


def test_its_key_replays_at_no_charge_with_and_without_the_default(replica: Replica, ana: Principal) -> None:
    """`reuse` left out and false are one request; no other request is under that key."""
    first = ask(replica, ana, "k", **ACTIVE)
    for more in ({}, {"reuse": False}):
        assert ask(replica, ana, "k", **ACTIVE | more).body == first.body
    with pytest.raises(KeyConflict):
        ask(replica, ana, "k", **ACTIVE | {"noise": {"sigma": 4.0}})
    assert replica.overview.sequence("survey") == 1


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"reuse": True}, "reuse"),
        ({"select": [*ACTIVE["select"], {"count": {}}]}, "select"),
        ({"from": "visits"}, "from"),
        ({"select": [{"active": {"share": 0.01}}]}, "select[0].active.share"),
    ],
)
def test_a_refusal_does_not_depend_on_the_exhausted(
    replica: Replica, ana: Principal, more: dict[str, Any], field: str
) -> None:
    """And charges nothing."""

    def refused(key: str) -> str:
        with pytest.raises(InvalidRequest) as refusal:
            ask(replica, ana, key, **ACTIVE | more)
        return str(refusal.value.errors)

    before = refused("early")
    for number in range(10):
        ask(replica, ana, f"{number}", reuse=False)
    assert counts_of(replica)[-1] == (0, 3)
    assert refused("late") == before
    assert f"field='{field}'" in before
    assert replica.overview.sequence("survey") == 10


def test_an_answer_is_found_under_its_key_when_the_query_is_refused_today(
    store: MemoryStore, replica: Replica, ana: Principal
) -> None:
    """The dataset is archived: a request without `reuse` is the one that was answered."""
    first = ask(replica, ana, "k", **ACTIVE)
    replica.curators.archive("survey", Archiving(rows="keep"))
    assert ask(replica, ana, "k", **ACTIVE).body == first.body
    assert findings(store) == []


@pytest.mark.parametrize("more", [{}, {"group_by": ["country"], "where": {"ge": [{"col": "age"}, 40]}}])
def test_a_deleted_answer_is_made_again_without_saying_how_it_was_asked(
    store: MemoryStore, replica: Replica, ana: Principal, more: dict[str, Any]
) -> None:
    """The row is the deleted one, whatever `--reuse` says: an answer to it was never reused."""
    ask(replica, ana, "before", noise={"sigma": 40.0})
    answered = ask(replica, ana, "k", **ACTIVE | more)
    for reuse in (True, False):
        (kept,) = store.kept.values()
        row = kept.answers.pop((ana.id, "k"))
        assert findings(store) == ["ledger row 2: the answer to it is missing from answers"]
        assert rebuild(store, "survey", seq=2, key="k", reuse=reuse) == row
    assert ask(replica, ana, "k", **ACTIVE | more).body == answered.body
    assert findings(store) == []


def reusing(row: AnswerRecord, canonical: bytes) -> AnswerRecord:
    """The answer as if it had been asked for with `reuse`."""
    return replace(row, request_hash=request_hash(canonical, reuse=True))


def as_reused(row: AnswerRecord, canonical: bytes) -> AnswerRecord:
    """Another analyst's answer, as if this one had been reused."""
    said = orjson.loads(row.body)
    notes = [*said["notes"], released_words(datetime.fromisoformat(said["released_at"]))]
    body = orjson.dumps(said | {"reused": True, "notes": notes})
    return replace(reusing(row, canonical), key="other", body=body)


@pytest.mark.parametrize("planted", [reusing, as_reused])
def test_verification_finds_an_answer_that_was_reused(
    store: MemoryStore, replica: Replica, ana: Principal, planted: Callable[[AnswerRecord, bytes], AnswerRecord]
) -> None:
    """No request can have asked for it; of a count it may be."""
    for number, query in enumerate([{"noise": {"sigma": 40.0}}, ACTIVE]):
        ask(replica, ana, f"{number}", **query)
    (kept,) = store.kept.values()
    for number in range(2):
        entry = kept.entries[number]
        row = planted(kept.answers[ana.id, f"{number}"], entry.canonical)
        kept.answers[ana.id, row.key] = row
        expected = f"answers row {row.key!r} of {ana.id}: its request_hash is not of the query of ledger row 2"
        assert findings(store) == ([] if number == 0 else [expected])


def test_an_individual_reads_what_it_was_asked_for(replica: Replica, ana: Principal) -> None:
    """Its receipts say the query in words, its charge, and nothing of what others have left."""
    ann = individual_named(replica, "ann")
    ask(replica, ana, "women", where={"eq": [{"col": "country"}, "NO"]}, noise={"sigma": 1.0 + 2**-20})
    ask(replica, ana, "active", **ACTIVE)
    newest, _ = replica.individuals.receipts(ann, cursor=None, limit=9).items
    assert newest.words == "count of people with at least 50 % of the budget left, σ 3"
    assert (newest.outcome, newest.charged_rho) == ("untouched", "0")
    assert counts_of(replica)[-1] == (1, 0)
    bob = replica.individuals.receipts(individual_named(replica, "bob"), cursor=None, limit=9).items[0]
    assert bob.outcome == "charged"


def test_groups_show_their_own_exhaustion(replica: Replica, ana: Principal) -> None:
    """Norway was asked about more often than Sweden; the numbers are those of the accounts, but for the noise."""
    register(replica, "wide", rho="20", capacity=1000)
    upload(replica, "people", [(f"{n}", "NO" if n < 300 else "SE", n % 90, 0) for n in range(500)], "wide")
    for number in range(3):
        where = {"and": [{"eq": [{"col": "country"}, "NO"]}, {"lt": [{"col": "age"}, 60]}]}
        ask(replica, ana, f"{number}", "wide", where=where, noise={"share": 0.25}, reuse=False)
    asked: dict[str, Any] = {"select": [{"active": {"share": 0.3}}], "noise": {"sigma": 0.5}, "group_by": ["country"]}
    norway, sweden = orjson.loads(ask(replica, ana, "k", "wide", **asked).body)["values"]
    assert abs(norway - sum(n % 90 >= 60 for n in range(300))) <= 4
    assert abs(sweden - 200) <= 4


def test_a_query_whose_commit_was_rejected_is_answered_by_the_accounts_before_it() -> None:
    """Its charges are taken back, so that the next one counts who has them again."""
    store = RejectingStore()
    with surveyed(store, TWO_PEOPLE) as replica:
        who = analyst(replica)
        query: dict[str, Any] = {"select": [{"active": {"share": 0.999}}]}
        with pytest.raises(CommitRejected):
            ask(replica, who, "rejected", **query, noise={"sigma": REJECTED_SIGMA})
        ask(replica, who, "k", **query, noise={"sigma": 40.0})
        assert counts_of(replica)[-1] == (2, 0)


def test_another_replica_counts_by_what_the_first_has_charged(store: MemoryStore, replica: Replica) -> None:
    """The accounts are those of the ledger, not of one process."""
    ana = analyst(replica)
    for number in range(4):
        ask(replica, ana, f"{number}", where={"eq": [{"col": "country"}, "NO"]}, reuse=False)
    with open_replica(store, SeededEntropy(6)) as other:
        ask(other, ana, "there", **ACTIVE)
        assert counts_of(other)[-1] == (3, 0)
        ask(other, ana, "again", **ACTIVE)
        assert counts_of(other)[-1] == (1, 0)


@settings(max_examples=20, deadline=None)
@given(
    spent=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    share=st.sampled_from([1 / 9 + 1e-9, 0.25, 0.5, 0.9, 1]),
    paused=st.integers(0, 7),
)
def test_a_forecast_is_what_happens(spent: list[int], share: float, paused: int) -> None:
    """After k more such queries as many are counted as the forecast's curve says."""
    query: dict[str, Any] = {"select": [{"active": {"share": share}}], "noise": {"sigma": 3.0}}
    with surveyed(people=[(f"p{n}", "NO", 20 + n, 0) for n in range(len(spent))]) as replica:
        who = analyst(replica)
        for person, times in enumerate(spent):
            for number in range(times):
                where = {"eq": [{"col": "age"}, 20 + person]}
                ask(replica, who, f"{person}.{number}", where=where, reuse=False)
        if paused < len(spent):
            replica.individuals.lower_limit(individual_named(replica, f"p{paused}"), "survey", pause=True)
        has_enough = sum(BUDGET - times * ONE >= share * BUDGET for times in spent)
        forecast = replica.overview.forecast("survey", parse_query(orjson.dumps({"version": 1} | query)))
        assert forecast.touched == has_enough
        shares = {point.queries: point.share for point in forecast.curve}
        for number in range(10):
            ask(replica, who, f"k {number}", **query)
            counted, _ = counts_of(replica)[-1]
            assert counted == round(shares.get(number, 0) * has_enough), number
