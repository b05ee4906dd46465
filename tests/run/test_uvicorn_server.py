"""How a server leaves: what each signal means, and in which order."""

import signal
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from service.api.middleware.release_slots import ReleaseSlots
from service.api.middleware.request_context import DrainState
from service.ledger.ports.telemetry import NULL_TELEMETRY
from service.run.uvicorn_server import GracefulServer, server_of
from service.settings.settings import Settings
from tests.factories import open_replica


class Clock:
    """A monotonic clock that stands."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The server's time."""
    made = Clock()
    monkeypatch.setattr("service.run.uvicorn_server.time", made)
    return made


@pytest.fixture
def server() -> GracefulServer:
    """A server that was not started, with three seconds of notice."""
    return GracefulServer(uvicorn.Config(lambda: None), ready=lambda: None, drain_state=DrainState(), notice_s=3)


async def leaving(server: GracefulServer) -> bool:
    """Tell whether the next tick ends the main loop."""
    return await server.on_tick(1)


async def test_sigterm_gives_notice_and_then_leaves(server: GracefulServer, clock: Clock) -> None:
    """New requests are refused at once; the listener closes when the notice is over, and waits for what is inside."""
    assert not await leaving(server)
    server.handle_exit(signal.SIGTERM, None)
    assert server._drain_state.draining
    assert not await leaving(server)
    clock.now += 2.9
    assert not await leaving(server)
    clock.now += 0.2
    assert await leaving(server)
    assert not server.force_exit


async def test_a_second_signal_hastens_and_a_third_ends_at_once(server: GracefulServer, clock: Clock) -> None:
    """Each more urgent than the one before."""
    server.handle_exit(signal.SIGTERM, None)
    server.handle_exit(signal.SIGTERM, None)
    assert await leaving(server)
    assert not server.force_exit
    server.handle_exit(signal.SIGTERM, None)
    assert server.force_exit


async def test_ctrl_c_closes_the_door_at_once(server: GracefulServer, clock: Clock) -> None:
    """A person waits; what is inside is finished all the same."""
    server.handle_exit(signal.SIGINT, None)
    assert server._drain_state.draining
    assert await leaving(server)
    assert not server.force_exit


def layers(**environment: str) -> dict[Any, Any]:
    """The layers of the application that these settings give, with their options."""
    settings = Settings.of(environment, home=Path("/nowhere"))
    with open_replica() as replica:
        server = server_of(replica, settings, ready=lambda: None, telemetry=NULL_TELEMETRY)
        assert server.config.timeout_graceful_shutdown == -(-settings.drain_ms // 1000)
        return {layer.cls: layer.kwargs for layer in server.config.app.user_middleware}  # type: ignore[union-attr]


def test_slots_are_on_by_default_and_can_be_switched_off() -> None:
    """Ten milliseconds; 0 leaves the layer out altogether."""
    assert layers()[ReleaseSlots]["slots"].length_ns == 2_000_000
    assert layers(SPARING_RELEASE_SLOT_MS="25")[ReleaseSlots]["slots"].length_ns == 25_000_000
    assert ReleaseSlots not in layers(SPARING_RELEASE_SLOT_MS="0", SPARING_DRAIN_MS="1500")
