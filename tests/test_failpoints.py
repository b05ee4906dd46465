"""Points on the way: off they do nothing, on they do what was asked, and each stands in exactly one place."""

import ast
import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from service import failpoints
from service.cli.app import app
from service.failpoints import POINTS, POINTS_BESIDE, ChaosRefused, PlantedFault, arm, armed, disarm, reach, watch
from tests.architecture.source import modules

LOOPBACK = "127.0.0.1"


@pytest.fixture(autouse=True)
def peace() -> Iterator[None]:
    """No drill outlives its test."""
    yield
    disarm()


def test_each_point_stands_in_one_place() -> None:
    """A point that is never reached would make its drill a success; one in two places would blur what it shows."""
    reached = [
        node.args[0].value
        for module in modules("service")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "reach" and isinstance(node.args[0], ast.Constant)
    ]
    passed_on = [
        node.args[-1].value
        for module in modules("service/api")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "_send_now"
        and isinstance(node.args[-1], ast.Constant)
    ]
    assert sorted(map(str, reached + passed_on)) == sorted((*POINTS, *POINTS_BESIDE))


def test_the_core_has_none() -> None:
    """The core is pure: its points are reached outside of it."""
    assert not [module.path for module in modules("service/core") if "failpoints" in module.text]


@pytest.mark.parametrize("environ", [{}, {"CHAOS": "0"}, {"CHAOS_AT": "sent:kill"}, {"CHAOS": "1"}])
def test_nothing_is_armed_unless_it_is_asked_for(environ: dict[str, str]) -> None:
    """Both variables are needed; without a drill every point is passed."""
    arm(environ, host=LOOPBACK)
    assert not armed()
    for point in POINTS:
        reach(point)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_no_drill_where_others_could_connect(host: str) -> None:
    """Only a loopback address."""
    with pytest.raises(ChaosRefused, match="loopback"):
        arm({"CHAOS": "1", "CHAOS_AT": "sent:raise"}, host=host)
    assert not armed()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_a_loopback_address_will_do(host: str) -> None:
    """It may be of either family, or its usual name."""
    arm({"CHAOS": "1", "CHAOS_AT": "sent:raise"}, host=host)
    assert armed()


@pytest.mark.parametrize("text", ["send:kill", "sent", "sent:kil", "sent:kill:0", "sent:kill:x", "sent:kill:-1"])
def test_a_misspelt_drill_is_refused(text: str) -> None:
    """A drill that never happens would be taken for one that passed."""
    with pytest.raises(ChaosRefused, match="CHAOS_AT"):
        arm({"CHAOS": "1", "CHAOS_AT": text}, host=LOOPBACK)


def test_serve_refuses_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is started."""
    monkeypatch.setenv("CHAOS", "1")
    with pytest.raises(SystemExit) as end:
        app(["serve", "--host", "0.0.0.0", "--port", "0"])
    assert end.value.code == 1
    assert capsys.readouterr().err == "sparing: CHAOS=1 is for drills on a loopback address, not on 0.0.0.0\n"


def test_the_drill_waits_for_its_arrival() -> None:
    """It happens at the arrival that was named, once."""
    arm({"CHAOS": "1", "CHAOS_AT": "summed:raise:3, sent:raise"}, host=LOOPBACK)
    reach("summed")
    reach("charges")
    reach("summed")
    with pytest.raises(PlantedFault):
        reach("summed")
    reach("summed")
    with pytest.raises(PlantedFault):
        reach("sent")


def test_hanging_is_sleeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a fixed time."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    arm({"CHAOS": "1", "CHAOS_AT": "sent:hang"}, host=LOOPBACK)
    reach("sent")
    assert slept == [failpoints.HANG_S]


@pytest.mark.parametrize(("action", "number"), [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)])
def test_killing_and_stopping_are_the_real_signals(action: str, number: int) -> None:
    """A child that passes the point is dead, or stands still, before it takes another step."""
    child = os.fork()
    if child == 0:
        arm({"CHAOS": "1", "CHAOS_AT": f"sent:{action}"}, host=LOOPBACK)
        reach("sent")
        os._exit(0)
    _, status = os.waitpid(child, os.WUNTRACED)
    if action == "stop":
        assert os.WIFSTOPPED(status)
        assert os.WSTOPSIG(status) == number
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


class PeerConnection:
    """A connection as far as a drill is concerned."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def fileno(self) -> int:
        if self.end.fileno() < 0:
            raise OSError("closed")
        return self.end.fileno()


def test_dropping_cuts_what_is_watched() -> None:
    """Connections opened while armed end for both sides; one that is closed already does no harm."""
    ours, theirs = socket.socketpair()
    closed, other = socket.socketpair()
    with ours, theirs, closed, other:
        wires = [PeerConnection(ours), PeerConnection(closed)]
        watch(wires[0])
        arm({"CHAOS": "1", "CHAOS_AT": "sent:drop:2"}, host=LOOPBACK)
        for wire in wires:
            watch(wire)
        closed.close()
        reach("sent")
        theirs.sendall(b"still there")
        reach("sent")
        assert theirs.recv(1) == b""
