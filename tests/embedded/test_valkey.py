"""The embedded Valkey: a cache of our own, gone with its owner."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded.home import find_home
from service.embedded.lock import HomeInUseError, HomeLock, read_note
from service.embedded.process import EmbeddedServerError, processes_where
from service.embedded.valkey import EmbeddedValkey
from tests.waiting import until

OWNER = """
import json, sys
from pathlib import Path
from service.embedded.valkey import EmbeddedValkey
print(json.dumps(EmbeddedValkey(Path(sys.argv[1]), private_root=Path(sys.argv[2])).start()), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(home: Path, private_root: Path) -> EmbeddedValkey:
    """A server that has not been started."""
    return EmbeddedValkey(home, private_root=private_root)


def runtime_of(home: Path) -> Path:
    """Return the directory of a running server's socket."""
    found = find_home(home)
    assert found is not None
    note = read_note(found.state / "valkey.lock")
    assert note is not None
    assert note.runtime is not None
    return note.runtime


def processes_of(runtime: Path) -> list[int]:
    """Return the processes that serve a socket."""
    return processes_where(lambda arguments: any(str(runtime) in argument for argument in arguments))


def test_the_server_is_private_and_keeps_nothing(server: EmbeddedValkey, home: Path) -> None:
    """No port, a password, no file with data, a limit of memory; starting again finds it empty."""
    with redis.Redis.from_url(server.start(), decode_responses=True) as client:
        client.set("key", "value")
        wanted = ("port", "save", "appendonly", "maxmemory", "maxmemory-policy")
        settings = {name: client.config_get(name)[name] for name in wanted}
    runtime = runtime_of(home)
    stranger = redis.Redis(unix_socket_path=str(runtime / "valkey.sock"), retry=Retry(NoBackoff(), 0))
    with stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    command_lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in processes_of(runtime)]
    password = (home / "valkey.password").read_text()
    server.stop()
    server.stop()

    values = ("0", "", "no", str(256 * 2**20), "volatile-lru")
    assert settings == dict(zip(wanted, values, strict=True))
    assert len(command_lines) == 1
    assert password not in command_lines[0]
    assert stat.S_IMODE((home / "valkey.password").stat().st_mode) == 0o600
    assert not runtime.exists()
    assert list((home / "valkey").iterdir()) == []
    with redis.Redis.from_url(server.start()) as client:
        assert client.dbsize() == 0
    server.stop()


def test_it_ends_with_an_owner_that_is_killed(
    server: EmbeddedValkey, home: Path, private_root: Path, start_owner: Callable[..., Any]
) -> None:
    """After kill -9 no process is left, and the next start clears the old socket away."""
    owner = start_owner(OWNER, home, private_root)
    owner.hear()
    runtime = runtime_of(home)
    owner.kill()
    until(lambda: not processes_of(runtime))

    assert EmbeddedValkey(home).attach() is None
    with server:
        assert runtime_of(home) == runtime  # at the same place
        assert EmbeddedValkey(home).attach() is not None


def test_another_process_attaches_but_cannot_start(
    server: EmbeddedValkey, home: Path, private_root: Path, start_owner: Callable[..., Any]
) -> None:
    """While one process serves, others get its URL; a second supervisor is refused by the holder's pid."""
    assert EmbeddedValkey(home).attach() is None
    owner = start_owner(OWNER, home, private_root)
    url = owner.hear()

    assert EmbeddedValkey(home).attach() == url
    with pytest.raises(HomeInUseError, match=f"process {owner.process.pid} already runs the embedded valkey"):
        server.start()
    owner.kill()
    with server:
        assert EmbeddedValkey(home).attach() == url


def test_attaching_asks_the_server_whose_it_is(home: Path, place: Path, private_root: Path) -> None:
    """A server of another home that answers in ours, even with our password, is not ours."""
    with EmbeddedValkey(home, private_root=private_root):
        pass
    with EmbeddedValkey(place / "other", private_root=private_root):
        (home / "valkey.password").write_text((place / "other" / "valkey.password").read_text())
        found = find_home(home)
        assert found is not None
        lock = HomeLock(found.state, "valkey")
        lock.write(runtime_of(place / "other"))
        assert EmbeddedValkey(home).attach() is None
        lock.release()


def test_a_home_may_have_any_name(place: Path, private_root: Path) -> None:
    """Quotes, spaces and backslashes in the home's path reach the server unharmed."""
    home = place / 'a "strange\\name" é'
    with EmbeddedValkey(home, private_root=private_root):
        assert EmbeddedValkey(home).attach() is not None


def test_a_server_that_does_not_start_says_so(home: Path, place: Path, private_root: Path) -> None:
    """A program that ends at once gives an error with its output; starting twice is refused."""
    program = place / "valkey-server"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] || { echo out of order; exit 1; }\n')
    program.chmod(0o755)
    with pytest.raises(EmbeddedServerError, match=r"(?s)ended while starting.*out of order"):
        EmbeddedValkey(home, private_root=private_root, programs=[program]).start()
    with EmbeddedValkey(home, private_root=private_root) as server, pytest.raises(EmbeddedServerError, match="already"):
        server.start()
