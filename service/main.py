"""Serving: the premises, the application on top of them, and uvicorn around it."""

import gc
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from service.door import ENDING, bound, end_on_signals, ignore_signals, url_of
from service.metrics import PrometheusTelemetry, metrics_served
from service.premises import premises
from service.settings import Settings
from service.workflows.telemetry import SILENT, Telemetry

if TYPE_CHECKING:
    from service.api.life import Life
    from service.workflows.house import House


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    measured: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. `ready` is called with the URL once connections are taken.

    If metrics are served, `measured` is called with their URL after that. Raises OSError when an address is taken.
    """
    end_on_signals()
    with bound(host, port) as listener:
        serve_on(listener, settings, ready=ready, measured=measured)


def serve_on(
    listener: socket.socket, settings: Settings, *, ready: Callable[[str], None], measured: Callable[[str], None]
) -> None:
    """The same behind a socket that is bound already; whoever calls has said `end_on_signals`."""
    gc.disable()  # until `tell`: of what a start makes, nearly all is there to stay
    with ExitStack() as stack:
        telemetry, metrics_url = stack.enter_context(_telemetry(settings))
        opened = stack.enter_context(premises(settings, telemetry))
        if isinstance(telemetry, PrometheusTelemetry):
            telemetry.watch(waiting=opened.house.waiting, fenced=opened.house.fenced)
        if settings.preload:
            threading.Thread(target=opened.house.preload, name="preload", daemon=True).start()

        def tell() -> None:
            collect_rarely()
            ready(url_of(listener))
            if metrics_url is not None:
                measured(metrics_url)
            # By now the datasets are loading, mostly in Postgres; later an upload or an answer in Arrow would wait.
            threading.Thread(target=_import_reader, name="imports").start()

        server = _server(settings, opened.house, tell, telemetry)
        server.listen_to_signals()
        server.run(sockets=[listener])
        ignore_signals()  # the rest of the way out is short, and is better gone to its end


def collect_rarely() -> None:
    """Let the garbage collector look at what comes from now on, and only after ten thousand new objects.

    What is there now is modules and what they have made; looking through it takes longer than a query. And a query in
    its line is hundreds of objects, none of them garbage: with as many queries at once as there are connections, the
    collector would look at them all again and again after every few hundred.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def _import_reader() -> None:
    from service.workflows.uploads import import_reader  # noqa: PLC0415 - imported by now, but not with this module

    import_reader()


@contextmanager
def serving(settings: Settings, *, host: str, port: int) -> Iterator[tuple[str, "House"]]:
    """Serve from another thread for the length of the block: (URL, house). Raises OSError when the address is taken."""
    end_on_signals()
    started = threading.Event()
    with bound(host, port) as listener, premises(settings) as opened:
        server = _server(settings, opened.house, started.set, SILENT)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="uvicorn")
        thread.start()
        try:
            started.wait()
            yield url_of(listener), opened.house
        finally:
            server.should_exit = True
            thread.join()


class GracefulServer(uvicorn.Server):
    """Uvicorn, saying when it takes connections and going in good order.

    SIGTERM: refuse what is new for `notice_s`, then close the door and let what is in the house finish. SIGINT, or any
    second signal: close the door at once. Any signal after that: wait for nobody.
    """

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None], life: "Life", notice_s: float) -> None:
        super().__init__(config)
        self._ready, self._life, self._notice_s = ready, life, notice_s
        self._leave_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then tell."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()

    def listen_to_signals(self) -> None:
        """From now on: until uvicorn does so too, an exception in the middle of making a loop would leave a mess."""
        for number in ENDING:
            signal.signal(number, self.handle_exit)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Begin to leave, or hurry."""
        if self.should_exit:
            self.force_exit = True
        elif self._life.draining or sig == signal.SIGINT:
            self.should_exit = True
        self._life.drain()
        self._leave_at = self._leave_at or time.monotonic() + self._notice_s

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether the notice is over."""
        self.should_exit = self.should_exit or (self._leave_at is not None and time.monotonic() >= self._leave_at)
        return await super().on_tick(counter)


def _server(settings: Settings, house: "House", ready: Callable[[], None], telemetry: Telemetry) -> GracefulServer:
    # Half of all imports, and meanwhile the datasets are loaded.
    from service.api.app import Edge, create_app  # noqa: PLC0415
    from service.api.life import Life  # noqa: PLC0415
    from service.api.slots import Slots  # noqa: PLC0415

    life = Life()
    slots = Slots(length_ns=settings.release_slot_ms * 1_000_000) if settings.release_slot_ms else None
    edge = Edge(slots=slots, deadline_s=settings.request_deadline_ms / 1000, life=life, telemetry=telemetry)
    config = uvicorn.Config(
        create_app(house, settings, edge),
        log_level="warning",
        access_log=False,  # paths hold the keys of individuals
        proxy_headers=False,  # who asks is told by the key, not by an address
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=-(-settings.drain_ms // 1000),
    )
    return GracefulServer(config, ready=ready, life=life, notice_s=settings.drain_notice_ms / 1000)


@contextmanager
def _telemetry(settings: Settings) -> Iterator[tuple[Telemetry, str | None]]:
    """Where the counts go, and the URL at which they are served, if they are."""
    if settings.metrics_port is None:
        yield SILENT, None
        return
    telemetry = PrometheusTelemetry()
    with metrics_served(telemetry, host=settings.metrics_host, port=settings.metrics_port) as url:
        yield telemetry, url
