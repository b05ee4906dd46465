"""The address and the key of a client, from its arguments or the environment."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from sparing._constants import ENV_API_KEY, ENV_URL
from sparing._proxies import proxy_of
from sparing._replies import GZIP
from sparing._version import __version__

_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One service, and the key to use it with."""

    url: httpx.URL
    headers: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None, environ: Mapping[str, str] | None) -> "Connection":
        """Make a connection. Raises ValueError if the address or the key is missing or cannot be sent."""
        environ = os.environ if environ is None else environ  # no default argument: help() would print it, keys and all
        url = _address(_given("base_url", base_url, environ, ENV_URL))
        key = _checked_key(_given("api_key", api_key, environ, ENV_API_KEY))
        headers = {"Authorization": f"Bearer {key}", "User-Agent": f"sparing-client/{__version__}"}
        return cls(url=url, headers={**headers, "Accept-Encoding": GZIP})

    def options(self, transport: object) -> dict[str, Any]:
        """The options of a client of httpx, asynchronous or not. No cookies are kept: the service only needs the key.

        Raises ValueError if the environment names a proxy or certificates that cannot be used.
        """
        return {
            "base_url": self.url,
            "headers": self.headers,
            "transport": transport,
            "trust_env": False,  # httpx refuses lists of NO_PROXY with networks
            "proxy": proxy_of(self.url) if transport is None else None,
            "verify": _certificates() if transport is None else False,
            "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),
        }


def _certificates() -> ssl.SSLContext:
    """The TLS certificates that the environment names; by default those of httpx."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        raise ValueError(f"SSL_CERT_FILE or SSL_CERT_DIR names no certificates: {error}") from None


def _given(name: str, value: str | None, environ: Mapping[str, str], variable: str) -> str:
    found = environ.get(variable, "") if value is None else value
    if not found.strip():
        raise ValueError(f"give {name}, or set {variable}")
    return found.strip()


def _address(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
        url.host.encode("idna")  # as a name is looked up
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ValueError(f"base_url is no address: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host or (url.port or 0) > _PORT_MAX:
        raise ValueError(f"base_url must be an address that begins with http:// or https://, not {text!r}")
    return url


def _checked_key(key: str) -> str:
    # Checked here because the HTTP library would quote a key that it cannot send in its error.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("api_key must be printable ASCII without spaces")
    return key
