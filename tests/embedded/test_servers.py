"""The façade: embedded servers for the URLs that are not given."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from service.embedded import (
    EmbeddedPostgres,
    EmbeddedServerError,
    EmbeddedValkey,
    HomeInUseError,
    attach_servers,
    start_servers,
    valkey,
)
from service.embedded.lock import HomeLock, read_note


def test_servers_that_are_given_are_used_as_they_are(home: Path) -> None:
    """With both URLs nothing is started, looked for or written."""
    with start_servers(home, "postgresql://there/db", "redis://there") as servers:
        assert (servers.database_url, servers.redis_url) == ("postgresql://there/db", "redis://there")
    attached = attach_servers(home, "postgresql://there/db", "redis://there")

    assert attached is not None
    assert attached.redis_url == "redis://there"
    assert not home.exists()


def test_servers_that_are_not_given_are_embedded(used: Any) -> None:
    """Without URLs both are started and answer; other processes attach; stopping twice ends both once."""
    assert attach_servers(used.home, None, None) is None
    with start_servers(used.home, None, None, private_root=used.private_root) as servers:
        with psycopg.connect(servers.database_url) as connection, redis.Redis.from_url(servers.redis_url) as client:
            assert connection.execute("SELECT current_database()").fetchone() == ("sparing",)
            assert client.ping()
        with pytest.raises(HomeInUseError):
            start_servers(used.home, None, None, private_root=used.private_root)
        attached = attach_servers(used.home, None, None)
        assert attached == servers
        attached.stop()
        assert attach_servers(used.home, None, None) == servers
        servers.stop()
        assert attach_servers(used.home, None, None) is None


def test_only_the_missing_one_is_embedded(home: Path, private_root: Path) -> None:
    """A given database leaves the cache to be embedded, and needs no data directory."""
    with start_servers(home, "postgresql://there/db", None, private_root=private_root) as servers:
        assert servers.database_url == "postgresql://there/db"
        assert servers.redis_url == valkey.attach(home)
        assert attach_servers(home, "postgresql://there/db", None) is not None
        assert attach_servers(home, None, None) is None

    assert list(home.glob("pgdata-*")) == []


def test_they_come_up_beside_each_other_and_beside_what_is_done_meanwhile(used: Any) -> None:
    """Both are under way when it begins; they are waited for afterwards."""
    under_way: list[bool] = []

    def look() -> None:
        note = read_note(used.data.parent / "valkey.lock")
        under_way.extend([used.processes() != [], note is not None and note.runtime is not None])

    with start_servers(used.home, None, None, private_root=used.private_root, meanwhile=look) as servers:
        assert under_way == [True, True]
        assert attach_servers(used.home, None, None) == servers


@pytest.mark.slow
def test_nothing_stays_when_what_is_done_meanwhile_fails(used: Any) -> None:
    """Servers that are still coming up are stopped too."""

    def fail() -> None:
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        start_servers(used.home, None, None, private_root=used.private_root, meanwhile=fail)

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
    cache = EmbeddedValkey(used.home, private_root=used.private_root)
    with cache, pytest.raises(HomeInUseError, match="embedded valkey"):
        start_servers(used.home, None, None, private_root=used.private_root)

    assert used.processes() == []
    HomeLock(used.data.parent, "postgres").release()


def test_passwords_stay_out_of_logs(home: Path) -> None:
    """The URLs, which may hold passwords, are not in the representation."""
    servers = start_servers(home, "postgresql://a:secret@there/db", "redis://:secret@there")

    assert "secret" not in repr(servers)
