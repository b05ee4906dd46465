"""The life of one child server."""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import redis

from service.embedded.home import Home
from service.embedded.lock import Note, read_note
from service.embedded.process import EmbeddedServerError, start_child, stop_child
from service.embedded.server import Supervision, end_orphans
from service.embedded.valkey import EmbeddedValkey

FORKING_OWNER = """
import json, os, sys
from pathlib import Path
from service.embedded.valkey import EmbeddedValkey
server = EmbeddedValkey(Path(sys.argv[1]), private_root=Path(sys.argv[2]))
url = server.start()
forked = os.fork()
if forked == 0:
    server.stop()
    os._exit(0)
os.waitpid(forked, 0)
print(json.dumps(url), flush=True)
sys.stdin.readline()
server.stop()
print(json.dumps("stopped"), flush=True)
"""


def test_a_forked_child_does_not_stop_its_parents_server(
    home: Path, private_root: Path, start_owner: Callable[..., Any]
) -> None:
    """Stopping in a forked process does nothing; the owner stops the server itself."""
    owner = start_owner(FORKING_OWNER, home, private_root)
    with redis.Redis.from_url(owner.hear()) as client:
        assert client.ping()
    owner.end()


@contextlib.contextmanager
def orphan(place: Path, trap: str) -> Iterator[tuple["subprocess.Popen[bytes]", Callable[[list[str]], bool]]]:
    """A child that obeys a trap, and the test by which it is known: the place of this test in its arguments."""
    script = f"trap {trap}; echo ready; while true; do sleep 0.05; done # {place}"
    child = start_child(["/bin/sh", "-c", script], account=None, death_signal=signal.SIGKILL, output=PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child, lambda arguments: arguments[:1] == ["/bin/sh"] and str(place) in arguments[-1]
        stop_child(child, ((signal.SIGKILL, 30.0),))


def test_an_orphan_that_does_not_end_is_an_error(place: Path) -> None:
    """A server that ignores its signal is named instead of waited for without end."""
    with (
        orphan(place, "'' INT") as (child, belongs),
        pytest.raises(EmbeddedServerError, match=f"(?s)cannot start.*{child.pid}.*does not end"),
    ):
        end_orphans(belongs, belongs, signal.SIGINT, what="cannot start", timeout_s=0.5)


def test_processes_whose_leader_was_killed_get_a_signal_of_their_own(place: Path) -> None:
    """Nothing is left to tell them that they should end."""
    with orphan(place, "'exit 0' QUIT") as (child, belongs):
        end_orphans(
            belongs, lambda _: False, signal.SIGINT, what="cannot start", timeout_s=30, leaderless=signal.SIGQUIT
        )
        assert child.wait(30) == 0


def test_a_full_disk_is_named(place: Path) -> None:
    """The start ends in one line that says where there is no space."""
    disk = place / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False).returncode != 0:
        pytest.skip("mounting takes an account that may")
    try:
        disk.chmod(0o711)
        with (disk / "rest").open("wb", buffering=0) as rest, contextlib.suppress(OSError):
            while True:
                rest.write(bytes(4096))
        with pytest.raises(EmbeddedServerError, match=r"^cannot .*/disk[^\n]*: No space left on device$"):
            EmbeddedValkey(disk / "home", private_root=place / "private").start()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_server_that_is_never_ready_is_given_up(place: Path) -> None:
    """After its time the error shows what the server said, and nothing is left of it."""
    supervision = Supervision(Home(path=place, state=place, account=None), "talker")
    runtime = supervision.open_runtime()
    with pytest.raises(EmbeddedServerError, match="has not been launched"):
        supervision.await_ready(lambda: True, timeout_s=1.0)
    supervision.launch(["/bin/sh", "-c", "echo still warming up; exec sleep 60"], death_signal=signal.SIGKILL)
    with pytest.raises(EmbeddedServerError, match=r"(?s)not ready after 0\.5 s.*still warming up"):
        supervision.await_ready(lambda: False, timeout_s=0.5)
    supervision.close()

    assert not runtime.exists()
    assert read_note(place / "talker.lock") == Note(pid=None, runtime=runtime)
