"""Settings: one frozen object, made once from an environment mapping by whoever starts the process.

`SETTINGS` is the reference: variable, default, and the sentence that says what it is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

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
    ("SPARING_MIGRATIONS", "", "The folder of migrations; empty takes the one beside the package."),
    ("SPARING_UPLOAD_BYTES_MAX", "1073741824", "The largest upload taken, in bytes."),
    ("SPARING_CONNECTIONS_MAX", "10", "The most connections to Postgres of one process."),
    (
        "SPARING_LOCK_IDLE_MS",
        "60000",
        "After how many milliseconds of silence Postgres takes a dataset's lock from a process that was stopped.",
    ),
)
_PEPPER_BYTES: Final = 32


class SettingsError(ValueError):
    """A setting cannot be used; the message names the variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a process needs to be told. Secrets do not show in its repr."""

    home: Path
    database_url: str | None = field(repr=False)
    redis_url: str | None = field(repr=False)
    pepper: bytes | None = field(repr=False)
    migrations: Path
    upload_bytes_max: int
    connections_max: int
    lock_idle_ms: int

    @classmethod
    def of(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Self:
        """Read the environment; `home` from the command line wins. Raises SettingsError."""
        text = {name: environ.get(name) or default for name, default, _ in SETTINGS}
        return cls(
            home=(home or Path(text["SPARING_HOME"]).expanduser()).absolute(),
            database_url=text["DATABASE_URL"] or None,
            redis_url=text["REDIS_URL"] or None,
            pepper=_pepper(text["SPARING_PEPPER"]),
            migrations=Path(text["SPARING_MIGRATIONS"] or Path(service.__file__).parent.parent / "migrations"),
            upload_bytes_max=_positive(text, "SPARING_UPLOAD_BYTES_MAX"),
            connections_max=_positive(text, "SPARING_CONNECTIONS_MAX"),
            lock_idle_ms=_positive(text, "SPARING_LOCK_IDLE_MS"),
        )


def _positive(text: Mapping[str, str], name: str) -> int:
    if not text[name].isdecimal() or int(text[name]) == 0:
        raise SettingsError(f"{name} must be a positive whole number, got {text[name]!r}")
    return int(text[name])


def _pepper(text: str) -> bytes | None:
    if not text:
        return None
    try:
        pepper = bytes.fromhex(text)
    except ValueError:
        pepper = b""
    if len(pepper) != _PEPPER_BYTES:
        raise SettingsError("SPARING_PEPPER must be 64 hexadecimal digits")
    return pepper
