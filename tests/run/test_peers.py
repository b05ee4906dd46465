"""A host that alarms or sign-ins go to, and that cannot be reached, is one line with the setting that names it."""

import socket
from collections.abc import Iterator

import pytest

from service.run.peers import tell_of_peers, unreached
from service.settings.settings import Settings
from tests.logged import lines_of

SECRET = "a secret of thirty-two characters"
PROVIDER = {
    "SPARING_OIDC_CLIENT_ID": "sparing",
    "SPARING_OIDC_ORIGIN": "https://sparing.example",
    "SPARING_OIDC_ROLES": '{"staff": {"role": "curator"}}',
}
ALARM = "the host of SPARING_ALARM_URL cannot be reached: {}; until it can, alarms wait for their next try"
ISSUER = "the host of SPARING_OIDC_ISSUER cannot be reached: {}; until it can, nobody can sign in by it, and keys go on"


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """(a port that takes connections, one that takes none)."""
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_server(("127.0.0.1", 0)) as gone:
        taken, free = there.getsockname()[1], gone.getsockname()[1]
        gone.close()
        yield taken, free


def stated(alarm: str, issuer: str) -> Settings:
    """The settings of both."""
    environ = {"SPARING_ALARM_SECRET": SECRET, "SPARING_ALARM_URL": alarm, **PROVIDER, "SPARING_OIDC_ISSUER": issuer}
    return Settings.of(environ)


def test_each_host_that_takes_no_connection_is_a_line_with_its_setting(ports: tuple[int, int]) -> None:
    """Without a part of its URL, whose path may hold a token."""
    there, gone = (f"http://127.0.0.1:{port}" for port in ports)
    refused = "Connection refused"
    assert list(unreached(stated(f"{there}/token", f"{there}/realm"))) == []
    assert list(unreached(stated(f"{gone}/token", f"{there}/realm"))) == [ALARM.format(refused)]
    assert list(unreached(stated(f"{there}/token", f"{gone}/realm"))) == [ISSUER.format(refused)]
    assert list(unreached(Settings.of({}))) == []


def test_a_name_without_an_address_is_told(ports: tuple[int, int]) -> None:
    """Also one that can be no name."""
    there = f"http://127.0.0.1:{ports[0]}"
    for host in ("nowhere.invalid", f"{'a' * 64}.invalid"):
        (line,) = unreached(stated(f"https://{host}/token", there))
        assert line.startswith("the host of SPARING_ALARM_URL cannot be reached: ")
        assert "token" not in line


def test_a_start_goes_on_while_the_hosts_are_tried(ports: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    """In a thread that keeps no process from ending; without such a host there is none."""
    gone = f"http://127.0.0.1:{ports[1]}"
    trial = tell_of_peers(stated(gone, gone))
    assert trial is not None
    assert trial.daemon
    trial.join()
    told = lines_of(caplog, "sparing.start")
    assert told == [ALARM.format("Connection refused"), ISSUER.format("Connection refused")]
    assert tell_of_peers(Settings.of({})) is None
