"""The proxy of an address, as the environment names it."""

import httpx
import pytest

from sparing import Client
from sparing._proxies import proxy_of


@pytest.mark.parametrize(
    ("address", "excepted", "is_used"),
    [
        ("https://sparing.test", "", True),
        ("https://sparing.test", "localhost,fd07:b51a:cc66:f0::/64,[::1]", True),
        ("https://sparing.test", "other.test,sparing.test", False),
        ("https://a.sparing.test", ".sparing.test", False),
        ("https://sparing.test:8443", "sparing.test:8443", False),
        ("https://sparing.test", "*", False),
        ("https://127.0.0.1", "", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://[fd07::1]", "fd07::/64", False),
        ("https://[fd07::1]", "[fd07::1]", False),
        ("https://[fd08::1]:8443", "fd07::/64", True),
    ],
)
def test_a_proxy_is_used_but_for_what_is_excepted(
    monkeypatch: pytest.MonkeyPatch, address: str, excepted: str, is_used: bool
) -> None:
    """This machine always is; other hosts by name, domain or network."""
    monkeypatch.setenv("https_proxy", "proxy.test:3128")
    monkeypatch.setenv("no_proxy", excepted)
    proxy = proxy_of(httpx.URL(address))
    assert (None if proxy is None else str(proxy.url)) == ("http://proxy.test:3128" if is_used else None)


def test_a_proxy_of_all_schemes_is_one_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used if the scheme has none of its own."""
    monkeypatch.setenv("all_proxy", "http://proxy.test:1")
    monkeypatch.setenv("http_proxy", "http://proxy.test:2")
    found = [proxy_of(httpx.URL(f"{scheme}://sparing.test")) for scheme in ("http", "https")]
    assert [None if each is None else each.url.port for each in found] == [2, 1]


@pytest.mark.parametrize("named", ["ftp://name:secret@proxy.test", "http://name:secret@[::1"])
def test_a_proxy_without_an_address_is_refused_without_being_quoted(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """It may hold a password."""
    monkeypatch.setenv("https_proxy", named)
    with pytest.raises(ValueError, match="the environment's proxy for https://") as refusal:
        Client(base_url="https://sparing.test", api_key="k", environ={})
    assert "secret" not in str(refusal.value)
