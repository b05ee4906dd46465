"""The two stores of a service: those whose URLs it was given, and embedded servers in place of the others."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from service.embedded import postgres, valkey
from service.embedded.home import PRIVATE_ROOT
from service.embedded.keeper import Keeper

START_TIMEOUT_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Servers:
    """The addresses of the database and the cache; a context manager that stops the servers that were started here."""

    database_url: str = field(repr=False)  # for libpq; may hold a password
    redis_url: str = field(repr=False)  # for redis-py; may hold a password
    stop: Callable[[], None] = field(repr=False, compare=False)  # and wait for their end; a second call does nothing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def open_servers(
    home: Path,
    database_url: str | None,
    redis_url: str | None,
    *,
    private_root: Path = PRIVATE_ROOT,
    meanwhile: Callable[[], None] = lambda: None,
    start_timeout_s: float = START_TIMEOUT_S,
    failed: Callable[[str], None] | None = None,
) -> Servers:
    """Open an embedded server in `home` for each URL that is None: another process's, or one that is started here.

    Servers that are started here start at the same time. `meanwhile` is called while they do, if there is one. With
    `failed` the servers are kept running (`Keeper`). `failed` is called from another thread, with the reason, when a
    server does not stay alive.

    Raises EmbeddedServerError when a server cannot be started, or when another process starts it and it is not ready
    within `start_timeout_s`. Call this in the main thread, early, since the servers end with that thread.
    """
    with ExitStack() as started:
        database = postgres.EmbeddedPostgres(home, private_root=private_root) if database_url is None else None
        cache = valkey.EmbeddedValkey(home, private_root=private_root) if redis_url is None else None
        opened = [server for server in (database, cache) if server is not None]
        for server in opened:
            server.open(start_timeout_s=start_timeout_s)
            started.callback(server.stop)
        if any(server.is_ours for server in opened):
            meanwhile()
        if database is not None:
            database_url = database.ready()
            if failed is not None:
                _keep(Keeper(database, database_url, name="keep-postgres", failed=failed), started)
        if cache is not None:
            redis_url = cache.ready()
            if failed is not None:
                _keep(Keeper(cache, redis_url, name="keep-valkey", failed=failed), started)
        return Servers(database_url=database_url or "", redis_url=redis_url or "", stop=started.pop_all().close)


def _keep(keeper: Keeper, started: ExitStack) -> None:
    started.callback(keeper.close)  # before the thread begins: a signal may end a start at any instruction
    keeper.open()
