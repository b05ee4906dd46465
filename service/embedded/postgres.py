"""A real Postgres of our own, as a child process that cannot outlive us and loses nothing when we are killed.

The server listens on a unix socket only, asks for a password, checks its pages, and syncs every commit. When we die,
even by kill -9, the kernel sends it SIGINT, which Postgres takes as a fast shutdown.
"""

import hashlib
import os
import secrets
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import pq, sql

from service.embedded.binaries import PostgresPrograms, choose_postgres, postgres_candidates
from service.embedded.home import (
    PRIVATE_ROOT,
    Home,
    data_directories,
    make_server_directory,
    sync_directory,
    write_private,
)
from service.embedded.process import EmbeddedServerError, arguments_of, run_program
from service.embedded.server import EmbeddedServer, end_orphans

DATABASE = "sparing"
SUPERUSER = "sparing"
MAINTENANCE_DATABASE = "postgres"
PASSWORD_FILE = "postgres.password"  # noqa: S105 -- the file's name
PORT = 5432  # names the socket file; no port is opened
INITDB_TIMEOUT_S = 300.0
PREDECESSOR_TIMEOUT_S = 120.0  # a fast shutdown writes a checkpoint first
CONNECT_TIMEOUT_S = 10
SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "full_page_writes": "on",
    "listen_addresses": "",
    # The log is for operators: no statement, key or row of anyone's may get into it.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_timezone": "UTC",
    "port": str(PORT),
    "synchronous_commit": "on",
    "timezone": "UTC",
    "unix_socket_permissions": "0700",
}


class EmbeddedPostgres(EmbeddedServer):
    """The embedded Postgres of a home; a context manager that starts and stops it. Its URL is for libpq."""

    title = "Postgres"
    server = "postgres"
    start_timeout_s = 600.0  # recovery after a crash replays the log first
    # Fast shutdown; then immediate, which is as safe as a power cut; then the end.
    stop_steps = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0), (signal.SIGKILL, 5.0))
    death_signal = signal.SIGINT

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, str] | None = None,
        private_root: Path = PRIVATE_ROOT,
        programs: Sequence[Path] | None = None,
        throw_away: bool = False,
    ) -> None:
        """Take the home and `private_root`, as every embedded server does, and extra server settings.

        `programs` are folders with `postgres` and `initdb` to try instead of the wheel's and the system's. `throw_away`
        leaves a new data directory unsynced, for tests: a power cut in its first minutes may lose it.
        """
        super().__init__(home, private_root=private_root)
        self._settings = {**SETTINGS, **(settings or {})}
        self._candidates = programs
        self._throw_away = throw_away
        self._programs: PostgresPrograms
        self._data = Path()
        self._is_new = True  # no data directory has been made before
        self._password = ""

    def url_of(self, database: str) -> str:
        """Return the URL of one of the running server's databases; it holds the password."""
        return _url(self._runtime, self._password, database)

    def _choose_program(self, home: Home) -> None:
        present = data_directories(home.state)
        major = int(present[0].name.removeprefix("pgdata-")) if present else None
        candidates = self._candidates or postgres_candidates(home.account, private_root=self._private_root)
        self._programs = choose_postgres(candidates, home.account, major)
        self._data = home.state / f"pgdata-{self._programs.major}"
        self._is_new = not present

    def _end_predecessor(self, runtime: Path | None) -> None:  # noqa: ARG002 -- the data directory tells more
        if not self._is_new:
            _await_predecessor(self._data)

    def _prepare(self, home: Home, runtime: Path) -> Sequence[str | Path]:
        if self._is_new:
            _initialise(home, self._programs, self._data, runtime, sync=not self._throw_away)
        self._is_new = False
        self._password = _read_password(home)
        settings = {**self._settings, "cluster_name": _mark(self._data), "unix_socket_directories": str(runtime)}
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        return [self._programs.directory / "postgres", "-D", self._data, *options]

    def _answers(self) -> bool:
        return pq.PGconn.ping(self.url_of(MAINTENANCE_DATABASE).encode()) == pq.Ping.OK

    def _prove(self) -> None:
        try:
            _prove_and_complete(self.url_of(MAINTENANCE_DATABASE), self._data)
        except psycopg.Error as error:
            raise EmbeddedServerError(f"the embedded Postgres of {self._path} refuses us: {error}") from error

    def _is_served(self, home: Home, runtime: Path) -> bool:
        """Tell whether the server has our database and proves that it knows our password; scram proves both sides."""
        try:
            self._password = _read_password(home)
            data = _data_directory_of(_url(runtime, self._password, DATABASE))
        except (EmbeddedServerError, psycopg.Error):
            return False
        return any(data.exists() and data.samefile(ours) for ours in data_directories(home.state))

    def _url(self) -> str:
        return self.url_of(DATABASE)


def _initialise(home: Home, programs: PostgresPrograms, data: Path, runtime: Path, *, sync: bool) -> None:
    """Make a data directory with a password of its own; an interruption leaves no data directory, never half of one."""
    fresh = home.state / f"{data.name}.new"
    if fresh.exists():
        shutil.rmtree(fresh)
    make_server_directory(fresh, home.account)
    password = secrets.token_hex(32)
    password_file = runtime / "initdb.password"  # initdb reads it as the servers' account
    write_private(password_file, password, home.account)
    # From 17 on Postgres brings its own C.UTF-8, the same on every machine; before, it is the C library's.
    collation = ["--locale=C.UTF-8"]
    if programs.major >= 17:
        collation = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options = ["--auth=scram-sha-256", f"--username={SUPERUSER}", "--data-checksums", "--encoding=UTF8", *collation]
    command: list[str | Path] = [programs.directory / "initdb", "-D", fresh, f"--pwfile={password_file}"]
    run_program(
        [*command, *options, *([] if sync else ["--no-sync"])], account=home.account, timeout_s=INITDB_TIMEOUT_S
    )
    password_file.unlink()
    write_private(home.path / PASSWORD_FILE, password)
    fresh.rename(data)
    sync_directory(home.state)


def _await_predecessor(data: Path) -> None:
    """Wait for a server whose owner was killed a moment ago, then remove a pid file that names no running Postgres."""
    mark = _mark(data)

    def leads(arguments: list[str]) -> bool:
        return f"cluster_name={mark}" in arguments[1:] and Path(arguments[0]).name == "postgres"

    def belongs(arguments: list[str]) -> bool:
        return leads(arguments) or any(argument.startswith(f"postgres: {mark}: ") for argument in arguments[:1])

    what = f"cannot start on {data}"
    end_orphans(belongs, leads, signal.SIGINT, what=what, timeout_s=PREDECESSOR_TIMEOUT_S, leaderless=signal.SIGQUIT)
    _remove_stale_pid_file(data)


def _remove_stale_pid_file(data: Path) -> None:
    """Remove postmaster.pid when its pid now belongs to a process that is no Postgres of this data directory.

    Postgres would take such a process for a running server. It would also take a dead process for one while the parent
    has not collected its exit status. With or without the file, Postgres looks for orphaned backends in shared memory
    before it goes on.
    """
    path = data / "postmaster.pid"
    try:
        first = path.read_text().partition("\n")[0].strip()
    except FileNotFoundError:
        return
    arguments = arguments_of(int(first)) if first.isdigit() else []
    if arguments and _is_postgres_of(int(first), arguments, data):
        raise EmbeddedServerError(f"process {first}, which we did not start, runs Postgres on {data}; stop it first")
    path.unlink()


def _is_postgres_of(pid: int, arguments: list[str], data: Path) -> bool:
    """Tell whether a process is a Postgres of this data directory; True when that cannot be told."""
    if Path(arguments[0]).name not in {"postgres", "postmaster"} and not arguments[0].startswith("postgres:"):
        return False
    try:
        return Path(f"/proc/{pid}/cwd").samefile(data)
    except OSError:
        return True


def _mark(data: Path) -> str:
    """Name the cluster after its directory's inode; Postgres shows the name in the command line of every process."""
    status = data.stat()
    return f"sparing-{hashlib.sha256(f'{status.st_dev}:{status.st_ino}'.encode()).hexdigest()[:16]}"


def _url(runtime: Path, password: str, database: str) -> str:
    """Return a libpq URL over the unix socket in `runtime`."""
    return f"postgresql://{SUPERUSER}:{password}@/{quote(database)}?host={quote(str(runtime), safe='')}&port={PORT}"


def _read_password(home: Home) -> str:
    """Return the password that the data directory was made with."""
    path = home.path / PASSWORD_FILE
    try:
        return path.read_text().strip()
    except OSError as error:
        raise EmbeddedServerError(f"cannot read the password of the data in {home.state}: {error}") from error


def _data_directory_of(url: str) -> Path:
    """Ask a server which data directory it serves."""
    with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as connection:
        row = connection.execute("SELECT current_setting('data_directory')").fetchone()
    if row is None:
        raise EmbeddedServerError("a Postgres does not say which data directory it serves")
    return Path(row[0])


def _prove_and_complete(url: str, data: Path) -> None:
    """Check that the server serves our data directory, and make our database if the first start ended before that."""
    served = _data_directory_of(url)
    if not os.path.samefile(served, data):  # noqa: PTH121 -- the same, and it reads as a query about two paths
        raise EmbeddedServerError(f"the server that answers serves {served}, not {data}")
    with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
