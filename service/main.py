"""The composition root: which adapter stands behind which port, and how the process lives and ends."""

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import uvicorn

from service.api.app import create_app
from service.settings import Settings
from service.store.embedded import HomeInUseError, Servers, attach_servers, start_servers
from service.store.embedded.home import open_home, write_private
from service.store.entropy import system_entropy
from service.store.postgres.migrate import migrate
from service.store.postgres.store import PostgresStore
from service.workflows.house import House
from service.workflows.secrets import Pepper

_PEPPER_FILE: Final = "pepper"
_DRAIN_S: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """An open house and where its servers are."""

    house: House
    store: PostgresStore
    servers: Servers


@contextmanager
def servers_of(settings: Settings) -> Iterator[Servers]:
    """The servers of the home: those that somebody runs there already, or our own until the end of the block."""
    running = attach_servers(settings.home, settings.database_url, settings.redis_url)
    with running or start_servers(settings.home, settings.database_url, settings.redis_url) as servers:
        yield servers


@contextmanager
def premises(settings: Settings) -> Iterator[Premises]:
    """Servers, migrations, store and house, opened in this order and closed in the other."""
    with servers_of(settings) as servers:
        migrate(servers.database_url, folder=settings.migrations)
        store = PostgresStore(servers.database_url, connections_max=settings.connections_max)
        try:
            store.refuse_unsafe()
            house = House(store=store, pepper=Pepper(pepper_of(settings)), entropy=system_entropy, clock=now)
            try:
                yield Premises(house=house, store=store, servers=servers)
            finally:
                house.close()
        finally:
            store.close()


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


def pepper_of(settings: Settings) -> bytes:
    """The pepper of the environment, or the home's own, made on first use and never again."""
    if settings.pepper is not None:
        return settings.pepper
    path = open_home(settings.home).path / _PEPPER_FILE
    if not path.exists():
        write_private(path, secrets.token_hex(32) + "\n")
    return bytes.fromhex(path.read_text().strip())


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


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


__all__ = ["HomeInUseError", "Premises", "migrate", "premises", "serve", "servers_of"]
