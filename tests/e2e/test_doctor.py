"""`sparing doctor`: a healthy deployment, and each thing that an operator can mend."""

import json
import socket
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from service.store.witness.file import FileWitness
from tests.e2e.homes import SurveyHome
from tests.e2e.processes import served, sparing

CHECKS = """
versions, disk home, disk witness, disk data, disk uploads, disk witness, redis, redis clock, database, database clock,
writes, schema, pepper, witness, backup
"""
Results = dict[str, tuple[str, str]]


def results(home: Path, status: int, **settings: str) -> Results:
    """State and text by check; the last, where one has several."""
    done = sparing("doctor", "--json", home=home, **settings)
    assert (done.returncode, done.stderr) == (status, ""), done.stderr
    return {each["check"]: (each["state"], each["found"]) for each in json.loads(done.stdout)["results"]}


def test_a_healthy_deployment_and_its_faults(answered_home: SurveyHome) -> None:
    """Beside the service that runs; a line for each check, and status 1 where one has failed."""
    home = answered_home.path
    witness = FileWitness(home / "witness")
    with served(home):
        done = sparing("doctor", home=home)
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert [line[8:22].strip() for line in lines] == CHECKS.replace("\n", " ").strip().split(", ")
        assert not [line for line in lines if line.startswith("failed")]
        assert "1 datasets: nothing that was witnessed is missing" in done.stdout
        assert "the one that this database was begun with" in done.stdout

        wrong = results(home, 1, SPARING_PEPPER="5e" * 32)
        assert wrong["pepper"][0] == "failed"
        assert "witness" not in wrong  # under another pepper nothing could be read
        (home / "witness").rename(home / "moved")
        assert "no witness is left" in sparing("doctor", home=home).stdout
        assert results(home, 1)["witness"][0] == "failed"
        (home / "moved").rename(home / "witness")
        (name,) = witness.names()
        last = witness.history(name)[-1]
        witness.write(name, replace(last, seq=last.seq + 2, hash=bytes(32)))
        behind = sparing("doctor", home=home)
        assert behind.returncode == 1
        assert "survey: witnessed and missing: ledger entries 4 to 5" in behind.stdout


def test_a_database_elsewhere(database_url: str, redis_url: str, tmp_path: Path) -> None:
    """One that is not begun is no fault; one that takes no writes or cannot be reached is, and names no password."""
    home = tmp_path / "home"
    home.mkdir()
    ours = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    found = results(home, 0, **ours)
    assert found["pepper"] == ("ok", "none yet; the first start makes one")
    assert not (home / "pepper").exists()
    name = sql.Identifier(urlsplit(database_url).path[1:])
    with psycopg.connect(database_url, autocommit=True) as operator:
        operator.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        assert results(home, 1, **ours)["writes"] == ("failed", "refused: database-read-only")
        operator.execute("SET default_transaction_read_only = off")
        operator.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
        operator.execute(sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))
        assert "synchronous_commit = off" in results(home, 1, **ours)["durability"][1]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nowhere = f"127.0.0.1:{port}"
    gone = {"DATABASE_URL": f"postgresql://ann:secret@{nowhere}/sparing", "REDIS_URL": f"redis://:secret@{nowhere}"}
    done = sparing("doctor", home=home, **gone)
    assert (done.returncode, done.stderr) == (1, "")
    assert "secret" not in done.stdout
    last = [line.split()[:2] for line in done.stdout.splitlines()[-2:]]
    assert last == [["warning", "redis"], ["failed", "database"]]
