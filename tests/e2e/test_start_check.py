"""A byte is flipped in the database while nothing runs: the next start closes that dataset, and serves the other.

As docs/operations.md tells it.
"""

import time
from pathlib import Path

import httpx
import psycopg
import pytest

from service.embedded import EmbeddedPostgres
from service.settings import Settings
from tests.e2e.http_calls import DATASET, QUERY, client
from tests.e2e.processes import new_key, served, sparing

pytestmark = pytest.mark.slow

PATIENCE_S = 30.0
CSV = {"Content-Type": "text/csv"}
NAMES = ("survey", "other")
CLOSED = (503, "urn:sparing:problem:ledger-damaged")


def begin(url: str, curator_key: str) -> str:
    """Two datasets of two people and an answer each; the key of an analyst of both."""
    with client(url, curator_key) as curator:
        for name in NAMES:
            assert curator.post("/v1/datasets", json=DATASET | {"name": name}).status_code == 201
            rows = curator.post(f"/v1/datasets/{name}/tables/people/rows", content=b"person_id,age\na,4\n", headers=CSV)
            assert rows.status_code == 200
        created = curator.post("/v1/principals", json={"role": "analyst", "name": "ana"})
    key: str = created.json()["key"]
    assert [asked(url, key, name, "k1")[0] for name in NAMES] == [200, 200]
    return key


def asked(url: str, key: str, dataset: str, idempotency_key: str) -> tuple[int, str]:
    """The status of a query, and the type of its problem, if any."""
    with client(url, key) as analyst:
        headers = {"Idempotency-Key": idempotency_key}
        reply = analyst.post(f"/v1/datasets/{dataset}/queries", json=QUERY | {"reuse": False}, headers=headers)
    return reply.status_code, reply.json().get("type", "")


def flip_a_byte(home: Path) -> None:
    """In the first answer of the first dataset, with an owner's rights; doing it twice undoes it."""
    with (
        EmbeddedPostgres(Settings.of({}, home=home).home) as server,
        psycopg.connect(server.url_of("sparing")) as owner,
    ):
        owner.execute("SET session_replication_role = replica")
        changed = owner.execute(
            'UPDATE ledger SET "values" = set_byte("values", 7, get_byte("values", 7) # 1)'
            " WHERE seq = 1 AND dataset_id = (SELECT id FROM datasets WHERE name = 'survey')"
        )
        assert changed.rowcount == 1


def await_closing(url: str, key: str) -> None:
    """Until its check has ended a dataset is served."""
    end, number = time.monotonic() + PATIENCE_S, 0
    while asked(url, key, "survey", f"meanwhile-{number}") != CLOSED:
        assert time.monotonic() < end, "it was never closed"
        number += 1
        time.sleep(0.05)


def test_a_start_closes_a_damaged_dataset(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Queries, reads and acts are refused; once the row was put right and the service started anew, it is open."""
    with served(home) as first:
        curator_key = new_key(home, "curator")
        key = begin(first.url, curator_key)
    flip_a_byte(home)
    capfd.readouterr()
    with served(home) as damaged:
        await_closing(damaged.url, key)
        assert asked(damaged.url, key, "survey", "k1") == CLOSED
        assert asked(damaged.url, key, "other", "k2")[0] == 200
        with client(damaged.url, curator_key) as curator:
            replies = [
                curator.post("/v1/datasets/survey/epochs"),
                curator.get("/v1/datasets/survey/budgets"),
                curator.delete("/v1/datasets/survey/individual?individual=a"),
                curator.post("/v1/datasets/survey/tables/people/rows", content=b"person_id,age\nb,4\n", headers=CSV),
            ]
        assert {(reply.status_code, reply.json()["type"]) for reply in replies} == {CLOSED}
        ready = {"status": "ready", "closed": {"ledger-damaged": 1}, "datasets": {}, "shards": {}}
        assert httpx.get(f"{damaged.url}/readyz").json() == ready
        assert sparing("ledger", "verify", home=home).returncode == 1
    said = capfd.readouterr().err
    (line,) = [line for line in said.splitlines() if "incident" in line]
    assert "incident start check of dataset 1: ledger row 1: its contents do not give its hash" in line

    flip_a_byte(home)
    with served(home) as mended:
        assert [asked(mended.url, key, name, "k1")[0] for name in NAMES] == [200, 200]
        assert asked(mended.url, key, "survey", "k3")[0] == 200
        assert httpx.get(f"{mended.url}/readyz").status_code == 200
    assert sparing("ledger", "verify", home=home).returncode == 0
