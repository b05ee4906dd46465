"""The façade: embedded servers for the URLs that are not given."""

import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from service.embedded import EmbeddedPostgres, EmbeddedServerError, EmbeddedValkey, open_servers
from service.embedded.lock import HomeLock, read_note
from service.embedded.server import ABSENT_S


def test_servers_that_are_given_are_used_as_they_are(home: Path) -> None:
    """With both URLs nothing is started, looked for or written."""
    with open_servers(home, "postgresql://there/db", "redis://there", failed=pytest.fail) as servers:
        assert (servers.database_url, servers.redis_url) == ("postgresql://there/db", "redis://there")

    assert not home.exists()


def test_servers_that_are_not_given_are_embedded(used: Any) -> None:
    """Without URLs both are started and answer; others attach to them; stopping twice ends both once."""
    assert (EmbeddedPostgres(used.home).attach(), EmbeddedValkey(used.home).attach()) == (None, None)
    with open_servers(used.home, None, None, private_root=used.private_root) as servers:
        with psycopg.connect(servers.database_url) as connection, redis.Redis.from_url(servers.redis_url) as client:
            assert connection.execute("SELECT current_database()").fetchone() == ("sparing",)
            assert client.ping()
        attached = open_servers(used.home, None, None, private_root=used.private_root, meanwhile=pytest.fail)
        assert attached == servers
        attached.stop()
        assert EmbeddedPostgres(used.home).attach() == servers.database_url
        assert EmbeddedValkey(used.home).attach() == servers.redis_url
        servers.stop()
        assert (EmbeddedPostgres(used.home).attach(), EmbeddedValkey(used.home).attach()) == (None, None)


def test_one_that_another_process_runs_is_used_beside_one_that_is_started(used: Any) -> None:
    """A service that was given a database shares its cache with a command that was not."""
    cache = EmbeddedValkey(used.home, private_root=used.private_root)
    with cache, open_servers(used.home, None, None, private_root=used.private_root) as servers:
        assert servers.redis_url == EmbeddedValkey(used.home).attach()
        assert used.ask(servers.database_url, "SELECT 1") == 1


class Clock:
    """A clock that goes on by sleeping alone."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize(("has_answered", "waited_s"), [(False, 5.0), (True, ABSENT_S)])
def test_a_server_that_another_process_runs_is_waited_for_while_it_starts_alone(
    used: Any, monkeypatch: pytest.MonkeyPatch, has_answered: bool, waited_s: float
) -> None:
    """The wait lasts as long as the setting says, and is short if the note of the lock says that it was up already."""
    clock = Clock()
    monkeypatch.setattr("service.embedded.server.time", clock)
    lock = HomeLock(used.data.parent, "valkey")
    lock.write(used.data.parent / "sparing-nothing", has_answered=has_answered)
    with pytest.raises(EmbeddedServerError, match=f"embedded Valkey of .* does not answer; process {os.getpid()} is"):
        open_servers(used.home, "postgresql://there/db", None, start_timeout_s=5.0)
    lock.release()
    assert clock.now_s == pytest.approx(waited_s, abs=0.1)  # two looks


def test_a_server_that_has_just_answered_is_looked_at_again(used: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The half second begins when the note is seen, not with the wait: the server may have come up since a look."""
    lock = HomeLock(used.data.parent, "valkey")

    class ComingUp(Clock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            lock.write(used.data.parent / "sparing-nothing", has_answered=self.now_s >= 3.0)

    clock = ComingUp()
    monkeypatch.setattr("service.embedded.server.time", clock)
    lock.write(used.data.parent / "sparing-nothing", has_answered=False)
    with pytest.raises(EmbeddedServerError, match="does not answer"):
        open_servers(used.home, "postgresql://there/db", None, start_timeout_s=5.0)
    lock.release()
    assert clock.now_s == pytest.approx(3.0 + ABSENT_S, abs=0.1)


def test_only_the_missing_one_is_embedded(home: Path, private_root: Path) -> None:
    """A given database leaves the cache to be embedded, and needs no data directory."""
    with open_servers(home, "postgresql://there/db", None, private_root=private_root) as servers:
        assert servers.database_url == "postgresql://there/db"
        assert servers.redis_url == EmbeddedValkey(home).attach()
        assert EmbeddedPostgres(home).attach() is None

    assert list(home.glob("pgdata-*")) == []


def test_they_come_up_beside_each_other_and_beside_what_is_done_meanwhile(used: Any) -> None:
    """Both are under way when it begins; they are waited for afterwards."""
    under_way: list[bool] = []

    def look() -> None:
        note = read_note(used.data.parent / "valkey.lock")
        under_way.extend([used.processes() != [], note is not None and note.runtime is not None])

    with open_servers(used.home, None, None, private_root=used.private_root, meanwhile=look) as servers:
        assert under_way == [True, True]
        assert EmbeddedPostgres(used.home).attach() == servers.database_url


def test_nothing_stays_when_what_is_done_meanwhile_fails(used: Any) -> None:
    """Servers that are still coming up are stopped too."""

    def fail() -> None:
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        open_servers(used.home, None, None, private_root=used.private_root, meanwhile=fail)

    assert used.processes() == []
    HomeLock(used.data.parent, "postgres").release()
    HomeLock(used.data.parent, "valkey").release()


@pytest.mark.parametrize("server", [EmbeddedPostgres, EmbeddedValkey])
def test_what_was_not_launched_is_not_waited_for(
    home: Path, server: type[EmbeddedPostgres] | type[EmbeddedValkey]
) -> None:
    """It says so."""
    with pytest.raises(EmbeddedServerError, match="has not been launched"):
        server(home).ready()


def test_all_or_none(used: Any) -> None:
    """When the cache cannot start, the database that was starting is stopped again."""
    lock = HomeLock(used.data.parent, "valkey")
    with pytest.raises(EmbeddedServerError, match="embedded Valkey"):
        open_servers(used.home, None, None, private_root=used.private_root, start_timeout_s=0)
    lock.release()

    assert used.processes() == []
    HomeLock(used.data.parent, "postgres").release()


def test_passwords_stay_out_of_logs(home: Path) -> None:
    """The URLs, which may hold passwords, are not in the representation."""
    servers = open_servers(home, "postgresql://a:secret@there/db", "redis://:secret@there")

    assert "secret" not in repr(servers)
