"""The place and the owner of an embedded server's files.

For an ordinary account everything is in the home directory. Root must not run Postgres, so root starts the servers as
an unprivileged account, which has to reach its files. They are in the home if that account can reach it. Otherwise they
are in a private directory of this home below /var/lib/sparing, and the home has a pointer to that directory.
Permissions of directories that we did not make are never changed (a home below /root would otherwise open /root).
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.embedded.process import EmbeddedServerError, OsAccount

PRIVATE_ROOT = Path("/var/lib/sparing")
POINTER = "embedded-state"  # file in the home: the directory that holds its servers' files
VALKEY = "valkey"  # the directory of the embedded Valkey
RUNTIME_PREFIX = "sparing-"
ACCOUNTS = ("sparing", "nobody")  # a dedicated account, where an operator made one, shares with no other program
SOCKET_PATH_BYTES_MAX = 107  # sun_path of unix(7) holds 108 with its final NUL
LONGEST_SOCKET = RUNTIME_PREFIX + "xxxxxxxx/.s.PGSQL.5432.lock"
LOG_BYTES_MAX = 16 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """The places of one home."""

    path: Path  # as configured: passwords and logs, readable by us alone
    state: Path  # locks and the servers' own directories; `path` itself unless the account cannot reach it
    account: OsAccount | None  # the account of the servers; None: our own


def open_home(path: Path, *, private_root: Path = PRIVATE_ROOT) -> Home:
    """Find the home's places, making them where they are missing; raises EmbeddedServerError."""
    path = path.absolute()
    try:
        _make_directory(path)
        known = find_home(path)
        if known is not None:
            return known
        account = _unprivileged_account() if os.geteuid() == 0 else None
        if account is None or reachable(path, account):
            return Home(path=path, state=path, account=account)
        return Home(path=path, state=_private_state(path, private_root, account), account=account)
    except OSError as error:
        raise EmbeddedServerError(f"cannot use {path} as the home of the embedded servers: {error}") from error


def find_home(path: Path) -> Home | None:
    """Return the places of a home that has been used before, and change nothing; None for any other path.

    Raises EmbeddedServerError when the home's pointer leads nowhere: with a new, empty database in place of the lost
    one, what every individual has spent would be forgotten.
    """
    path = path.absolute()
    pointer = path / POINTER
    state = Path(pointer.read_text().strip()) if pointer.is_file() else path
    if not state.is_dir():
        if state == path:
            return None
        raise EmbeddedServerError(
            f"{pointer} says that the data is in {state}, which does not exist; restore it, or remove {path}"
        )
    used = [directory.stat() for directory in (*data_directories(state), state / VALKEY) if directory.is_dir()]
    if state == path and not used:
        return None
    if os.geteuid() != 0:
        return Home(path=path, state=state, account=None)
    # An earlier start may have been by another account, or before a dedicated one was made: Postgres wants its owner.
    owners = [OsAccount(uid=status.st_uid, gid=status.st_gid) for status in used if status.st_uid != 0]
    return Home(path=path, state=state, account=owners[0] if owners else _unprivileged_account())


def data_directories(state: Path) -> list[Path]:
    """Return the Postgres data directories (pgdata-18, ...) in `state`, highest major version first."""
    found = [data for data in state.glob("pgdata-*") if data.name.removeprefix("pgdata-").isdigit()]
    return sorted(found, key=lambda data: int(data.name.removeprefix("pgdata-")), reverse=True)


def reachable(path: Path, account: OsAccount) -> bool:
    """Tell whether permission bits let the account pass through `path` and every directory above it."""
    resolved = path.resolve()
    return all(_may_pass(directory.stat(), account) for directory in (resolved, *resolved.parents))


def is_shared(account: OsAccount) -> bool:
    """Tell whether other programs may run as this account too."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(account.uid).pw_name == ACCOUNTS[-1]
    return False


def make_server_directory(path: Path, account: OsAccount | None) -> None:
    """Make a directory that only the servers' account may enter, if it is not there."""
    path.mkdir(mode=0o700, exist_ok=True)
    _give(path, account)


def make_runtime(account: OsAccount | None, *, before: Path | None = None) -> Path:
    """Make a directory for sockets, entered by the servers' account only, with a path short enough for them.

    The directory is made at the path `before` unless something else is there by now, so that a server keeps its
    address.
    """
    if before is not None and before.name.startswith(RUNTIME_PREFIX):
        with contextlib.suppress(OSError):
            before.mkdir(mode=0o700)
            _give(before, account)
            return before
    for parent in (Path(tempfile.gettempdir()), Path("/run"), Path("/tmp"), Path("/var/tmp")):  # noqa: S108 -- mkdtemp
        short = len(os.fsencode(parent / LONGEST_SOCKET)) <= SOCKET_PATH_BYTES_MAX
        if short and os.access(parent, os.W_OK | os.X_OK) and (account is None or reachable(parent, account)):
            runtime = Path(tempfile.mkdtemp(prefix=RUNTIME_PREFIX, dir=parent))
            _give(runtime, account)
            return runtime
    raise EmbeddedServerError("no directory with a path short enough for unix sockets is writable; set TMPDIR to one")


def remove_runtime(runtime: Path) -> None:
    """Remove a directory that `make_runtime` made; any other path is left alone."""
    if runtime.name.startswith(RUNTIME_PREFIX) and not runtime.is_symlink():
        shutil.rmtree(runtime, ignore_errors=True)


def open_log(path: Path) -> int:
    """Open a server's log for appending, readable by us alone. A log that has grown large is moved to `.log.1`."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def write_private(path: Path, text: str, account: OsAccount | None = None, *, keep: bool = False) -> None:
    """Write a file that only its owner may read, whole or not at all, and durably. `keep` leaves an existing file."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(descriptor, "wb", buffering=0) as file, _naming(path):
        file.write(text.encode())
        os.fsync(descriptor)
        if account is not None:  # through the descriptor: the directory may be the account's, and names in it its play
            os.fchown(descriptor, account.uid, account.gid)
    if keep:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(name)
        Path(name).unlink()
    else:
        Path(name).replace(path)
    sync_directory(path.parent)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an error of a descriptor, such as of a full disk."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def sync_directory(path: Path) -> None:
    """Make renames in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give(directory: Path, account: OsAccount | None) -> None:
    """Hand a directory of ours to the account that the servers run as."""
    if account is not None:
        os.chown(directory, account.uid, account.gid, follow_symlinks=False)


def _make_directory(path: Path) -> None:
    """Make a directory of our own if it is missing: closed to others; root's is open to others for passing through."""
    if path.is_dir():
        return
    path.mkdir(parents=True)
    path.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _private_state(path: Path, private_root: Path, account: OsAccount) -> Path:
    """Make this home's directory below `private_root` and leave a pointer to it in the home."""
    _make_directory(private_root)
    key = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    state = private_root / key
    _make_directory(state)
    if not reachable(state, account):
        raise EmbeddedServerError(
            f"account {account.uid} can reach neither {path} nor {state}; use a home that it can pass through"
        )
    write_private(path / POINTER, f"{state}\n")
    return state


def _may_pass(status: os.stat_result, account: OsAccount) -> bool:
    """Tell whether the permission bits let the account search this directory."""
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _unprivileged_account() -> OsAccount:
    """Return the account that the servers run as when root starts them."""
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return OsAccount(uid=entry.pw_uid, gid=entry.pw_gid)
    raise EmbeddedServerError(f"none of the accounts {', '.join(ACCOUNTS)} exists, and Postgres does not run as root")
