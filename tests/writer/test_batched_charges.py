"""Queries of one batch: each gets its own answer, and they are charged as if asked one after the other."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from service.ledger.model.errors import AllowanceExceeded
from service.ledger.model.views import Principal
from service.query.parse import parse_query
from service.writer.submission import PendingAnswer
from tests.factories import TWO_PEOPLE, PassiveReplica, SeededEntropy, analyst
from tests.memory.store import MemoryStore
from tests.workflows.surveys import fill


@pytest.fixture
def replica() -> PassiveReplica:
    """A replica with a dataset of two individuals."""
    store = MemoryStore()
    fill(store, TWO_PEOPLE)
    return PassiveReplica(store, SeededEntropy())


def together(replica: PassiveReplica, who: Principal, *queries: dict[str, Any]) -> list[PendingAnswer]:
    """Answer all queries in one step of the writer."""
    documents = [{"version": 1, "select": [{"count": {}}], "noise": {"sigma": 3.0}} | query for query in queries]
    asked = [
        replica.analysts.submit(who, "survey", f"k{n}", parse_query(orjson.dumps(d))) for n, d in enumerate(documents)
    ]
    replica.writer.step()
    return asked


def test_only_the_same_query_is_answered_from_the_batch(replica: PassiveReplica) -> None:
    """The third query repeats the first: it reuses the first's answer and not the second's."""
    asked = together(replica, analyst(replica), {}, {"noise": {"sigma": 4.0}}, {})
    shown = [orjson.loads(future.result(timeout=0).body) for future in asked]
    assert [(each["sequence"], each["sigma"], each["reused"]) for each in shown] == [
        (1, 3.0, False),
        (2, 4.0, False),
        (1, 3.0, True),
    ]


def test_an_allowance_is_spent_by_every_query_of_the_batch(replica: PassiveReplica) -> None:
    """At sigma 3 a count costs 1/18: 0.12 pays for two of three in one batch."""
    who = analyst(replica, allowance_rho=Decimal("0.12"))
    asked = together(replica, who, *[{"reuse": False}] * 3)
    refusals = [type(future.exception(timeout=0)) for future in asked]
    assert refusals == [type(None), type(None), AllowanceExceeded]
