"""The client itself: the sources of address and key, and that the key is never shown."""

import copy
import logging
import pickle
import pydoc
from pathlib import Path
from typing import Any

import httpx
import pytest

import sparing
from sparing import APIConnectionError, Client
from sparing._cli import main
from tests.logged import records_of


def test_address_and_key_come_from_the_environment(script: Any) -> None:
    """Arguments take precedence, as in other SDKs."""
    script.steps = [httpx.Response(200, json=[])] * 2
    environ = {"SPARING_URL": "https://env.test/base/", "SPARING_API_KEY": "from-env\n"}
    transport = httpx.MockTransport(script)

    with Client(environ=environ, transport=transport) as client:
        client.allowances.list()
    with Client(environ=environ, transport=transport, base_url="https://arg.test", api_key="from-arg") as client:
        client.allowances.list()

    assert [str(request.url) for request in script.requests] == [
        "https://env.test/base/v1/allowances",
        "https://arg.test/v1/allowances",
    ]
    assert [request.headers["Authorization"] for request in script.requests] == ["Bearer from-env", "Bearer from-arg"]


@pytest.mark.parametrize("shown", [Client, sparing.AsyncClient, main], ids=lambda each: each.__name__)
def test_help_prints_no_environment_variable(shown: object) -> None:
    """A key in the environment would stand in each notebook that shows the help."""
    text = pydoc.render_doc(shown)
    assert "environ: " in text
    assert "environ({" not in text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "SPARING_URL"),
        ({"base_url": "https://sparing.test"}, "SPARING_API_KEY"),
        ({"base_url": "https://sparing.test", "api_key": " "}, "SPARING_API_KEY"),
        ({"base_url": "https://sparing.test", "api_key": "k", "max_retries": -1}, "max_retries"),
    ],
)
def test_a_missing_address_or_key_is_named(given: dict[str, Any], complaint: str) -> None:
    """The error comes at once, not with the first request."""
    with pytest.raises(ValueError, match=complaint):
        Client(**given, environ={})


@pytest.mark.parametrize("key", ["sec ret", "sec\nret", "sécret", "sec\x00ret"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_quoted(key: str) -> None:
    """The HTTP library would quote it in its own error, and errors end up in logs."""
    with pytest.raises(ValueError, match="printable ASCII") as refusal:
        Client(base_url="https://sparing.test", api_key=key, environ={})

    assert "ret" not in str(refusal.value)


def test_the_key_shows_nowhere(client: Client, script: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in repr, nor in an error, nor in the log."""
    script.steps = [httpx.ConnectError("refused")] * 5

    with caplog.at_level(logging.DEBUG), pytest.raises(sparing.APIConnectionError) as failure:
        client.queries.ask(dataset="d", sigma=1)

    assert len(records_of(caplog, "sparing")) == 4
    assert repr(client).removeprefix("Async") == "Client(base_url='https://sparing.test', api_key='********')"
    assert not [text for text in (repr(client), repr(failure.value), caplog.text) if "secret" in text]


def test_a_new_key_is_masked_in_repr(client: Client, script: Any) -> None:
    """Notebooks print the last value of a cell."""
    script.steps = [httpx.Response(201, json={"id": "1", "role": "analyst", "name": "Ann", "key": "sparing_2_hidden"})]

    made = client.principals.create(role="analyst", name="Ann")

    assert made.key == "sparing_2_hidden"
    assert "hidden" not in repr(made)


@pytest.mark.parametrize("is_closed_by_another", [False, True])
def test_a_closed_client_is_closed(script: Any, is_closed_by_another: bool) -> None:
    """The `with` statement closes the connections, or a client that shares them; closing twice is harmless."""
    given: Any = {"base_url": "https://x.test", "api_key": "k", "environ": {}}
    with Client(**given, transport=httpx.MockTransport(script)) as client:
        if is_closed_by_another:
            client.with_options(timeout=1).close()
            with pytest.raises(APIConnectionError, match="this client is closed"):
                client.allowances.list()
    client.close()

    with pytest.raises(APIConnectionError, match="this client is closed"):
        client.allowances.list()


def test_the_public_names_are_there() -> None:
    """`__all__` is the public surface: all other names may change."""
    assert [name for name in sparing.__all__ if not hasattr(sparing, name)] == []
    assert Client.__module__ == "sparing"


def timeouts(request: httpx.Request) -> dict[str, float]:
    """The limits of one try, in seconds."""
    found: dict[str, float] = request.extensions["timeout"]
    return found


def test_a_client_with_other_options_shares_the_connections(client: Client, script: Any) -> None:
    """Its own limits and retries, and those of the first client as before."""
    script.steps = [httpx.Response(200, json=[]), httpx.Response(503), httpx.Response(200, json=[])]
    quick = client.with_options(timeout=2, max_retries=0)
    client.allowances.list()
    with pytest.raises(sparing.UnavailableError):
        quick.allowances.list()
    quick.with_options(max_retries=1, timeout=7.5).allowances.list()

    assert [timeouts(request) for request in script.requests] == [
        {"connect": 5.0, "read": 60.0, "write": 60.0, "pool": 60.0},
        {"connect": 2, "read": 2, "write": 2, "pool": 2},
        {"connect": 5.0, "read": 7.5, "write": 7.5, "pool": 7.5},
    ]
    assert script.slept_s == []
    assert {request.headers["Authorization"] for request in script.requests} == {"Bearer sparing_1_secret"}


def test_options_that_are_not_given_are_kept(client: Client, script: Any) -> None:
    """One may be changed without the other, and of a client of a kind of one's own too."""
    script.steps = [httpx.Response(503)] * 9
    with pytest.raises(sparing.UnavailableError):
        client.with_options(timeout=3).with_options(max_retries=1).allowances.list()
    assert [timeouts(request)["read"] for request in script.requests] == [3, 3]
    assert len(script.slept_s) == 1

    class Own(Client):
        """Has no more than Client."""

    with Own(base_url="https://sparing.test", api_key="k", environ={}) as own:
        assert type(own.with_options(timeout=1)) is Own


@pytest.mark.parametrize(
    ("given", "kind", "complaint"),
    [
        ({"timeout": 0}, ValueError, "timeout must be a positive number of seconds, not 0"),
        ({"timeout": -1.5}, ValueError, "timeout must be a positive"),
        ({"timeout": float("nan")}, ValueError, "timeout must be a positive"),
        ({"timeout": float("inf")}, ValueError, "timeout must be a positive"),
        ({"timeout": "5"}, TypeError, "timeout must be a number of seconds, not '5'"),
        ({"timeout": True}, TypeError, "timeout must be a number of seconds"),
        ({"max_retries": -1}, ValueError, "max_retries must be 0 or more, not -1"),
        ({"max_retries": 1.5}, TypeError, "max_retries must be a whole number, not 1.5"),
        ({"max_retries": False}, TypeError, "max_retries must be a whole number"),
    ],
)
def test_a_wrong_option_names_itself(
    given: dict[str, Any], kind: type[Exception], complaint: str, client: Client, client_kind: Any
) -> None:
    """At once, of a new client and of one with other options."""
    with pytest.raises(kind, match=complaint):
        client.with_options(**given)
    with pytest.raises(kind, match=complaint):
        client_kind(base_url="https://sparing.test", api_key="k", environ={}, **given)


GIVEN: dict[str, Any] = {"base_url": "https://x.test", "api_key": "k", "environ": {}}


@pytest.mark.parametrize("kind", [Client, sparing.AsyncClient])
@pytest.mark.parametrize("made", [lambda client: client, lambda client: client.dataset("d").query().count()])
def test_a_client_is_not_pickled(kind: Any, made: Any) -> None:
    """Its key would be in the bytes; what asks through it says the same."""
    client = kind(**GIVEN, transport=httpx.MockTransport(lambda _: httpx.Response(200)))
    with pytest.raises(TypeError, match="make one in the process that needs it"):
        pickle.dumps(made(client))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_shares_the_connections(copied: Any, script: Any) -> None:
    """Closing either closes both."""
    script.steps = [httpx.Response(200, json=[])]
    client = Client(**GIVEN, transport=httpx.MockTransport(script))
    with copied({"client": client})["client"] as other:
        assert list(other.allowances.list()) == []
    with pytest.raises(APIConnectionError, match="this client is closed"):
        client.allowances.list()


def test_certificates_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment's are read when a client is made."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ValueError, match="SSL_CERT_FILE or SSL_CERT_DIR"):
        Client(**GIVEN)
