"""The address and the key of a client, from its arguments or the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from sparing._constants import ENV_API_KEY, ENV_URL
from sparing._version import __version__

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One service, and the key to use it with."""

    url: httpx.URL
    headers: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None, environ: Mapping[str, str] | None) -> "Connection":
        """Raises ValueError where no address or no key is given, or one that cannot be sent."""
        environ = os.environ if environ is None else environ  # no default argument: help() would print it, keys and all
        url = httpx.URL(_given("base_url", base_url, environ, ENV_URL))
        key = _checked_key(_given("api_key", api_key, environ, ENV_API_KEY))
        headers = {"Authorization": f"Bearer {key}", "User-Agent": f"sparing-client/{__version__}"}
        return cls(url=url, headers=headers)

    @property
    def trusts_environment(self) -> bool:
        """Whether proxies of the environment are used; a proxy cannot reach this machine."""
        return self.url.host not in _LOOPBACK


def _given(name: str, value: str | None, environ: Mapping[str, str], variable: str) -> str:
    found = environ.get(variable, "") if value is None else value
    if not found.strip():
        raise ValueError(f"give {name}, or set {variable}")
    return found.strip()


def _checked_key(key: str) -> str:
    # Checked here because the HTTP library would quote a key that it cannot send in its error.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("api_key must be printable ASCII without spaces")
    return key
