"""The embedded Postgres and its owners: killed, replaced, attached to, without root."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import pytest

from service.embedded.binaries import choose_postgres, postgres_candidates
from service.embedded.home import make_runtime, reachable, remove_runtime
from service.embedded.lock import HomeInUseError, HomeLock
from service.embedded.postgres import EmbeddedPostgres, _mark
from service.embedded.process import LAUNCHER, EmbeddedServerError, OsAccount, arguments_of, start_child, stop_child
from tests.rotation import times
from tests.waiting import until

OWNER = """
import json, sys
from pathlib import Path
import psycopg
from service.embedded.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), private_root=Path(sys.argv[2]))
with psycopg.connect(server.start(), autocommit=True) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS told (number bigint PRIMARY KEY)")
    number, = connection.execute("SELECT coalesce(max(number), 0) FROM told").fetchone()
    print(json.dumps(server.url_of("sparing")), flush=True)
    while True:
        number += 1
        connection.execute("INSERT INTO told VALUES (%s)", [number])
        print(json.dumps(number), flush=True)
"""
# Everything is imported, and opened once, while the script may still read the interpreter's own files.
UNPRIVILEGED_OWNER = """
import json, os, sys, traceback
from pathlib import Path
import psycopg
from service.embedded import process
from service.embedded.binaries import postgres_candidates
from service.embedded.process import EmbeddedServerError
from service.embedded.postgres import EmbeddedPostgres
home, private_root, launcher, interpreter, account = sys.argv[1:]
programs = None
if account != "null":
    account = process.OsAccount(**json.loads(account))
    programs = list(postgres_candidates(account, private_root=Path(private_root)))
    try:
        psycopg.connect("host=/nonexistent")
    except psycopg.OperationalError as error:
        traceback.format_exception(error)
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)
    process.LAUNCHER, sys.executable = launcher, interpreter
server = EmbeddedPostgres(Path(home), programs=programs)
try:
    url = server.start()
except EmbeddedServerError as error:
    print(json.dumps(["refused", str(error)]), flush=True)
    sys.exit()
with psycopg.connect(url, autocommit=True) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS told (number bigint)")
    connection.execute("INSERT INTO told VALUES (1)")
    count, = connection.execute("SELECT count(*) FROM told").fetchone()
print(json.dumps(["serves", [os.getuid(), count]]), flush=True)
sys.stdin.read()
"""


def test_nothing_committed_is_lost_when_the_owner_is_killed(used: Any, start_owner: Callable[..., Any]) -> None:
    """Kill -9 in the middle of commits leaves no process, and every commit that was reported is there after it."""
    for _ in range(times(1, 2)):
        owner = start_owner(OWNER, used.home, used.private_root)
        owner.hear()
        told = [owner.hear() for _ in range(100)]
        owner.kill()
        used.await_end()
        with used.server() as server:
            assert used.ask(server.url_of("sparing"), "SELECT count(*) FROM told") >= told[-1]


def test_a_start_waits_for_a_server_whose_owner_was_just_killed(used: Any, start_owner: Callable[..., Any]) -> None:
    """A restart at the very moment of the kill finds everything, and the old sockets are cleared away."""
    owner = start_owner(OWNER, used.home, used.private_root)
    old = Path(used.ask(owner.hear(), "SHOW unix_socket_directories"))
    told = [owner.hear() for _ in range(10)]
    owner.process.kill()
    owner.process.wait()
    with used.server() as server:
        assert used.ask(server.url_of("sparing"), "SELECT count(*) FROM told") >= told[-1]
    assert not old.exists()


def test_it_starts_after_a_kill_of_owner_and_server_at_once(used: Any, start_owner: Callable[..., Any]) -> None:
    """At the first try: a dead server that its parent has not asked about yet does not pass for one that runs."""
    owner = start_owner(OWNER, used.home, used.private_root)
    owner.hear()
    told = [owner.hear() for _ in range(10)]
    postmaster = int((used.data / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    owner.process.kill()
    owner.process.wait()
    with used.server() as server:
        assert used.ask(server.url_of("sparing"), "SELECT count(*) FROM told") >= told[-1]


def test_an_orphan_is_shut_down_and_replaced(used: Any, account: OsAccount | None) -> None:
    """A server of ours that somehow outlived its owner is ended in order before the next one starts."""
    with start_postgres(used, account, "-c", f"cluster_name={_mark(used.data)}") as orphan, used.server() as server:
        assert orphan.wait(30) == 0
        assert used.ask(server.url_of("sparing"), "SELECT 1") == 1


def test_a_server_of_another_process_is_left_alone(used: Any, account: OsAccount | None) -> None:
    """A Postgres started by hand on our data is an error with its pid, not a victim."""
    with start_postgres(used, account) as foreign:
        with pytest.raises(EmbeddedServerError, match=f"process {foreign.pid}, which we did not start"):
            used.server().start()
        assert foreign.poll() is None


def test_a_pid_file_that_means_nothing_is_cleared_away(used: Any, account: OsAccount | None) -> None:
    """After a crash a reused pid does not keep Postgres from starting, and neither does a dead or an empty one."""
    pid_file = used.data / "postmaster.pid"
    bystander = start_child(["/bin/sleep", "60"], account=account, death_signal=signal.SIGKILL, output=DEVNULL)
    try:
        for text in (f"{bystander.pid}\n{used.data}\n", "4194300\n", ""):
            pid_file.write_text(text)
            if account is not None:
                os.chown(pid_file, account.uid, account.gid)
            with used.server() as server:
                assert used.ask(server.url_of("sparing"), "SELECT 1") == 1
        assert arguments_of(bystander.pid) == ["/bin/sleep", "60"]
    finally:
        stop_child(bystander, ((signal.SIGKILL, 5.0),))


def test_another_process_attaches_but_cannot_start(used: Any, start_owner: Callable[..., Any]) -> None:
    """While one process serves, others get its URL by proof; a second supervisor is refused by the holder's pid."""
    assert EmbeddedPostgres(used.home).attach() is None
    owner = start_owner(OWNER, used.home, used.private_root)
    url = owner.hear()

    assert EmbeddedPostgres(used.home).attach() == url
    assert used.ask(url, "SELECT 1") == 1
    with pytest.raises(HomeInUseError, match=f"process {owner.process.pid} already runs"):
        used.server().start()
    owner.kill()
    used.await_end()
    assert EmbeddedPostgres(used.home).attach() is None
    with used.server() as server:
        assert EmbeddedPostgres(used.home).attach() == server.url_of("sparing")


def test_attaching_asks_the_server_whose_it_is(bench: Any, used: Any) -> None:
    """A server of another home that answers in ours, even with our password, is not ours."""
    shutil.copytree(used.data, bench.home / used.data.name)
    shutil.copy(used.home / "postgres.password", bench.home)
    with used.server() as other:
        lock = HomeLock(bench.home, "postgres")
        lock.write(Path(used.ask(other.url_of("postgres"), "SHOW unix_socket_directories")))
        assert EmbeddedPostgres(bench.home).attach() is None
        assert EmbeddedPostgres(used.home).attach() == other.url_of("sparing")
        lock.release()


def test_it_serves_without_root(bench: Any, account: OsAccount | None, start_owner: Callable[..., Any]) -> None:
    """An ordinary account starts it, loses nothing to kill -9, and root may take the same home over."""
    launcher = bench.home.with_name("launch.py")
    interpreter = prepare_for(account, bench.home, launcher)
    argument = "null" if account is None else json.dumps({"uid": account.uid, "gid": account.gid})
    for start in (1, 2):
        owner = start_owner(UNPRIVILEGED_OWNER, bench.home, bench.private_root, launcher, interpreter, argument)
        outcome, report = owner.hear()
        if account is not None and not can_run(interpreter, account):
            assert (outcome, "cannot start a child" in report) == ("refused", True)
            return
        assert (outcome, report) == ("serves", [os.getuid() if account is None else account.uid, start])
        owner.kill()
        bench.await_end()
    with bench.server() as server:
        assert bench.ask(server.url_of("sparing"), "SELECT count(*) FROM told") == 2


@contextmanager
def start_postgres(bench: Any, account: OsAccount | None, *options: str) -> Iterator[Popen[bytes]]:
    """Run a Postgres behind the supervisor's back, from the moment when it has its socket."""
    programs = choose_postgres(postgres_candidates(account, private_root=bench.private_root), account, None)
    runtime = make_runtime(account)
    command: list[str | Path] = [programs.directory / "postgres", "-D", bench.data, "-k", runtime, "-h", "", *options]
    child = start_child(command, account=account, death_signal=signal.SIGINT, output=DEVNULL)
    until((runtime / ".s.PGSQL.5432").exists)
    try:
        yield child
    finally:
        stop_child(child, ((signal.SIGINT, 20.0),))
        remove_runtime(runtime)


def prepare_for(account: OsAccount | None, home: Path, launcher: Path) -> str:
    """Give an account a home, a launcher it can read and, where there is one, an interpreter it can run."""
    home.mkdir(mode=0o700)
    shutil.copy(LAUNCHER, launcher)
    launcher.chmod(0o644)
    if account is None:
        return sys.executable
    os.chown(home, account.uid, account.gid)
    interpreters = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
    return next((path for path in interpreters if can_run(path, account)), sys.executable)


def can_run(interpreter: str, account: OsAccount) -> bool:
    """Tell whether the account can reach an interpreter that exists."""
    path = Path(interpreter)
    return path.exists() and reachable(path.parent, account) and reachable(path.resolve().parent, account)
