"""Settings: one frozen object, made once from an environment mapping by the code that starts the process.

Each field of `Settings` declares one setting: its variable, type, bounds, default and description. A test compares the
table in docs/operations.md with these declarations.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import InitSettingsSource, SettingsConfigDict

from service.settings.bound_settings import BoundSettings, Milliseconds, Number
from service.settings.oidc_settings import OidcIssuer, OidcOrigin, OidcRoles
from service.settings.url_settings import DatabaseUrl, HostAndPort, PlainUrl, RedisUrl

_PEPPER_BYTES: Final = 32
_PORT_MAX: Final = 65535
_RATE_MAX: Final = 1_000_000
_WORKERS_MAX: Final = 256
_SHARDS: Final = "The most processes over which one dataset is divided: one for each 2^20 of its capacity, at most 64."


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


def _switch(text: str) -> bool:
    if text not in {"0", "1"}:
        raise ValueError(f"must be 0 or 1, got {text!r}")
    return text == "1"


def _log_style(text: str) -> str:
    if text not in {"json", "console"}:
        raise ValueError(f"must be json or console, got {text!r}")
    return text


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise ValueError("must be a path, and the account after its ~ must exist") from None


_Switch = Annotated[bool, BeforeValidator(_switch)]
_Pepper = Annotated[bytes, BeforeValidator(_pepper)]
_LogStyle = Annotated[Literal["json", "console"], BeforeValidator(_log_style)]
_Home = Annotated[Path, AfterValidator(_expanded)]
_Folder = Annotated[Path, AfterValidator(Path.absolute)]


class Settings(BoundSettings):
    """The settings of a process, with those of `BoundSettings`. Secrets do not show in the repr."""

    model_config = SettingsConfigDict(frozen=True, hide_input_in_errors=True, validate_default=False)

    home: _Home = Field(
        validation_alias="SPARING_HOME",
        default=Path("~/.local/share/sparing"),
        validate_default=True,
        description="The folder of the pepper, the embedded servers and their data.",
    )
    database_url: DatabaseUrl | None = Field(
        validation_alias="DATABASE_URL",
        default=None,
        repr=False,
        description="The URL of a Postgres; empty runs an embedded one in the home.",
    )
    redis_url: RedisUrl | None = Field(
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
    upload_bytes_max: Number = Field(
        validation_alias="SPARING_UPLOAD_BYTES_MAX",
        default=2**30,
        ge=1,
        description="The largest upload accepted; of a body in gzip, unpacked bytes count too.",
    )
    preload: _Switch = Field(
        validation_alias="SPARING_PRELOAD",
        default=True,
        description="1 loads every dataset at the start; 0 loads each at its first request.",
    )
    workers: Number = Field(
        validation_alias="SPARING_WORKERS",
        default=1,
        ge=1,
        le=_WORKERS_MAX,
        description="The number of processes that serve behind the one address.",
    )
    shards: Number = Field(validation_alias="SPARING_SHARDS", default=1, ge=1, le=64, description=_SHARDS)
    ray_address: HostAndPort | None = Field(
        validation_alias="SPARING_RAY_ADDRESS",
        default=None,
        description="The host:port of a running Ray cluster that holds the shards.",
    )
    forward_url: PlainUrl = Field(
        validation_alias="SPARING_FORWARD_URL",
        default="http://127.0.0.1",
        description="The private address at which other processes reach this one; "
        "{hostname} is replaced by the machine's name, and without a port a free one is taken.",
    )
    start_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_START_TIMEOUT_MS",
        default=30_000,
        ge=0,
        description="How long `serve` and `migrate` wait for a database, and every command for embedded servers "
        "that another process is starting.",
    )
    connections_max: Number = Field(
        validation_alias="SPARING_CONNECTIONS_MAX",
        default=10,
        ge=1,
        description="The most connections to Postgres of one process, besides two for uploads and erasures, "
        "two for changes of principals and alarms, and two for look-ups of keys and probes.",
    )
    release_slot_ms: Milliseconds = Field(
        validation_alias="SPARING_RELEASE_SLOT_MS",
        default=2,
        ge=0,
        description="The length of a time slot, in which queries begin and answers leave; 0 delays nothing.",
    )
    memory_bytes_max: Number = Field(
        validation_alias="SPARING_MEMORY_BYTES_MAX",
        default=2**32,
        ge=1,
        description="The most memory that requests may take together: half of it admitted queries, by their public "
        "costs, and half uploads and exports.",
    )
    vector_bytes_max: Number = Field(
        validation_alias="SPARING_VECTOR_BYTES_MAX",
        default=2**32,
        ge=0,
        description="The most bytes of a dataset's vectors in memory, by capacity; a registration beyond is refused.",
    )
    request_deadline_ms: Milliseconds = Field(
        validation_alias="SPARING_REQUEST_DEADLINE_MS",
        default=30_000,
        ge=1,
        description="The time after which a request other than an upload is answered 503.",
    )
    http_connections_max: Number | None = Field(
        validation_alias="SPARING_HTTP_CONNECTIONS_MAX",
        default=None,
        ge=1,
        description="The most connections of clients to one process; empty is 10,000.",
    )
    head_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_HEAD_TIMEOUT_MS",
        default=10_000,
        ge=1,
        description="The time within which the headers of a request have to come.",
    )
    idle_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_IDLE_TIMEOUT_MS",
        default=5_000,
        ge=1,
        description="The time after which a connection without a request is closed; "
        "processes that forward requests to each other keep theirs for 3,000.",
    )
    body_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_BODY_TIMEOUT_MS",
        default=30_000,
        ge=1,
        description="The time after which a body slower than 500 bytes a second is given up.",
    )
    drain_notice_ms: Milliseconds = Field(
        validation_alias="SPARING_DRAIN_NOTICE_MS",
        default=3000,
        ge=0,
        description="The time after SIGTERM in which connections are accepted and refused with 503.",
    )
    drain_ms: Milliseconds = Field(
        validation_alias="SPARING_DRAIN_MS",
        default=20_000,
        ge=1,
        description="The time after that in which accepted requests have to be answered.",
    )
    statement_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_STATEMENT_TIMEOUT_MS",
        default=300_000,
        ge=1,
        description="The longest that Postgres works on one statement; the copying of a whole upload is one statement.",
    )
    lock_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_LOCK_TIMEOUT_MS",
        default=10_000,
        ge=1,
        description="The longest that a statement waits for a lock of another replica.",
    )
    idle_transaction_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_IDLE_TRANSACTION_TIMEOUT_MS",
        default=60_000,
        ge=1,
        description="The time after which Postgres takes the locks of a replica that is silent in a transaction.",
    )
    tcp_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_TCP_TIMEOUT_MS",
        default=10_000,
        ge=1,
        description="The longest wait for an acknowledgement on a connection to Postgres.",
    )
    redis_timeout_ms: Milliseconds = Field(
        validation_alias="SPARING_REDIS_TIMEOUT_MS",
        default=50,
        ge=1,
        description="The longest that Redis may take; after that it is left out for a second.",
    )
    rate_limit: Number = Field(
        validation_alias="SPARING_RATE_LIMIT",
        default=0,
        ge=0,
        le=_RATE_MAX,
        description="The requests per second of each principal, over all replicas; 0 is no limit.",
    )
    rate_burst: Number = Field(
        validation_alias="SPARING_RATE_BURST",
        default=50,
        ge=1,
        description="The requests of one principal that may come at once under that limit.",
    )
    log: _LogStyle | None = Field(
        validation_alias="SPARING_LOG",
        default=None,
        description="The form of the log on stderr, json or console; empty is console on a terminal, else json.",
    )
    metrics_port: Number | None = Field(
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

    oidc_client_id: str | None = Field(
        validation_alias="SPARING_OIDC_CLIENT_ID",
        default=None,
        description="The name under which the identity provider knows this service.",
    )
    oidc_client_secret: str | None = Field(
        validation_alias="SPARING_OIDC_CLIENT_SECRET",
        default=None,
        repr=False,
        description="The secret that the identity provider gave to this service; empty for a public client.",
    )
    oidc_origin: OidcOrigin | None = Field(
        validation_alias="SPARING_OIDC_ORIGIN",
        default=None,
        description="The address at which browsers reach this service, such as https://sparing.example.org.",
    )
    oidc_roles: OidcRoles | None = Field(
        validation_alias="SPARING_OIDC_ROLES",
        default=None,
        description="A JSON object from values of the role claim to roles; of several that a person has, "
        "the first counts.",
    )
    oidc_role_claim: str = Field(
        validation_alias="SPARING_OIDC_ROLE_CLAIM",
        default="roles",
        description="The claim of the ID token with the role or roles of a person; points lead into objects.",
    )
    oidc_individual_claim: str | None = Field(
        validation_alias="SPARING_OIDC_INDIVIDUAL_CLAIM",
        default=None,
        description="The claim with the key of an individual in the dataset; needed where a role is `individual`.",
    )
    oidc_name_claim: str = Field(
        validation_alias="SPARING_OIDC_NAME_CLAIM",
        default="preferred_username",
        description="The claim with a person's name, as lists and the ledger have it; without one, the subject.",
    )
    oidc_scope: str = Field(
        validation_alias="SPARING_OIDC_SCOPE",
        default="openid profile",
        description="The scopes that are asked for, with spaces between them.",
    )
    oidc_title: str = Field(
        validation_alias="SPARING_OIDC_TITLE",
        default="your organisation",
        description="The provider's name on the sign-in page.",
    )
    oidc_issuer: OidcIssuer | None = Field(
        validation_alias="SPARING_OIDC_ISSUER",
        default=None,
        description="The identity provider's issuer URL; empty leaves sign-in to API keys.",
    )

    def __init__(self, environ: Mapping[str, str]) -> None:
        given = {variable: text for variable in VARIABLES if (text := _text_of(variable, environ))}
        super().__init__(_build_sources=((InitSettingsSource(type(self), init_kwargs=given),), {}))

    @classmethod
    def of(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Self:
        """Read the settings from `environ` alone; `home` from the command line wins. Raises SettingsError."""
        try:
            return cls(environ if home is None else {**environ, "SPARING_HOME": str(home.absolute())})
        except ValidationError as error:
            refusal = _refusal(error.errors(include_url=False)[0])
        raise SettingsError(refusal)  # outside of the handler: the error of pydantic holds the text that was refused


# Variable to declaration, in the order of the document.
VARIABLES: Final = {
    str(Settings.model_fields[name].validation_alias): Settings.model_fields[name]
    for name in (*Settings.__annotations__, *BoundSettings.__annotations__)
}

SECRETS: Final = frozenset(variable for variable, field in VARIABLES.items() if not field.repr)
"""The variables of secrets. A variable with _FILE at its end may instead name a file that holds the value."""


def _text_of(variable: str, environ: Mapping[str, str]) -> str | None:
    """The value of a variable, or the content of the file that is named instead. Raises SettingsError."""
    text, file = environ.get(variable), environ.get(f"{variable}_FILE")
    if not file or variable not in SECRETS:
        return text
    if text:
        raise SettingsError(f"{variable} and {variable}_FILE are both set: set one of them")
    try:
        content = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{variable}_FILE cannot be read: {file}: {reason}") from None
    if not content:
        raise SettingsError(f"{variable}_FILE names a file with nothing in it: {file}")
    return content


def _refusal(error: ErrorDetails) -> str:
    variable = str(error["loc"][0])
    if error["type"] == "value_error":
        return f"{variable} {error['ctx']['error']}"
    bounds = VARIABLES[variable].metadata
    kind = "a positive whole number" if any(getattr(bound, "ge", 0) == 1 for bound in bounds) else "a whole number"
    most = "".join(f" of at most {bound.le}" for bound in bounds if hasattr(bound, "le"))
    return f"{variable} must be {kind}{most}, got {error['input']!r}"
