"""Without time slots analysts take turns too, and the answers of one commit have a bound on their size."""

import orjson
import pytest

from service.ledger.model.views import Principal
from service.query.language import Query
from service.query.parse import parse_query
from service.workflows.queries.submit import compiled
from service.workflows.replica import Replica
from service.writer.batch import QueryOutcome
from service.writer.submission import PendingAnswer, QueryRequest
from tests.factories import analyst
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import held, writer_of


def query(number: int, *, item: str = "count") -> Query:
    """A query that differs for each number."""
    items = {"count": {"count": {}}, "wide": {"histogram": {"column": "age"}}}
    return parse_query(orjson.dumps({"version": 1, "select": [items[item]], "noise": {"sigma": 30 + number}}))


def sequences(promises: list[PendingAnswer]) -> list[int]:
    """The sequences of the answers; waits for all of them."""
    return [promise.result(timeout=PATIENCE_S).sequence for promise in promises]


def submitted(replica: Replica, who: Principal, count: int, *, first: int = 0) -> list[PendingAnswer]:
    """Submit `count` queries, one by one."""
    return [replica.analysts.submit(who, "survey", f"k{n}", query(n)) for n in range(first, first + count)]


@pytest.mark.parametrize("crowd", [200, 400])
def test_many_queries_of_one_analyst_do_not_delay_another_analyst(
    replica: Replica, monkeypatch: pytest.MonkeyPatch, crowd: int
) -> None:
    """Behind hundreds of queries of one analyst, another analyst's query is in the next commit."""
    monkeypatch.setattr("service.writer.queue.BATCH_MAX", 16)
    many, one = analyst(replica), analyst(replica, "bo")
    with held(writer_of(replica)):
        waiting = submitted(replica, many, crowd)
        last = submitted(replica, one, 1, first=1000)
    assert sequences(last)[0] <= 16
    rest = sequences(waiting)
    assert sorted(rest) == rest
    assert len(set(rest)) == crowd


def test_an_expensive_query_waits_for_as_many_cheap_ones_as_it_costs(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns go by public cost, not by count: a batch of 24 is one turn of 24 queries."""
    monkeypatch.setattr("service.writer.queue.BATCH_MAX", 1)
    dear, cheap = analyst(replica), analyst(replica, "bo")
    with held(writer_of(replica)):
        batches = [
            replica.analysts.submit_all(dear, "survey", [(f"b{n}-{m}", query(100 * n + m)) for m in range(24)])
            for n in range(3)
        ]
        singles = submitted(replica, cheap, 24, first=1000)
    units = [sequences(batch) for batch in batches]
    assert units[0] == list(range(1, 25))
    assert sequences(singles) == list(range(25, 49))
    assert units[1:] == [list(range(49, 73)), list(range(73, 97))]


def test_a_commit_takes_no_more_answers_than_its_bound(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that does not fit waits for the next commit; one larger than the bound is committed alone."""
    who, record = analyst(replica), replica.registry.record("survey")
    cost = replica.admission.cost_of(compiled(query(0, item="wide"), record), record)
    monkeypatch.setattr("service.writer.queue.BATCH_KEPT_BYTES_MAX", 2 * cost.kept_bytes)
    committer, batches = replica.registry.writer(record).committer, list[int]()
    real = committer.answer

    def counted(requests: list[QueryRequest]) -> list[QueryOutcome]:
        batches.append(len(requests))
        return real(requests)

    monkeypatch.setattr(committer, "answer", counted)
    with held(writer_of(replica)):
        promises = [replica.analysts.submit(who, "survey", f"w{n}", query(n, item="wide")) for n in range(5)]
    assert [promise.result(timeout=PATIENCE_S).sequence for promise in promises] == [1, 2, 3, 4, 5]
    assert batches == [2, 2, 1]
