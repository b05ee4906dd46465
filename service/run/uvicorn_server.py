"""The web server around the application: uvicorn, with a call when it takes connections and a drain at its end."""

import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from service.api.app import HttpOptions, create_app
from service.api.middleware.release_slots import Slots
from service.api.middleware.request_context import DrainState
from service.api.places import PlaceBounds
from service.ledger.ports.telemetry import Telemetry
from service.run.http_bounds import HttpBounds
from service.run.http_protocol import BoundedConfig
from service.run.listening import ENDING
from service.settings.settings import Settings
from service.workflows.replica import Replica


class GracefulServer(uvicorn.Server):
    """Uvicorn with a call when it takes connections, and an orderly end.

    SIGTERM: refuse new requests for `notice_s`, then close the listeners and finish the requests in flight. SIGINT, or
    any second signal: close the listeners at once. Any signal after that: stop without waiting.
    """

    def __init__(
        self, config: uvicorn.Config, *, ready: Callable[[], None], drain_state: DrainState, notice_s: float
    ) -> None:
        super().__init__(config)
        self._ready, self._drain_state, self._notice_s = ready, drain_state, notice_s
        self._leave_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then call `ready`."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()

    def listen_to_signals(self) -> None:
        """Handle signals from now on.

        Before uvicorn does so too, a signal could interrupt the making of its event loop.
        """
        for number in ENDING:
            signal.signal(number, self.handle_exit)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Begin the end at the first signal, and shorten it at each further one."""
        if self.should_exit:
            self.force_exit = True
        elif self._drain_state.draining or sig == signal.SIGINT:
            self.should_exit = True
        self._drain_state.drain()
        self._leave_at = self._leave_at or time.monotonic() + self._notice_s

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second: tell whether the server ends now. Also reports connections that were ended."""
        if isinstance(self.config, BoundedConfig) and counter % 10 == 0:
            self.config.table.report(time.monotonic())
        self.should_exit = self.should_exit or (self._leave_at is not None and time.monotonic() >= self._leave_at)
        return await super().on_tick(counter)


def server_of(
    replica: Replica, settings: Settings, *, ready: Callable[[], None], telemetry: Telemetry
) -> GracefulServer:
    """The server of a replica, not started; `ready` is called when it takes connections."""
    drain_state = DrainState(replica.leave)
    options = HttpOptions(
        slots=Slots(length_ns=settings.release_slot_ms * 1_000_000) if settings.release_slot_ms else None,
        deadline_s=settings.request_deadline_ms / 1000,
        drain_state=drain_state,
        places=PlaceBounds(
            waiting_max=settings.waiting_max,
            queries_waiting_max=settings.queries_waiting_max,
            strangers_max=settings.strangers_max,
            streams_max=settings.streams_max,
        ),
        telemetry=telemetry,
    )
    config = BoundedConfig(
        create_app(replica, upload_bytes_max=settings.upload_bytes_max, options=options),
        bounds=HttpBounds.of(settings),
        telemetry=telemetry,
        log_config=None,  # the root logger has the handler (`service.logs`)
        log_level="warning",
        access_log=False,  # paths hold the keys of individuals
        proxy_headers=False,  # the caller is told by the API key, not by an address
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=-(-settings.drain_ms // 1000),
    )
    return GracefulServer(config, ready=ready, drain_state=drain_state, notice_s=settings.drain_notice_ms / 1000)
