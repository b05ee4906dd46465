"""Parameters have a price by storage: an analyst has so many bytes of them in each dataset, those to come included."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

from service.ledger.model.errors import Busy, TooManyParametersKept
from service.ledger.model.parameters import LEAST_BYTES
from service.query.language import Query
from service.query.parameters_ast import HashedParameters
from service.query.parse import query_of
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.admission.admission import Admission
from service.writer.submission import QueryRequest
from tests.factories import analyst, ask, open_replica
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S
from tests.workflows.surveys import surveyed

SPEND = {"of": {"mul": [{"col": "spend"}, 0.002]}}


def step(number: int, sigma: float = 9000.0) -> Query:
    """A gradient at parameters of its own, at nearly no charge."""
    parameters = HashedParameters.of(np.array([[number, -0.25], [-0.5, 0.125]]))
    model = {"loss": "softmax", "target": "country", "features": [SPEND], "intercept": True, "parameters": parameters}
    return query_of({"version": 1, "select": [{"gradient": model}], "noise": {"sigma": sigma}})


ROOM: Final = ReplicaOptions(parameters_bytes_max=3 * LEAST_BYTES)


@pytest.fixture
def replica(store: MemoryStore) -> Iterator[Replica]:
    """Room for the parameters of three queries."""
    with surveyed(store, options=ROOM) as opened:
        yield opened


def answered(replica: Replica, who: Any, key: str, query: Query) -> bytes:
    """The answer to a query."""
    return replica.analysts.submit(who, "survey", key, query).result(timeout=PATIENCE_S).body


def test_new_parameters_beyond_the_bound_are_refused_and_nothing_is_charged(
    replica: Replica, store: MemoryStore
) -> None:
    """The limit is named; stored parameters, other queries and other analysts are taken; a start forgets nothing."""
    who, other = analyst(replica), replica.principals.create(role="analyst", name="bo")[0]
    first = answered(replica, who, "0", step(0))
    for number in (1, 2):
        answered(replica, who, str(number), step(number))
    head, (allowance,) = store.head(1), replica.analysts.allowances(who)
    with pytest.raises(TooManyParametersKept, match=f"At most {3 * LEAST_BYTES} bytes .*SPARING_PARAMETERS_BYTES_MAX"):
        answered(replica, who, "3", step(3))
    (refused,) = replica.analysts.submit_all(who, "survey", [("4", step(4))])
    assert isinstance(refused.exception(timeout=PATIENCE_S), TooManyParametersKept)
    assert (store.head(1), replica.analysts.allowances(who)) == (head, [allowance])
    assert answered(replica, who, "0", step(0)) == first
    answered(replica, who, "again", step(1, sigma=8000.0))
    ask(replica, who, "small")
    answered(replica, other, "3", step(3))
    with open_replica(store, options=ROOM) as later, pytest.raises(TooManyParametersKept):
        answered(later, who, "5", step(5))


def test_queries_under_way_count_until_they_have_ended(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of four at once is refused; a query that ends without an answer gives its bytes back."""
    who, record, storage = analyst(replica), replica.registry.record("survey"), replica.parameter_storage
    submitter = replica.analysts._submitter
    under_way: list[QueryRequest] = [submitter._request(who, record, str(n), step(n)) for n in range(3)]
    with pytest.raises(TooManyParametersKept):
        submitter._request(who, record, "3", step(3))
    under_way[0].cancel()
    under_way.append(submitter._request(who, record, "3", step(3)))

    def full(self: Admission, *_: object) -> None:
        raise Busy

    for each in under_way:
        each.cancel()
    with monkeypatch.context() as patched:
        patched.setattr(Admission, "admit", full)
        with pytest.raises(Busy):
            replica.analysts.submit(who, "survey", "busy", step(9))
    assert storage._under_way == {}
    answered(replica, who, "after", step(10))
