"""Vectors from an upload to an answer: gradients of what is stored now, after corrections, erasures and a restart."""

from io import BytesIO
from typing import Any

import numpy as np
import orjson
import pytest

from service.ledger.model.errors import InvalidRequest
from service.workflows.replica import Replica
from tests.factories import analyst, ask, open_replica, register, values
from tests.memory.store import MemoryStore

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "pixels": {"type": "vector", "length": 3, "lower": 0, "upper": 255, "step_log2": -8},
            "member": {"type": "boolean"},
        },
    }
}
PEOPLE = {"ann": [0, 128, 255], "bob": [64, 64, 64], "eve": None}


def filled(replica: Replica) -> None:
    """Three people, all of them members; one has no vector."""
    register(replica, rho="100000", capacity=10, tables=TABLES)
    rows = b"\n".join(orjson.dumps({"person_id": key, "pixels": each, "member": True}) for key, each in PEOPLE.items())
    replica.curators.append_rows("survey", "people", "application/x-ndjson", BytesIO(rows))


def gradient_of(replica: Replica, key: str) -> list[float]:
    """The gradient at parameters of zero: of a member, half of its vector below zero."""
    model = {"loss": "logistic", "target": {"col": "member"}, "features": [{"vector": "pixels"}]}
    item = {"gradient": model | {"parameters": [0, 0, 0]}}
    who = analyst(replica, name=key)
    return values(ask(replica, who, key, select=[item], noise={"sigma": 0.01}, reuse=False))


def half(*vectors: list[int]) -> Any:
    """The gradient without noise, within five deviations of it."""
    return pytest.approx(-np.sum(vectors, axis=0) / 512, abs=0.05)


def test_a_gradient_is_of_the_vectors_that_are_stored() -> None:
    """At any time: after a correction, after an erasure, and read anew by another process."""
    store = MemoryStore()
    with open_replica(store) as replica:
        filled(replica)
        assert gradient_of(replica, "first") == half([0, 128, 255], [64, 64, 64])
        replica.curators.correct("survey", "bob", {"pixels": (0.0, 0.0, 200.0)})
        assert gradient_of(replica, "corrected") == half([0, 128, 255], [0, 0, 200])
        replica.curators.correct("survey", "eve", {"pixels": (9.0, 9.0, 9.0)})
        assert gradient_of(replica, "completed") == half([0, 128, 255], [0, 0, 200], [9, 9, 9])
        replica.curators.erase_individual("survey", "ann")
        assert gradient_of(replica, "erased") == half([0, 0, 200], [9, 9, 9])
    with open_replica(store) as replica:
        assert gradient_of(replica, "read anew") == half([0, 0, 200], [9, 9, 9])


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"select": [{"sum": {"column": "pixels"}}]}, "select[0].sum.column"),
        ({"select": [{"histogram": {"column": "pixels"}}]}, "select[0].histogram.column"),
        ({"group_by": ["pixels"]}, "group_by[0]"),
        ({"where": {"is_null": {"col": "pixels"}}}, "where.is_null.col"),
        ({"where": {"eq": [{"col": "pixels"}, 3]}}, "where.eq[0].col"),
        ({"select": [{"moments": {"features": [{"of": {"col": "pixels"}}]}}]}, "select[0].moments.features[0].of.col"),
        ({"select": [{"moments": {"features": [{"vector": "member"}]}}]}, "select[0].moments.features[0].vector"),
    ],
)
def test_a_vector_elsewhere_is_refused_by_its_field(query: dict[str, Any], field: str) -> None:
    """And nothing is charged."""
    with open_replica() as replica:
        filled(replica)
        with pytest.raises(InvalidRequest) as refused:
            ask(replica, analyst(replica), "k", **query)
        assert [error.field for error in refused.value.errors] == [field]
        assert replica.curators.account("survey", "ann").spent_rho == "0"
