"""`sparing doctor`: everything that an operator can mend, looked at without a change; one finding for each check."""

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Final, Literal

from service.embedded import EmbeddedServerError, Servers
from service.embedded.home import find_home, is_shared
from service.ledger.model.api_keys import Pepper
from service.ledger.ports.store import StoreUnavailable
from service.run.adapters import store_of, wall_clock
from service.run.backup import told_losses
from service.run.home import known_pepper, servers_of
from service.run.peers import unreached
from service.run.trials import faults
from service.settings.settings import Settings, SettingsError
from service.store.postgres.condition import DatabaseCondition, database_condition
from service.store.postgres.dump import program_of
from service.store.postgres.registrations import DatabaseUnusable, UnknownSchema, check_known
from service.store.redis.condition import RedisUnusable, redis_condition
from service.store.witness.file import FileWitness
from service.workflows.clock import PlausibleClock, fault_of

COMMIT_SLOW_MS: Final = 20.0
ROUND_TRIP_SLOW_MS: Final = 5.0
CLOCK_AHEAD_MAX_S: Final = 1.0
FREE_BYTES_MIN: Final = 2**30
_SHARED: Final = (
    "; its files belong to the account nobody, which other programs may share: make a system account `sparing`, and"
    " give it these files while the service is stopped"
)
FULL_BYTES: Final = 2**20
"""A disk with fewer free bytes counts as full."""

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; `found` says it in words."""

    check: str
    found: str
    state: State = "ok"

    def __str__(self) -> str:
        return f"{self.state:7} {self.check:14} {self.found}"


def examine(settings: Settings) -> Iterator[CheckResult]:
    """The results of all checks, in order. A check that an earlier failure makes impossible is left out."""
    yield CheckResult("versions", f"sparing {distribution_version('sparing')}, Python {platform.python_version()}")
    yield from machine_clock(wall_clock())
    yield from _disks(settings)
    yield from (CheckResult("settings", fault, "failed") for fault in faults(settings, os.environ))
    yield from (CheckResult("settings", line, "warning") for line in unreached(settings))
    try:
        with servers_of(settings) as servers:
            yield from _redis(servers, settings)
            yield from _database(servers, settings)
    except EmbeddedServerError as fault:
        yield CheckResult("servers", " ".join(str(fault).split()), "failed")


def machine_clock(now: datetime) -> Iterator[CheckResult]:
    """A failure if the clock shows a time at which the service does nothing, else no result."""
    if not PlausibleClock(lambda: now).is_right():
        yield CheckResult("clock", fault_of(now), "failed")


def _disks(settings: Settings) -> Iterator[CheckResult]:
    home = find_home(settings.home) if settings.database_url is None else None
    places = {"home": settings.home, "witness": settings.witness, **({"data": home.state} if home else {})}
    places["uploads"] = Path(os.environ.get("TMPDIR") or tempfile.gettempdir()).absolute()
    for name, path in places.items():
        there = next(each for each in (path, *path.parents) if each.exists())
        free = shutil.disk_usage(there).free
        if not os.access(there, os.W_OK):
            yield CheckResult(f"disk {name}", f"{there} cannot be written", "failed")
        else:
            state: State = "ok" if free >= FREE_BYTES_MIN else "warning" if free >= FULL_BYTES else "failed"
            shared = home.account if name == "data" and home else None
            more = _SHARED if shared is not None and is_shared(shared) else ""
            state = "warning" if more and state == "ok" else state
            yield CheckResult(f"disk {name}", f"{free / 2**30:,.1f} GiB free at {there}{more}", state)
    if settings.database_url is None and _device(settings.witness) == _device(home.state if home else settings.home):
        yield CheckResult(
            "disk witness", "the witness is on the disk of the database, and may be lost with it", "warning"
        )


def _device(path: Path) -> int:
    return next(each for each in (path, *path.parents) if each.exists()).stat().st_dev


def _redis(servers: Servers, settings: Settings) -> Iterator[CheckResult]:
    try:
        found = redis_condition(servers.redis_url)
    except RedisUnusable as fault:
        yield CheckResult("redis", f"cannot be reached: {fault}; queries go on without it", "warning")
        return
    yield _timed("redis", f"{found.version}, a round trip", found.round_trip_ms, settings.redis_timeout_ms / 10)
    yield _clock("redis clock", found.clock_ahead_s)
    if found.memory_bytes_max > 0 and not found.policy.startswith(("volatile", "noeviction")):
        yield CheckResult("redis memory", f"the policy {found.policy} drops records of the witness", "warning")


def _database(servers: Servers, settings: Settings) -> Iterator[CheckResult]:
    try:
        found = database_condition(servers.database_url)
    except DatabaseUnusable as fault:
        yield CheckResult("database", f"cannot be reached: {fault}", "failed")
        return
    yield _timed("database", f"Postgres {found.version}, a round trip", found.round_trip_ms, ROUND_TRIP_SLOW_MS)
    yield _clock("database clock", found.clock_ahead_s)
    if found.refusal is not None or found.commit_ms is None:
        yield CheckResult("writes", f"refused: {found.refusal}", "failed")
    else:
        yield _timed("writes", "a durable commit", found.commit_ms, COMMIT_SLOW_MS)
    if found.weak:
        yield CheckResult("durability", f"a crash could forget charges: {', '.join(found.weak)}", "failed")
    yield _schema(found)
    yield from _pepper_and_witness(found, servers, settings)
    try:
        yield CheckResult("backup", f"{program_of('pg_dump', found.major)}")
    except DatabaseUnusable as fault:
        yield CheckResult("backup", str(fault), "warning")


def _schema(found: DatabaseCondition) -> CheckResult:
    try:
        check_known(found.schema)
    except UnknownSchema as fault:
        return CheckResult("schema", str(fault), "failed")
    return CheckResult("schema", "none yet; the first start makes it" if found.schema is None else found.schema)


def _pepper_and_witness(found: DatabaseCondition, servers: Servers, settings: Settings) -> Iterator[CheckResult]:
    try:
        secret = known_pepper(settings)
    except SettingsError as fault:
        yield CheckResult("pepper", str(fault), "failed")
        return
    seen = FileWitness(settings.witness).names() if found.pepper is None else []
    if seen:
        lost = f"the database is empty, and the witness has seen {len(seen)} datasets: put a backup"
        yield CheckResult("witness", f"{lost} back with `sparing restore`", "failed")
    if secret is None or found.pepper is None:
        begins = "none yet; the first start makes one" if found.pepper is None else "missing: put the database's back"
        present = "present; the database has none to compare with yet"
        yield CheckResult("pepper", begins if secret is None else present, "ok" if found.pepper is None else "failed")
        return
    salt, proof = found.pepper
    if Pepper(secret).database_proof(salt) != proof:
        yield CheckResult("pepper", "not the one that this database was begun with: put that one back", "failed")
        return
    yield CheckResult("pepper", "the one that this database was begun with")
    yield from _witness(servers, settings)


def _witness(servers: Servers, settings: Settings) -> Iterator[CheckResult]:
    try:
        with closing(store_of(settings, servers)) as store:
            lines = list(told_losses(store, FileWitness(settings.witness)))
            count = len(store.datasets())
    except StoreUnavailable as fault:
        yield CheckResult("witness", f"the database does not answer: {fault}", "failed")
        return
    for line in lines[:-1]:
        yield CheckResult("witness", line, "failed")
    is_whole = lines == ["nothing that was witnessed is missing"]
    yield CheckResult("witness", f"{count} datasets: {lines[-1]}", "ok" if is_whole else "failed")


def _timed(check: str, what: str, ms: float, slow_ms: float) -> CheckResult:
    state: State = "ok" if ms <= slow_ms else "warning"
    slow = "" if state == "ok" else f", which is slow: more than {slow_ms:g} ms"
    return CheckResult(check, f"{what} takes {ms:.2f} ms{slow}", state)


def _clock(check: str, ahead_s: float) -> CheckResult:
    way = "ahead of" if ahead_s >= 0 else "behind"
    is_close = abs(ahead_s) <= CLOCK_AHEAD_MAX_S
    return CheckResult(check, f"{abs(ahead_s):.3f} s {way} this machine", "ok" if is_close else "warning")
