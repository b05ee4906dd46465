"""The embedded Postgres: durable, private and alone."""

import os
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest

from service.embedded.binaries import postgres_candidates
from service.embedded.postgres import EmbeddedPostgres
from service.embedded.process import EmbeddedServerError, OsAccount

COLLATION = """
    SELECT concat_ws(' ', datlocprovider, coalesce(to_jsonb(d) ->> 'datlocale', datcollate))
    FROM pg_database d WHERE datname = current_database()
"""


def mode_of(path: Path) -> int:
    """Return a path's permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_server_is_durable_private_and_alone(used: Any) -> None:
    """Commits are synced, pages are checked, one socket asks for a password, and files are closed to others."""
    with used.server() as server:
        url = server.url_of("sparing")
        names = ("fsync", "synchronous_commit", "full_page_writes", "data_checksums", "listen_addresses", "timezone")
        settings = [used.ask(url, f"SHOW {name}") for name in names]
        collation = used.ask(url, COLLATION)
        socket = Path(used.ask(url, "SHOW unix_socket_directories"))
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(f"host={socket} port=5432 user=sparing dbname=sparing", passfile="/nonexistent")
        assert used.ask(url, "SELECT current_user") == "sparing"
        assert mode_of(socket) == 0o700
        assert used.processes() != []

    assert settings == ["on", "on", "on", "on", "", "UTC"]
    assert collation in {"b C.UTF-8", "c C.UTF-8"}
    assert not socket.exists()
    assert used.processes() == []
    assert mode_of(used.home / "postgres.password") == 0o600
    assert mode_of(used.data) == 0o700


def test_a_second_start_finds_what_was_there(used: Any) -> None:
    """Existing data is served again, and stopping twice is harmless."""
    server = used.server()
    with psycopg.connect(server.start()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    server.stop()
    server.stop()
    with server:
        assert used.ask(server.url_of("sparing"), "SELECT value FROM kept") == 7


def test_an_interrupted_first_start_leaves_nothing_in_the_way(bench: Any) -> None:
    """A half-made data directory is made anew, and a database that was not created yet is created."""
    (bench.home / "pgdata-18.new" / "base").mkdir(parents=True)
    server = bench.server()
    with server, psycopg.connect(server.url_of("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE sparing")
    with server:
        assert bench.ask(server.url_of("sparing"), "SELECT current_database()") == "sparing"


def test_below_a_closed_directory_everything_is_elsewhere(bench: Any) -> None:
    """A home as below /root works, is found again, and its closed parent stays closed."""
    closed = bench.home.parent / "closed"
    closed.mkdir(mode=0o700)
    bench.home = closed / "home"
    for _ in range(2):
        with bench.server() as server:
            assert EmbeddedPostgres(bench.home).attach() == server.url_of("sparing")

    assert mode_of(closed) == 0o700
    if os.geteuid() == 0:
        assert bench.private_root in bench.data.parents


def test_a_lost_password_is_an_error_that_names_the_file(used: Any) -> None:
    """Without its password the data is not served, and not replaced; a wrong one is told from a slow start."""
    file = used.home / "postgres.password"
    kept = file.rename(file.with_suffix(".kept"))
    file.write_text("0" * 64)
    with pytest.raises(EmbeddedServerError, match=r"refuses us.*password authentication failed"):
        used.server().start()
    file.unlink()
    with pytest.raises(EmbeddedServerError, match=r"cannot read the password.*postgres\.password"):
        used.server().start()
    assert used.processes() == []
    kept.rename(file)


def test_a_server_that_does_not_start_shows_its_log(used: Any) -> None:
    """A refused setting comes back in the error, and the lock is free again; starting twice is refused."""
    with pytest.raises(EmbeddedServerError, match=r'(?s)ended while starting.*"no_such_setting"'):
        used.server(settings={"no_such_setting": "1"}).start()
    with used.server() as server, pytest.raises(EmbeddedServerError, match="already"):
        server.start()


def test_variables_meant_for_another_postgres_change_nothing(used: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PGPORT and its like in the operator's environment neither redirect the server nor the connections."""
    for name, value in {"PGPORT": "1", "PGDATA": "/nonexistent", "PGHOST": "nowhere", "PGDATABASE": "other"}.items():
        monkeypatch.setenv(name, value)
    with used.server() as server:
        assert used.ask(server.url_of("sparing"), "SELECT current_database()") == "sparing"


def test_the_log_keeps_no_values(used: Any) -> None:
    """A statement that fails on someone's key leaves neither the statement nor the key in the log."""
    with used.server() as server, psycopg.connect(server.url_of("sparing"), autocommit=True) as connection:
        connection.execute("CREATE TABLE individual (key text PRIMARY KEY)")
        connection.execute("INSERT INTO individual VALUES ('alice-0123')")
        with pytest.raises(psycopg.errors.UniqueViolation, match="alice-0123"):
            connection.execute("INSERT INTO individual VALUES ('alice-0123')")
        connection.execute("DROP TABLE individual")
    log = (used.home / "postgres.log").read_text()

    assert "duplicate key" in log
    assert "alice-0123" not in log


def test_the_last_resort_serves(bench: Any, account: OsAccount | None) -> None:
    """When the wheel's Postgres does not start the system's does, where there is one, and its data stays its own."""
    candidates = list(postgres_candidates(account, private_root=bench.private_root))
    last = [each for each in candidates if int(each.parent.name if each.parent.name.isdigit() else 18) >= 16][-1]
    with bench.server(programs=[bench.home / "broken", last]) as server:
        version = bench.ask(server.url_of("sparing"), "SELECT current_setting('server_version_num')::int / 10000")

    assert bench.data.name == f"pgdata-{version}"
    if version != 18:
        with pytest.raises(EmbeddedServerError, match=f"no Postgres {version} "):
            bench.server(programs=candidates[:1]).start()
