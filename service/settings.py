"""Settings: one frozen object, made once from an environment mapping by the code that starts the process.

Each field of `Settings` declares one setting: its variable, type, bounds, default and description. A test compares the
table in docs/operations.md with these declarations.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticKnownError
from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict

import service

_PEPPER_BYTES: Final = 32
_PORT_MAX: Final = 65535
_RATE_MAX: Final = 1_000_000


class SettingsError(ValueError):
    """A setting cannot be used; the message names the variable and says what it may be."""


def pepper_from(text: str, place: str) -> bytes:
    """The 32 bytes of the pepper that `place` holds. Raises SettingsError."""
    try:
        return _pepper(text)
    except ValueError as error:
        raise SettingsError(f"{place} {error}") from None


def _pepper(text: str) -> bytes:
    try:
        pepper = bytes.fromhex(text)
    except ValueError:
        pepper = b""
    if len(pepper) != _PEPPER_BYTES:
        raise ValueError("must be 64 hexadecimal digits")
    return pepper


def _digits(text: str) -> str:
    # Pydantic alone would also take signs, spaces, underscores and 1.0.
    if not (text.isascii() and text.isdecimal()):
        raise PydanticKnownError("int_parsing")
    return text


def _switch(text: str) -> bool:
    if text not in {"0", "1"}:
        raise ValueError(f"must be 0 or 1, got {text!r}")
    return text == "1"


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise ValueError("must be a path, and the account after its ~ must exist") from None


def _plain_url(text: str) -> str:
    try:
        parts = urlsplit(text.replace("{hostname}", "hostname"))
        is_plain = parts.scheme == "http" and parts.hostname and not (parts.path or parts.query or parts.username)
        is_plain = is_plain and (parts.port is None or parts.port > 0)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise ValueError("must be http://host or http://host:port")  # the text may hold a password
    return text


_Number = Annotated[int, BeforeValidator(_digits)]
_Switch = Annotated[bool, BeforeValidator(_switch)]
_Pepper = Annotated[bytes, BeforeValidator(_pepper)]
_Home = Annotated[Path, AfterValidator(_expanded)]
_Folder = Annotated[Path, AfterValidator(Path.absolute)]
_PlainUrl = Annotated[str, AfterValidator(_plain_url)]


class Settings(BaseSettings):
    """The settings of a process. Secrets do not show in the repr."""

    model_config = SettingsConfigDict(frozen=True, hide_input_in_errors=True, validate_default=False)

    home: _Home = Field(
        validation_alias="SPARING_HOME",
        default=Path("~/.local/share/sparing"),
        validate_default=True,
        description="The folder of the pepper, the embedded servers and their data.",
    )
    database_url: str | None = Field(
        validation_alias="DATABASE_URL",
        default=None,
        repr=False,
        description="The URL of a Postgres; empty runs an embedded one in the home.",
    )
    redis_url: str | None = Field(
        validation_alias="REDIS_URL",
        default=None,
        repr=False,
        description="The URL of a Redis or Valkey; empty runs an embedded one in the home.",
    )
    pepper: _Pepper | None = Field(
        validation_alias="SPARING_PEPPER",
        default=None,
        repr=False,
        description="64 hexadecimal digits under which keys and tombstones are hashed; empty keeps one in the home.",
    )
    witness: _Folder = Field(
        validation_alias="SPARING_WITNESS",
        default_factory=lambda read: read["home"] / "witness",
        description="The folder of the witness against restored backups; empty keeps it in the home. "
        "No backup may hold it.",
    )
    migrations: Path = Field(
        validation_alias="SPARING_MIGRATIONS",
        default_factory=lambda: Path(service.__file__).parent.parent / "migrations",
        description="The folder of migrations; empty takes the one beside the package.",
    )
    upload_bytes_max: _Number = Field(
        validation_alias="SPARING_UPLOAD_BYTES_MAX",
        default=2**30,
        ge=1,
        description="The largest upload accepted, in bytes; of a body in gzip, unpacked bytes count too.",
    )
    preload: _Switch = Field(
        validation_alias="SPARING_PRELOAD",
        default=True,
        description="1 loads every dataset at the start; 0 loads each at its first request.",
    )
    workers: _Number = Field(
        validation_alias="SPARING_WORKERS",
        default=1,
        ge=1,
        description="The number of processes that serve behind the one address, each with a memory of its own.",
    )
    forward_url: _PlainUrl = Field(
        validation_alias="SPARING_FORWARD_URL",
        default="http://127.0.0.1",
        description="The private address at which other processes reach this one; "
        "{hostname} is replaced by the machine's name, and without a port a free one is taken.",
    )
    connections_max: _Number = Field(
        validation_alias="SPARING_CONNECTIONS_MAX",
        default=10,
        ge=1,
        description="The most connections to Postgres of one process, besides two for uploads and erasures.",
    )
    release_slot_ms: _Number = Field(
        validation_alias="SPARING_RELEASE_SLOT_MS",
        default=2,
        ge=0,
        description="The length of a time slot in milliseconds; "
        "queries begin and their answers leave at whole multiples of it. 0 delays nothing.",
    )
    memory_bytes_max: _Number = Field(
        validation_alias="SPARING_MEMORY_BYTES_MAX",
        default=2**31,
        ge=1,
        description="The most memory that all admitted queries may take together, in bytes, by their public costs.",
    )
    request_deadline_ms: _Number = Field(
        validation_alias="SPARING_REQUEST_DEADLINE_MS",
        default=30_000,
        ge=1,
        description="The time in milliseconds after which a request other than an upload is answered 503; "
        "a query that has begun goes on, and the same key fetches its answer.",
    )
    drain_notice_ms: _Number = Field(
        validation_alias="SPARING_DRAIN_NOTICE_MS",
        default=3000,
        ge=0,
        description="The time in milliseconds after SIGTERM in which connections are accepted and refused with 503, "
        "so that a load balancer notices.",
    )
    drain_ms: _Number = Field(
        validation_alias="SPARING_DRAIN_MS",
        default=20_000,
        ge=1,
        description="The time in milliseconds after that in which accepted requests have to be answered.",
    )
    statement_timeout_ms: _Number = Field(
        validation_alias="SPARING_STATEMENT_TIMEOUT_MS",
        default=300_000,
        ge=1,
        description="The longest that Postgres works on one statement, in milliseconds; "
        "the copying of a whole upload is one statement.",
    )
    lock_timeout_ms: _Number = Field(
        validation_alias="SPARING_LOCK_TIMEOUT_MS",
        default=10_000,
        ge=1,
        description="The longest that a statement waits for a lock of another replica, in milliseconds.",
    )
    idle_transaction_timeout_ms: _Number = Field(
        validation_alias="SPARING_IDLE_TRANSACTION_TIMEOUT_MS",
        default=60_000,
        ge=1,
        description="The time in milliseconds after which Postgres takes the locks of a replica that is silent "
        "in a transaction.",
    )
    tcp_timeout_ms: _Number = Field(
        validation_alias="SPARING_TCP_TIMEOUT_MS",
        default=10_000,
        ge=1,
        description="The longest that either end of a connection to Postgres waits for an acknowledgement, "
        "in milliseconds.",
    )
    redis_timeout_ms: _Number = Field(
        validation_alias="SPARING_REDIS_TIMEOUT_MS",
        default=50,
        ge=1,
        description="The longest that Redis may take, in milliseconds; after that it is left out for a second.",
    )
    rate_limit: _Number = Field(
        validation_alias="SPARING_RATE_LIMIT",
        default=0,
        ge=0,
        le=_RATE_MAX,
        description="The requests per second of each principal, over all replicas; 0 is no limit.",
    )
    rate_burst: _Number = Field(
        validation_alias="SPARING_RATE_BURST",
        default=50,
        ge=1,
        description="The requests of one principal that may come at once under that limit.",
    )
    metrics_port: _Number | None = Field(
        validation_alias="SPARING_METRICS_PORT",
        default=None,
        ge=0,
        le=_PORT_MAX,
        description="The port of /metrics; empty serves none, 0 takes a free one.",
    )
    metrics_host: str = Field(
        validation_alias="SPARING_METRICS_HOST",
        default="127.0.0.1",
        description="The address of /metrics, which asks for no key.",
    )

    def __init__(self, environ: Mapping[str, str]) -> None:
        given = {variable: text for variable in VARIABLES if (text := environ.get(variable))}
        super().__init__(_build_sources=((InitSettingsSource(type(self), init_kwargs=given),), {}))

    @classmethod
    def of(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Self:
        """Read `environ` and nothing else; `home` from the command line wins. Raises SettingsError."""
        try:
            return cls(environ if home is None else {**environ, "SPARING_HOME": str(home.absolute())})
        except ValidationError as error:
            refusal = _refusal(error.errors(include_url=False)[0])
        raise SettingsError(refusal)  # outside of the handler: the error of pydantic holds the text that was refused


# Variable to declaration, in the order of the document.
VARIABLES: Final[Mapping[str, FieldInfo]] = {
    str(field.validation_alias): field for field in Settings.model_fields.values()
}


def _refusal(error: ErrorDetails) -> str:
    variable = str(error["loc"][0])
    if error["type"] == "value_error":
        return f"{variable} {error['ctx']['error']}"
    bounds = VARIABLES[variable].metadata
    kind = "a positive whole number" if any(getattr(bound, "ge", 0) == 1 for bound in bounds) else "a whole number"
    most = "".join(f" of at most {bound.le}" for bound in bounds if hasattr(bound, "le"))
    return f"{variable} must be {kind}{most}, got {error['input']!r}"
