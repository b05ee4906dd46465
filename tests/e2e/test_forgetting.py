"""After an erasure nothing of the individual's values is left in the database: not in any row, nor in its files."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.pieces import WHOLE
from service.maintenance.verify.report import verify_all
from service.store.postgres.store import PostgresStore
from tests.e2e.forgetting import Connection, Needles, found, found_in_files, of_integer, of_real, of_text, sealed_slices
from tests.e2e.homes import made_known
from tests.e2e.http_calls import CSV, analyst_of, asked, client
from tests.e2e.processes import new_key, served
from tests.waiting import until

PEPPER = "5e" * 32
LEDGER_KEY = Pepper(bytes.fromhex(PEPPER)).ledger_key()
KEY, CODE, WEIGHT, PAID = "unmistakable-key-7f3a", 87_654_321, 123.45678, 76_543_219
PEOPLE, SLOT = 2000, 1234
DATASET = {
    "name": "survey",
    "guarantee": {"rho": "2"},
    "capacity": 4000,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {
                "country": {"type": "category", "categories": ["NO", "SE"]},
                "code": {"type": "integer", "lower": 0, "upper": 1_000_000_000},
                "weight": {"type": "real", "lower": 0, "upper": 500},
            },
        },
        "visits": {
            "kind": "events",
            "key": "person_id",
            "columns": {"paid": {"type": "integer", "lower": 0, "upper": 1_000_000_000}},
        },
    },
}
NORTH = {"where": {"eq": [{"col": "country"}, "NO"]}}
SUMS: tuple[dict[str, Any], ...] = (
    {"select": [{"sum": {"column": "code"}}], "noise": {"sigma": 4e9}},
    {"select": [{"sum": {"column": "code"}}], "noise": {"sigma": 5e9}, **NORTH},
    {"select": [{"sum": {"column": "weight"}}], "noise": {"sigma": 4000}},
    {"select": [{"sum": {"column": "weight"}}], "noise": {"sigma": 5000}, **NORTH},
    {
        "from": "visits",
        "select": [{"sum": {"column": "paid"}}],
        "noise": {"sigma": 6e9},
        "per_individual": {"l2_clip": 1e9},
    },
)
COUNTS: tuple[dict[str, Any], ...] = (
    {"select": [{"count": {}}], "noise": {"sigma": 90}},
    {"select": [{"count": {}}], "noise": {"sigma": 90}, **NORTH},
)
WEIGHT_AT_REST = "SELECT weight FROM records.d1_people_0 WHERE _slot = %s"
IN_THE_CLEAR = {"key", "code", "weight", "paid"}
STATISTICS = "pg_statistic"


@pytest.fixture
def home(server_directory: Path) -> Path:
    """A home of this test's own."""
    return made_known(server_directory / "home-forgetting")


@pytest.fixture
def settings(database_url: str, redis_url: str) -> dict[str, str]:
    """A database of this test's own, on a server that the tests have started."""
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "SPARING_PEPPER": PEPPER}


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """Past the service, with every right."""
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


@pytest.fixture
def curator_key(home: Path, settings: dict[str, str], connection: Connection) -> str:
    """A dataset that was asked for sums and counts, in a database that knows statistics; the service has ended."""
    with served(home, **settings) as running:
        key = new_key(home, "curator", **settings)
        with client(running.url, key) as curator:
            assert curator.post("/v1/datasets", json=DATASET).status_code == 201
            for table, rows in tables().items():
                path = f"/v1/datasets/survey/tables/{table}/rows"
                curator.post(path, content=rows, headers=CSV).raise_for_status()
            own = {"role": "individual", "name": KEY, "dataset": "survey", "individual": KEY}
            assert curator.post("/v1/principals", json=own).status_code == 201
        with client(running.url, analyst_of(running.url, key)) as analyst:
            for number, question in enumerate((*SUMS, *COUNTS)):
                asked(analyst, f"k-{number}", query={"version": 1, **question}).raise_for_status()
    connection.execute("ANALYZE")  # as autovacuum does from time to time
    return key


def tables() -> dict[str, bytes]:
    """Two thousand people, one in ten in Norway, of whom one is unmistakable; CSV by table."""
    source = random.Random(7)
    people, visits = ["person_id,country,code,weight"], ["person_id,paid"]
    for slot in range(PEOPLE):
        code, weight, paid = source.randrange(10**9), source.uniform(0, 500), source.randrange(10**9)
        key, country = f"p{slot}", "NO" if slot % 10 == SLOT % 10 else "SE"
        if slot == SLOT:
            key, code, weight, paid = KEY, CODE, WEIGHT, PAID
        people.append(f"{key},{country},{code},{weight!r}")
        visits.append(f"{key},{paid}")
    return {"people": "\n".join([*people, ""]).encode(), "visits": "\n".join([*visits, ""]).encode()}


def needles_of(connection: Connection, database_url: str) -> Needles:
    """Everything that is to be forgotten, in each of its forms: values, norms and charges."""
    ((stored,),) = connection.execute(WEIGHT_AT_REST, [SLOT]).fetchall()
    assert stored == pytest.approx(WEIGHT, abs=1e-6)
    needles = {"key": of_text(KEY), "code": of_integer(CODE), "weight": of_real(stored), "paid": of_integer(PAID)}
    with closing(PostgresStore(database_url, LEDGER_KEY)) as store, store.transaction(1, lock=False) as transaction:
        for row in list(transaction.entries(after=0))[: len(SUMS)]:
            told = row.quantities()
            norm, (outcome, units, _) = int(told.amounts[told.touched == SLOT][0]), row.quantities().own(SLOT, row.law)
            assert (outcome, min(norm, units) > 10**6) == ("charged", True)
            needles[f"norm of row {row.seq}"], needles[f"charge of row {row.seq}"] = of_integer(norm), of_integer(units)
    return needles


def findings(database_url: str) -> list[str]:
    """The findings of a verification."""
    with closing(PostgresStore(database_url, LEDGER_KEY)) as store:
        return [finding for report in verify_all(store) for finding in report.findings]


def erase(home: Path, settings: dict[str, str], curator_key: str) -> None:
    """Erase the individual, and wait until the amendments have reached the erasure's sequence."""

    def is_amended(curator: httpx.Client) -> bool:
        acts = {row["act"]: row for row in curator.get("/v1/datasets/survey/acts").json()["items"]}
        return "amend" in acts and acts["amend"]["detail"]["to"] == acts["erase"]["sequence"]

    with served(home, **settings) as running, client(running.url, curator_key) as curator:
        assert curator.delete(f"/v1/datasets/survey/individual?individual={KEY}").status_code == 204
        until(lambda: is_amended(curator))


def test_no_value_norm_or_charge_of_an_erased_individual_is_left(
    home: Path, settings: dict[str, str], connection: Connection, curator_key: str
) -> None:
    """In no row as soon as the amendments are done; with new statistics and a full vacuum nowhere in the files."""
    url = settings["DATABASE_URL"]
    needles, pieces = needles_of(connection, url), sealed_slices(connection)
    found_before, findings_before = found(needles, connection, LEDGER_KEY), findings(url)
    assert found_before.keys() == needles.keys()
    assert found_before["key"] == {"individuals", "principals", STATISTICS}
    assert found_in_files(needles | pieces, connection) == IN_THE_CLEAR | pieces.keys()
    assert {name.partition(" of ")[0] for name in pieces} == {"piece 0", f"piece {WHOLE}"}
    erase(home, settings, curator_key)
    connection.execute("VACUUM")
    left = found(needles, connection, LEDGER_KEY)
    assert set().union(*left.values()) <= {STATISTICS}
    connection.execute("ANALYZE")
    assert found(needles, connection, LEDGER_KEY) == {}
    connection.execute("VACUUM FULL")
    assert found(needles, connection, LEDGER_KEY) == {}
    assert found_in_files(needles | pieces, connection) == set()
    assert findings(url) == findings_before
