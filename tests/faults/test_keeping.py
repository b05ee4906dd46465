"""Kill -9 around the commit of a query that brings parameters: they are kept with its answer, or not at all."""

import io
import json
from contextlib import closing

import numpy as np
import orjson
import pytest

from service.maintenance.verify.report import verify_all
from service.store.postgres.store import PostgresStore
from tests.faults.killing import COMMIT_SENT, Servers
from tests.faults.replicas import Answer, exchange
from tests.faults.scenario import LEDGER_KEY, Stage, staged

THETA = np.linspace(-1, 1, 28)
STEP = {
    "version": 1,
    "select": [
        {
            "gradient": {
                "loss": "softmax",
                "target": "country",
                "features": [
                    {"one_hot": {"bin": {"column": "age", "edges": list(range(0, 121, 10))}}},
                    {"vector": "image"},
                ],
                "parameters": "@theta",
            }
        }
    ],
    "noise": {"sigma": 8},
    "rule": "clip",
}


def step(stage: Stage, url: str, key: str) -> Answer:
    """Ask for the step, with its numbers."""
    body = io.BytesIO()
    np.savez(body, query=json.dumps(STEP), theta=THETA.reshape(2, -1))
    more = f"Idempotency-Key: {key}\r\nContent-Type: application/x-npz\r\n"
    path = f"/v1/datasets/{stage.dataset}/queries"
    return exchange(url, "POST", path, stage.analyst_key, body.getvalue(), more)


def kept(stage: Stage) -> int:
    """How many numbers are kept of this dataset."""
    statement = (
        "SELECT coalesce(sum(length(numbers) / 8), 0) FROM parameters JOIN datasets ON id = dataset_id WHERE name = %s"
    )
    return int(stage.connection.execute(statement, [stage.dataset]).fetchall()[0][0])


@pytest.mark.parametrize("place", ["rows-inserted", "before-commit", COMMIT_SENT, "acknowledged", "witnessed"])
def test_parameters_are_durable_exactly_with_their_answer(servers: Servers, place: str) -> None:
    """The next process gives the same bytes or executes once, and a verification plans the entry again."""
    with staged(servers.database_url, questions=4) as stage:
        with servers.replica(place) as replica:
            seen = step(stage, replica.url, "k")
            assert seen.status is None
            assert replica.is_dead(30)
        stored = stage.stored("k")
        assert kept(stage) == (0 if stored is None else THETA.size)
        with servers.replica() as replica:
            again = step(stage, replica.url, "k")
            assert (again.status, again.complete) == (200, True)
            assert stored is None or again.body == stored.body
            assert orjson.loads(again.body)["sequence"] == 1
        assert kept(stage) == THETA.size
        assert len(stage.replies()) == 1
        with closing(PostgresStore(stage.database_url, LEDGER_KEY)) as store:
            reports = [report for report in verify_all(store) if report.dataset == stage.dataset]
        assert [(each.findings, each.answers) for each in reports] == [([], 1)]
