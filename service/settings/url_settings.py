"""The types of the settings that are URLs. No refusal repeats the text, which may hold a password or a token.

A password may contain a character that divides a URL. Unless it is escaped, the rest of the password would be read as a
host.
"""

from collections.abc import Callable
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

_DATABASE: Final = "postgresql://name:password@host:port/database"
_REDIS: Final = "redis://host:port, rediss://host:port or unix:///path"
_ESCAPED: Final = "an @ in a password is written %40, a / %2F, a ? %3F and a # %23"


def url_of(form: str, is_of_form: Callable[[str], object]) -> AfterValidator:
    """The validator of texts of a form, which a refusal names; a ValueError of the test is a refusal too."""

    def check(text: str) -> str:
        try:
            is_url = is_of_form(text)
        except ValueError:
            is_url = False
        if not is_url:
            raise ValueError(f"must be {form}")
        return text

    return AfterValidator(check)


def _is_of_database(text: str) -> bool:
    parts = urlsplit(text)
    is_url = parts.scheme in {"postgresql", "postgres"} and text.isprintable() and " " not in text
    hosts = parts.netloc.rpartition("@")[2]
    return is_url and ("," in hosts or parts.port != 0) and _is_escaped(text)  # libpq takes several hosts


def _is_of_redis(text: str) -> bool:
    parts = urlsplit(text)
    is_of_host = parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and parts.port != 0
    return is_of_host or (parts.scheme == "unix" and parts.path.startswith("/"))


def _is_escaped(text: str) -> bool:
    """Tell whether no character that divides a URL stands in its password as it is."""
    parts = urlsplit(text)
    return parts.netloc.count("@") <= 1 and not ({"@"} & {*parts.path, *parts.query} or parts.fragment)


def _is_plain(text: str) -> bool:
    parts = urlsplit(text.replace("{hostname}", "hostname"))
    is_plain = parts.scheme == "http" and parts.hostname and not (parts.path or parts.query or parts.username)
    return bool(is_plain) and (parts.port is None or parts.port > 0)


def _is_address(text: str) -> bool:
    parts = urlsplit(f"//{text}")
    return bool(parts.hostname and parts.port and parts.netloc == text and parts.username is None)


DatabaseUrl = Annotated[str, url_of(f"{_DATABASE}; {_ESCAPED}", _is_of_database)]
RedisUrl = Annotated[str, url_of(_REDIS, _is_of_redis), url_of(f"{_REDIS}; {_ESCAPED}", _is_escaped)]
HostAndPort = Annotated[str, url_of("host:port", _is_address)]
PlainUrl = Annotated[str, url_of("http://host or http://host:port", _is_plain)]
