"""Settings: one frozen object, made once from an environment mapping by the code that starts the process.

`SETTINGS` is the reference: variable, default, and the sentence that says what it is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

import service

SETTINGS: Final[tuple[tuple[str, str, str], ...]] = (
    ("SPARING_HOME", "~/.local/share/sparing", "Where the pepper, the embedded servers and their data live."),
    ("DATABASE_URL", "", "A Postgres to use; empty runs an embedded one in the home."),
    ("REDIS_URL", "", "A Redis or Valkey to use; empty runs an embedded one in the home."),
    (
        "SPARING_PEPPER",
        "",
        "64 hexadecimal digits under which keys and tombstones are hashed; empty keeps one in the home.",
    ),
    (
        "SPARING_WITNESS",
        "",
        "The folder of the witness against restored backups; empty keeps it in the home. No backup may hold it.",
    ),
    ("SPARING_MIGRATIONS", "", "The folder of migrations; empty takes the one beside the package."),
    ("SPARING_UPLOAD_BYTES_MAX", "1073741824", "The largest upload taken, in bytes."),
    ("SPARING_PRELOAD", "1", "Whether every dataset is loaded at the start; 0 leaves each to whoever asks it first."),
    ("SPARING_WORKERS", "1", "How many processes serve behind the one address, each with a memory of its own."),
    (
        "SPARING_FORWARD_URL",
        "http://127.0.0.1",
        "Where other processes reach this one, privately; {hostname} is the machine's, and without a port one is free.",
    ),
    (
        "SPARING_CONNECTIONS_MAX",
        "10",
        "The most connections to Postgres of one process, two for uploads and erasures not counted.",
    ),
    (
        "SPARING_RELEASE_SLOT_MS",
        "10",
        "The length of a slot: queries begin and their answers leave at whole multiples of it; 0 holds nothing.",
    ),
    (
        "SPARING_MEMORY_BYTES_MAX",
        "2147483648",
        "The memory that all admitted queries may take together, in bytes, by their public costs.",
    ),
    (
        "SPARING_REQUEST_DEADLINE_MS",
        "30000",
        "After so long a request other than an upload is answered 503; begun work goes on, and its key has the answer.",
    ),
    (
        "SPARING_DRAIN_NOTICE_MS",
        "3000",
        "How long after SIGTERM connections are still taken, only to be refused, so that a balancer notices.",
    ),
    ("SPARING_DRAIN_MS", "20000", "How long after that the requests in the house have to be answered."),
    (
        "SPARING_STATEMENT_TIMEOUT_MS",
        "300000",
        "How long Postgres works on one statement; the copying of a whole upload is one.",
    ),
    ("SPARING_LOCK_TIMEOUT_MS", "10000", "How long a statement waits for what another replica has locked."),
    (
        "SPARING_IDLE_TRANSACTION_TIMEOUT_MS",
        "60000",
        "How long Postgres keeps the locks of a replica that has fallen silent in a transaction.",
    ),
    (
        "SPARING_TCP_TIMEOUT_MS",
        "10000",
        "How long either end waits for the other to acknowledge before it gives the connection up.",
    ),
    ("SPARING_REDIS_TIMEOUT_MS", "50", "How long Redis may take; after that it is done without, for a second."),
    ("SPARING_RATE_LIMIT", "0", "Requests a second of each principal, over all replicas; 0 is no limit."),
    ("SPARING_RATE_BURST", "50", "How many requests of one principal may come at once under that limit."),
    ("SPARING_METRICS_PORT", "", "The port of /metrics; empty serves none, 0 picks a free one."),
    ("SPARING_METRICS_HOST", "127.0.0.1", "The address of /metrics. Whoever reaches it reads it: there is no key."),
)
_PEPPER_BYTES: Final = 32
_PORT_MAX: Final = 65535
_RATE_MAX: Final = 1_000_000


class SettingsError(ValueError):
    """A setting cannot be used; the message names the variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a process. Secrets do not show in the repr."""

    home: Path
    database_url: str | None = field(repr=False)
    redis_url: str | None = field(repr=False)
    pepper: bytes | None = field(repr=False)
    witness: Path
    migrations: Path
    upload_bytes_max: int
    preload: bool
    workers: int
    forward_url: str
    connections_max: int
    release_slot_ms: int
    memory_bytes_max: int
    request_deadline_ms: int
    drain_notice_ms: int
    drain_ms: int
    statement_timeout_ms: int
    lock_timeout_ms: int
    idle_transaction_timeout_ms: int
    tcp_timeout_ms: int
    redis_timeout_ms: int
    rate_limit: int
    rate_burst: int
    metrics_port: int | None
    metrics_host: str

    @classmethod
    def of(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Self:
        """Read the environment; `home` from the command line wins. Raises SettingsError."""
        text = {name: environ.get(name) or default for name, default, _ in SETTINGS}
        home = (home or Path(text["SPARING_HOME"]).expanduser()).absolute()
        return cls(
            home=home,
            database_url=text["DATABASE_URL"] or None,
            redis_url=text["REDIS_URL"] or None,
            pepper=_pepper(text["SPARING_PEPPER"]),
            witness=Path(text["SPARING_WITNESS"] or home / "witness").absolute(),
            migrations=Path(text["SPARING_MIGRATIONS"] or Path(service.__file__).parent.parent / "migrations"),
            upload_bytes_max=_positive(text, "SPARING_UPLOAD_BYTES_MAX"),
            preload=_switch(text, "SPARING_PRELOAD"),
            workers=_positive(text, "SPARING_WORKERS"),
            forward_url=_url(text, "SPARING_FORWARD_URL"),
            connections_max=_positive(text, "SPARING_CONNECTIONS_MAX"),
            release_slot_ms=_whole(text, "SPARING_RELEASE_SLOT_MS"),
            memory_bytes_max=_positive(text, "SPARING_MEMORY_BYTES_MAX"),
            request_deadline_ms=_positive(text, "SPARING_REQUEST_DEADLINE_MS"),
            drain_notice_ms=_whole(text, "SPARING_DRAIN_NOTICE_MS"),
            drain_ms=_positive(text, "SPARING_DRAIN_MS"),
            statement_timeout_ms=_positive(text, "SPARING_STATEMENT_TIMEOUT_MS"),
            lock_timeout_ms=_positive(text, "SPARING_LOCK_TIMEOUT_MS"),
            idle_transaction_timeout_ms=_positive(text, "SPARING_IDLE_TRANSACTION_TIMEOUT_MS"),
            tcp_timeout_ms=_positive(text, "SPARING_TCP_TIMEOUT_MS"),
            redis_timeout_ms=_positive(text, "SPARING_REDIS_TIMEOUT_MS"),
            rate_limit=_whole(text, "SPARING_RATE_LIMIT", at_most=_RATE_MAX),
            rate_burst=_positive(text, "SPARING_RATE_BURST"),
            metrics_port=_port(text, "SPARING_METRICS_PORT"),
            metrics_host=text["SPARING_METRICS_HOST"],
        )


def _positive(text: Mapping[str, str], name: str) -> int:
    if not text[name].isdecimal() or int(text[name]) == 0:
        raise SettingsError(f"{name} must be a positive whole number, got {text[name]!r}")
    return int(text[name])


def _switch(text: Mapping[str, str], name: str) -> bool:
    if text[name] not in {"0", "1"}:
        raise SettingsError(f"{name} must be 0 or 1, got {text[name]!r}")
    return text[name] == "1"


def _whole(text: Mapping[str, str], name: str, *, at_most: int | None = None) -> int:
    if not text[name].isdecimal() or (at_most is not None and int(text[name]) > at_most):
        bound = "" if at_most is None else f" of at most {at_most}"
        raise SettingsError(f"{name} must be a whole number{bound}, got {text[name]!r}")
    return int(text[name])


def _url(text: Mapping[str, str], name: str) -> str:
    try:
        parts = urlsplit(text[name].replace("{hostname}", "hostname"))
        is_plain = parts.scheme == "http" and parts.hostname and not (parts.path or parts.query or parts.username)
        is_plain = is_plain and (parts.port is None or parts.port > 0)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise SettingsError(f"{name} must be http://host or http://host:port, got {text[name]!r}")
    return text[name]


def _port(text: Mapping[str, str], name: str) -> int | None:
    if not text[name]:
        return None
    if not text[name].isdecimal() or int(text[name]) > _PORT_MAX:
        raise SettingsError(f"{name} must be a port, got {text[name]!r}")
    return int(text[name])


def _pepper(text: str) -> bytes | None:
    return pepper_from(text, "SPARING_PEPPER") if text else None


def pepper_from(text: str, place: str) -> bytes:
    """The pepper that `place` holds. Raises SettingsError."""
    try:
        pepper = bytes.fromhex(text)
    except ValueError:
        pepper = b""
    if len(pepper) != _PEPPER_BYTES:
        raise SettingsError(f"{place} must be 64 hexadecimal digits")
    return pepper
