"""The types of the settings that are URLs. No refusal repeats the text, which may hold a password or a token.

A character that divides a URL and stands in a password as it is would make the rest of the password a host.
"""

from typing import Annotated, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator

_DATABASE: Final = "must be postgresql://name:password@host:port/database"
_REDIS: Final = "must be redis://host:port, rediss://host:port or unix:///path"
_ESCAPED: Final = "an @ in a password is written %40, a / %2F, a ? %3F and a # %23"


def _database_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        hosts = parts.netloc.rpartition("@")[2]
        is_url = parts.scheme in {"postgresql", "postgres"} and text.isprintable() and " " not in text
        is_url = is_url and ("," in hosts or parts.port != 0)  # libpq takes several hosts
    except ValueError:
        is_url = False
    if not is_url or not _is_escaped(parts):
        raise ValueError(f"{_DATABASE}; {_ESCAPED}")
    return text


def _redis_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_url = bool(parts.scheme in {"redis", "rediss"} and parts.hostname and parts.port != 0)
        is_url = is_url or (parts.scheme == "unix" and parts.path.startswith("/"))
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError(_REDIS)
    if not _is_escaped(parts):
        raise ValueError(f"{_REDIS}; {_ESCAPED}")
    return text


def _is_escaped(parts: SplitResult) -> bool:
    """Tell whether no character that divides a URL stands in its password as it is."""
    return parts.netloc.count("@") <= 1 and not ({"@"} & {*parts.path, *parts.query} or parts.fragment)


def _plain_url(text: str) -> str:
    try:
        parts = urlsplit(text.replace("{hostname}", "hostname"))
        is_plain = parts.scheme == "http" and parts.hostname and not (parts.path or parts.query or parts.username)
        is_plain = is_plain and (parts.port is None or parts.port > 0)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise ValueError("must be http://host or http://host:port")
    return text


def _host_and_port(text: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        is_address = bool(parts.hostname and parts.port and parts.netloc == text and parts.username is None)
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError("must be host:port")
    return text


DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
RedisUrl = Annotated[str, AfterValidator(_redis_url)]
HostAndPort = Annotated[str, AfterValidator(_host_and_port)]
PlainUrl = Annotated[str, AfterValidator(_plain_url)]
