"""Serving: the premises, the application on top of them, and uvicorn around it."""

import importlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn

from service.premises import premises
from service.settings import Settings
from service.workflows.house import House

_DRAIN_S: Final = 20


def serve(settings: Settings, *, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM, then drain. `ready` is called with the URL once connections are taken.

    Raises OSError when the address is taken.
    """
    end_on_signals()
    preload()
    with _bound(host, port) as listener, premises(settings) as opened:
        _server(settings, opened.house, lambda: ready(_url(listener))).run(sockets=[listener])


@contextmanager
def serving(settings: Settings, *, host: str, port: int) -> Iterator[tuple[str, House]]:
    """Serve from another thread for the length of the block: (URL, house). Raises OSError when the address is taken."""
    end_on_signals()
    preload()
    started = threading.Event()
    with _bound(host, port) as listener, premises(settings) as opened:
        server = _server(settings, opened.house, started.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="uvicorn")
        thread.start()
        try:
            started.wait()
            yield _url(listener), opened.house
        finally:
            server.should_exit = True
            thread.join()


def preload() -> None:
    """Load the web framework while Postgres starts: neither needs the other."""
    threading.Thread(target=importlib.import_module, args=["service.api.app"], daemon=True).start()


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT leave through every `with` of the way in."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)


def _server(settings: Settings, house: House, ready: Callable[[], None]) -> "_Server":
    from service.api.app import create_app  # noqa: PLC0415 - see `preload`

    config = uvicorn.Config(
        create_app(house, settings),
        log_level="warning",
        access_log=False,  # paths hold the keys of individuals
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    return _Server(config, ready)


def _end(_number: int, _frame: FrameType | None) -> None:
    """End once: uvicorn drains first, then raises the signal that it caught again."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


class _Server(uvicorn.Server):
    """Uvicorn, saying when it takes connections."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then tell."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening address, taken before anything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
