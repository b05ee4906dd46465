"""A real Valkey of our own, as a child process that cannot outlive us.

The server is a cache: it writes nothing to disk, and when we die the kernel kills it.
"""

import re
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded.binaries import choose_valkey, valkey_candidates
from service.embedded.home import PRIVATE_ROOT, VALKEY, Home, make_server_directory, write_private
from service.embedded.process import EmbeddedServerError
from service.embedded.server import EmbeddedServer, end_orphans

PASSWORD_FILE = "valkey.password"  # noqa: S105 -- the file's name
PASSWORD_FORM = re.compile("[0-9a-f]{64}")
SOCKET = "valkey.sock"
CONFIGURATION = "valkey.conf"
MEMORY_MB_MAX = 256
PREDECESSOR_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0


class EmbeddedValkey(EmbeddedServer):
    """The embedded Valkey of a home, empty at every start; a context manager that starts and stops it.

    Its URL is for redis-py.
    """

    title = "Valkey"
    server = "valkey"
    start_timeout_s = 20.0
    stop_steps = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
    death_signal = signal.SIGKILL

    def __init__(
        self,
        home: Path,
        *,
        memory_mb_max: int = MEMORY_MB_MAX,
        private_root: Path = PRIVATE_ROOT,
        programs: Sequence[Path] | None = None,
    ) -> None:
        """Take the home and `private_root`, as every embedded server does, and the most memory for data in MB.

        `programs` are server programs to try instead of the wheel's and the system's.
        """
        super().__init__(home, private_root=private_root)
        self._memory_mb_max = memory_mb_max
        self._candidates = programs
        self._program = self._directory = Path()
        self._password = ""

    def _choose_program(self, home: Home) -> None:
        candidates = self._candidates or valkey_candidates(home.account, private_root=self._private_root)
        self._program = choose_valkey(candidates, home.account)
        self._directory = home.state / VALKEY

    def _end_predecessor(self, runtime: Path | None) -> None:
        """Wait for the end of a server whose owner died, which the kernel has normally killed already."""
        if runtime is None:
            return

        def belongs(arguments: list[str]) -> bool:
            title = arguments[0] if arguments else ""  # once it runs the server makes one string of its command line
            return "-server" in title and (
                f"unixsocket:{runtime / SOCKET}" in title or str(runtime / CONFIGURATION) in arguments[1:]
            )

        what = "cannot start the embedded Valkey"
        end_orphans(belongs, belongs, signal.SIGKILL, what=what, timeout_s=PREDECESSOR_TIMEOUT_S)

    def _prepare(self, home: Home, runtime: Path) -> Sequence[str | Path]:
        make_server_directory(self._directory, home.account)
        self._password = _kept_password(home.path / PASSWORD_FILE)
        # A file and not arguments: everyone on the machine can read a command line.
        lines = _configuration(self._directory, runtime, self._password, self._memory_mb_max)
        write_private(runtime / CONFIGURATION, lines, home.account)
        return [self._program, runtime / CONFIGURATION]

    def _answers(self) -> bool:
        return _directory_of(self._url()) is not None

    def _prove(self) -> None:
        served = _directory_of(self._url())
        if served is None or not served.samefile(self._directory):
            raise EmbeddedServerError(f"the server that answers serves {served}, not {self._directory}")

    def _is_served(self, home: Home, runtime: Path) -> bool:
        try:
            self._password = (home.path / PASSWORD_FILE).read_text().strip()
        except OSError:
            return False
        served = _directory_of(_url(runtime, self._password))
        return served is not None and served.exists() and served.samefile(home.state / VALKEY)

    def _url(self) -> str:
        return _url(self._runtime, self._password)


def _kept_password(path: Path) -> str:
    """The password of this home's servers, made at the first start. Users of one server reach the next one with it."""
    password = path.read_text().strip() if path.exists() else ""
    if not PASSWORD_FORM.fullmatch(password):
        password = secrets.token_hex(32)
        write_private(path, password)
    return password


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
