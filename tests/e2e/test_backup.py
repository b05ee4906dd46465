"""`sparing backup` beside a running service and `sparing restore`, with embedded servers and with others."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from service.embedded.home import data_directories, find_home
from tests.conftest import PostgresServer
from tests.e2e.homes import Homes, SurveyHome
from tests.e2e.http_calls import DATASET, QUERY, ask, client, register
from tests.e2e.processes import new_key, served, sparing, unexpected
from tests.e2e.surveys import spent_units

pytestmark = pytest.mark.slow

DATABASES = ("backed_up", "put_back")
TABLES: dict[str, Any] = dict(DATASET["tables"])  # type: ignore[call-overload]


def again(url: str, key: str, number: int) -> int:
    """A new query that is not reused; its status."""
    with client(url, key) as analyst:
        headers = {"Idempotency-Key": f"n{number}"}
        return analyst.post("/v1/datasets/survey/queries", json=QUERY | {"reuse": False}, headers=headers).status_code


def said(done: "subprocess.CompletedProcess[str]") -> str:
    """The output of a command that succeeded."""
    assert (done.returncode, unexpected(done.stderr)) == (0, []), done.stderr
    return done.stdout


def refusal(done: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a command that refused."""
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    return done.stderr


def test_a_backup_is_put_back_in_its_own_home(survey_home: SurveyHome, tmp_path: Path) -> None:
    """Taken while queries are answered; the witness tells what is missing, and a burn opens the dataset again."""
    home, key, backup = survey_home.path, survey_home.analyst_key, tmp_path / "backup"
    with served(home) as running:
        first = ask(running.url, key, "a")
        assert first.status_code == 200
        assert "survey: up to sequence 1, with 1 acts\n" in said(sparing("backup", str(backup), home=home))
        assert "is there already" in refusal(sparing("backup", str(backup), home=home))
        assert [again(running.url, key, n) for n in range(2)] == [200, 200]
        with client(running.url, survey_home.curator_key) as curator:
            assert curator.post("/v1/datasets/survey/epochs").status_code == 201
            lost = curator.post("/v1/datasets", json=DATASET | {"name": "town"})
            assert lost.status_code == 201
        truth = spent_units(running.url, survey_home.curator_key)
        assert "stop the service first" in refusal(sparing("restore", str(backup), "--aside", home=home))
    assert {path.name for path in backup.iterdir()} == {"database.dump", "backup.json"}
    assert {oct(path.stat().st_mode & 0o777) for path in [backup, *backup.iterdir()]} == {"0o700", "0o600"}
    secret = (home / "pepper").read_text().strip()
    assert all(secret.encode() not in path.read_bytes() for path in backup.iterdir())

    assert "--aside keeps it under another name" in refusal(sparing("restore", str(backup), home=home))
    told = said(sparing("restore", str(backup), "--aside", home=home))
    assert "survey: witnessed and missing: ledger entries 2 to 3, act 2\n" in told
    assert "closed until `sparing ledger reconcile" in told
    with served(home) as running:
        assert again(running.url, key, 9) == 503
        said(sparing("ledger", "reconcile", "--dataset", "survey", "--yes", home=home))
        assert spent_units(running.url, survey_home.curator_key) == truth
        assert ask(running.url, key, "a").content == first.content
        assert again(running.url, key, 10) == 200
        with client(running.url, survey_home.curator_key) as curator:  # its tables are the service's own again
            visits = {
                "kind": "events",
                "key": "person_id",
                "columns": {"day": {"type": "integer", "lower": 0, "upper": 9}},
            }
            reply = curator.patch("/v1/datasets/survey", json={"tables": {**TABLES, "visits": visits}})
            assert reply.status_code == 200, reply.text
    assert ", 0 findings" in said(sparing("ledger", "verify", home=home))


def test_a_backup_begins_a_home_elsewhere(homes: Homes, survey_home: SurveyHome, tmp_path: Path) -> None:
    """With its pepper; without, with another one, or when the file was changed, nothing is begun."""
    home, backup = survey_home.path, tmp_path / "backup"
    with served(home) as running:
        assert ask(running.url, survey_home.analyst_key, "a").status_code == 200
    said(sparing("backup", str(backup), home=home))
    other = homes.missing()
    assert "put the pepper first" in refusal(sparing("restore", str(backup), home=other))
    wrong = {"SPARING_PEPPER": "ab" * 32}
    assert "is not that of this backup" in refusal(sparing("restore", str(backup), home=other, **wrong))
    assert not other.exists()
    damaged = tmp_path / "damaged"
    shutil.copytree(backup, damaged)
    with (damaged / "database.dump").open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    ours = {"SPARING_PEPPER": (home / "pepper").read_text().strip()}
    assert "damaged or was changed" in refusal(sparing("restore", str(damaged), home=other, **ours))
    assert "is not a backup" in refusal(sparing("restore", str(tmp_path), home=other, **ours))
    later = json.loads((backup / "backup.json").read_text()) | {"schema": "9999"}
    (damaged / "backup.json").write_text(json.dumps(later))
    shutil.copy(backup / "database.dump", damaged)
    assert "of a later version" in refusal(sparing("restore", str(damaged), home=other, **ours))

    told = said(sparing("restore", str(backup), home=other, **ours))
    assert "survey: no witness is left that could say whether anything is missing" in told
    shutil.rmtree(other / "witness", ignore_errors=True)
    shutil.copytree(home / "witness", other / "witness")
    assert "0 findings" in said(sparing("ledger", "verify", home=other, **ours))
    found = find_home(other)
    assert found is not None
    assert data_directories(found.state)


@pytest.fixture
def databases(postgres_server: PostgresServer) -> Iterator[list[str]]:
    """The URLs of two empty databases of a server that is not the service's own."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as operator:
        for name in DATABASES:
            operator.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield [postgres_server.url_of(name) for name in DATABASES]
        rows = operator.execute("SELECT datname FROM pg_database WHERE datname ~ '^(backed_up|put_back)'").fetchall()
        for (name,) in rows:
            operator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_a_backup_of_another_database_goes_into_another(databases: list[str], homes: Homes, tmp_path: Path) -> None:
    """As in a compose deployment: DATABASE_URL names both, and the witness goes with neither."""
    source, target = ({"DATABASE_URL": url} for url in databases)
    home, backup = homes.begun(), tmp_path / "backup"
    with served(home, **source) as running:
        curator_key = new_key(home, "curator", **source)
        register(running.url, curator_key)
        analyst_key = new_key(home, "analyst", "--dataset", "survey", **source)
        answer = ask(running.url, analyst_key, "a")
        assert answer.status_code == 200
    said(sparing("backup", str(backup), home=home, **source))
    assert "nothing that was witnessed is missing\n" in said(sparing("restore", str(backup), home=home, **target))
    with served(home, **target) as running:
        assert ask(running.url, analyst_key, "a").content == answer.content
        assert len(spent_units(running.url, curator_key)) == 3
    assert ", 0 findings" in said(sparing("ledger", "verify", home=home, **target))
