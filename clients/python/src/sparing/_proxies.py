"""The proxy that the environment names for an address."""

import contextlib
import ipaddress
import urllib.request
from collections.abc import Iterator
from typing import Final

import httpx

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def proxy_of(url: httpx.URL) -> httpx.Proxy | None:
    """The proxy for an address; None for this machine and for addresses that NO_PROXY excepts.

    Raises ValueError if the proxy's address is not valid; the error does not show the address.
    """
    named = urllib.request.getproxies()
    address = named.get(url.scheme) or named.get("all")
    if not address or url.host in _LOOPBACK or _is_excepted(url, named.get("no", "")):
        return None
    try:
        return httpx.Proxy(address if "://" in address else f"http://{address}")
    except (httpx.InvalidURL, ValueError):
        raise ValueError(
            f"the environment's proxy for {url.scheme}:// has no address that begins with http://, https:// or socks5://"
        ) from None


def _is_excepted(url: httpx.URL, excepted: str) -> bool:
    """Tell whether a list of exceptions has the host: by its name, with or without port, its domain, or its network."""
    if urllib.request.proxy_bypass(url.host if url.port is None else f"{url.host}:{url.port}"):
        return True
    try:
        host = ipaddress.ip_address(url.host)
    except ValueError:
        return False
    return any(host in network for network in _networks(excepted))


def _networks(excepted: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for entry in excepted.split(","):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(entry.strip().strip("[]"), strict=False)
