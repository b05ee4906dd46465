"""`sparing backup` and `sparing restore` into a home elsewhere and into other databases."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from service.embedded.home import data_directories, find_home
from tests.conftest import PostgresServer
from tests.e2e.homes import ANSWERS, Homes, SurveyHome
from tests.e2e.http_calls import analyst_of, ask, register, spent_units
from tests.e2e.processes import new_key, refusal, said, served, sparing

DATABASES = ("backed_up", "put_back")


def test_a_backup_begins_a_home_elsewhere(homes: Homes, answered_home: SurveyHome, tmp_path: Path) -> None:
    """With its pepper; without, with another one, or when the file was changed, nothing is begun."""
    home, backup = answered_home.path, tmp_path / "backup"
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
    verified = said(sparing("ledger", "verify", home=other, **ours))
    assert verified.startswith(f"survey: {ANSWERS} entries, {ANSWERS} answers, ")
    assert ", 0 findings" in verified
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
    """This is a compose deployment: DATABASE_URL names both, and the witness goes with neither."""
    source, target = ({"DATABASE_URL": url} for url in databases)
    home, backup = homes.begun(), tmp_path / "backup"
    with served(home, **source) as running:
        curator_key = new_key(home, "curator", **source)
        register(running.url, curator_key)
        analyst_key = analyst_of(running.url, curator_key)
        answer = ask(running.url, analyst_key, "a")
        assert answer.status_code == 200
    said(sparing("backup", str(backup), home=home, **source))
    assert "nothing that was witnessed is missing\n" in said(sparing("restore", str(backup), home=home, **target))
    with served(home, **target) as running:
        assert ask(running.url, analyst_key, "a").content == answer.content
        assert len(spent_units(running.url, curator_key)) == 3
    assert ", 0 findings" in said(sparing("ledger", "verify", home=home, **target))
