"""Children that end with their owner."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.embedded.process import (
    LAUNCHER,
    EmbeddedServerError,
    OsAccount,
    arguments_of,
    processes_where,
    run_program,
    start_child,
    stop_child,
)
from tests.waiting import until

OWNER = """
import json, signal, subprocess, sys
from service.embedded.process import start_child
child = start_child(["/bin/sleep", sys.argv[1]], account=None, death_signal=signal.SIGTERM, output=subprocess.DEVNULL)
print(json.dumps(child.pid), flush=True)
sys.stdin.read()
"""
REPORT = """
import json, os, re
status = open("/proc/self/status").read()
print(json.dumps([os.getuid(), os.getgid(), os.getgroups(), os.getsid(0) == os.getpid(), sorted(os.environ)]))
"""


def test_a_child_ends_with_an_owner_that_is_killed(start_owner: Callable[..., Any]) -> None:
    """After kill -9 of the owner no child is left."""
    owner = start_owner(OWNER, "97531")
    pid = owner.hear()
    until(lambda: arguments_of(pid) == ["/bin/sleep", "97531"])
    owner.kill()
    until(lambda: not arguments_of(pid))


def test_a_launcher_whose_owner_is_gone_starts_nothing() -> None:
    """A child whose owner died before the kernel could be asked ends instead of running on alone."""
    command: list[str | Path] = [sys.executable, "-I", "-S", LAUNCHER, "1", "15", "-1", "-1", "/bin/echo", "started"]
    finished = subprocess.run(command, capture_output=True, check=False)

    assert finished.stdout == b""
    assert finished.returncode != 0


def test_a_child_gets_its_account_its_session_and_none_of_our_secrets(
    account: OsAccount | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child runs as the account, with no other groups, alone in its session, with a short environment."""
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("SPARING_SECRET", "x")
    python = next(
        path for path in ("/usr/bin/python3", "/usr/local/bin/python3", sys.executable) if Path(path).exists()
    )
    uid, gid, groups, alone, names = json.loads(run_program([python, "-c", REPORT], account=account, timeout_s=20))

    expected = (os.getuid(), os.getgid()) if account is None else (account.uid, account.gid)
    assert (uid, gid) == expected
    assert account is None or groups == []
    assert alone
    assert set(names) <= {"PATH", "LD_LIBRARY_PATH", "LC_ALL", "LC_CTYPE", "TZ"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/bin/sh", "-c", "echo went wrong; exit 3"], "status 3: went wrong"),
        (["/nonexistent/program"], "cannot run /nonexistent/program"),
    ],
)
def test_a_program_that_fails_or_does_not_exist_says_why(command: list[str | Path], said: str) -> None:
    """Its output, or its name, is in the error."""
    with pytest.raises(EmbeddedServerError, match=said):
        run_program(command, account=None, timeout_s=20)


def test_a_program_that_hangs_is_ended(place: Path) -> None:
    """A program over its time is killed, not waited for."""
    with pytest.raises(EmbeddedServerError, match=r"did not finish within 0\.3 s"):
        run_program(["/bin/sh", "-c", f"sleep 60 # {place}"], account=None, timeout_s=0.3)
    assert processes_where(lambda arguments: arguments[-1:] == [f"sleep 60 # {place}"]) == []


def test_servers_start_in_the_main_thread_only() -> None:
    """Another thread is refused: its end would be the server's."""
    refusals: list[str] = []

    def start() -> None:
        try:
            start_child(["/bin/true"], account=None, death_signal=signal.SIGTERM, output=subprocess.DEVNULL)
        except EmbeddedServerError as error:
            refusals.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert len(refusals) == 1
    assert "main thread" in refusals[0]


def test_stopping_goes_on_to_the_next_signal() -> None:
    """A child that ignores the first signal gets the second."""
    script = "trap '' TERM; echo ready; while true; do sleep 0.05; done"
    child = start_child(["/bin/sh", "-c", script], account=None, death_signal=signal.SIGKILL, output=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        stop_child(child, ((signal.SIGTERM, 0.1), (signal.SIGKILL, 5.0)))

    assert child.returncode == -signal.SIGKILL
