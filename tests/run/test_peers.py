"""A host that sign-ins go to, and that cannot be reached, is one line with the setting that names it."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from service.run import peers
from service.run.peers import tell_of_peers, unreached
from service.settings.settings import Settings
from tests.logged import lines_of

PROVIDER = {
    "SPARING_OIDC_CLIENT_ID": "sparing",
    "SPARING_OIDC_ORIGIN": "https://sparing.example",
    "SPARING_OIDC_ROLES": '{"staff": {"role": "curator"}}',
}
ISSUER = "the host of SPARING_OIDC_ISSUER cannot be reached: {}; until it can, nobody can sign in by it, and keys go on"


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """(a port that takes connections, one that takes none)."""
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_server(("127.0.0.1", 0)) as gone:
        taken, free = there.getsockname()[1], gone.getsockname()[1]
        gone.close()
        yield taken, free


def stated(issuer: str) -> Settings:
    """The settings of a provider there."""
    return Settings.of({**PROVIDER, "SPARING_OIDC_ISSUER": issuer})


def test_a_host_that_takes_no_connection_is_a_line_with_its_setting(ports: tuple[int, int]) -> None:
    """Without a part of its URL."""
    there, gone = (f"http://127.0.0.1:{port}/realm" for port in ports)
    assert not list(unreached(stated(there)))
    assert list(unreached(stated(gone))) == [ISSUER.format("Connection refused")]
    assert not list(unreached(Settings.of({})))


@pytest.mark.parametrize("host", ["nowhere.invalid", f"{'a' * 64}.invalid"])
def test_a_name_without_an_address_is_told(host: str) -> None:
    """Also one that can be no name."""
    (line,) = unreached(stated(f"https://{host}/realm"))
    assert line.startswith("the host of SPARING_OIDC_ISSUER cannot be reached: ")
    assert "realm" not in line


def test_a_name_that_is_looked_up_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's library waits for its servers as long as it is told elsewhere."""
    answers = threading.Event()

    def look_up(*_: object, **__: object) -> list[Any]:
        answers.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(peers, "TRIED_S", 0.05)
    try:
        assert list(unreached(stated("https://slow.example"))) == [ISSUER.format("it does not answer in time")]
    finally:
        answers.set()


def test_a_start_goes_on_while_the_host_is_tried(ports: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    """In a thread that keeps no process from ending; without such a host there is none."""
    trial = tell_of_peers(stated(f"http://127.0.0.1:{ports[1]}"))
    assert trial is not None
    assert trial.daemon
    trial.join()
    assert lines_of(caplog, "sparing.start") == [ISSUER.format("Connection refused")]
    assert tell_of_peers(Settings.of({})) is None
