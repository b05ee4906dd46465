"""Serving: the premises, the application on top of them, and uvicorn around it."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from service.api.app import create_app
from service.premises import premises
from service.settings import Settings
from service.workflows.house import House

_DRAIN_S: Final = 20


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    opened: Callable[[House], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then drain. `ready` is called with the URL once connections are taken.

    `opened` is called with the house before that. Raises OSError when the address is taken.
    """
    with _bound(host, port) as listener, premises(settings) as open_premises:
        if opened is not None:
            opened(open_premises.house)
        config = uvicorn.Config(
            create_app(open_premises.house, settings),
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        _Server(config, lambda: ready(_url(listener))).run(sockets=[listener])


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
