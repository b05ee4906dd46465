"""The two stores of a service: the ones it was told to use, and embedded ones for those it was not."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from service.embedded import postgres, valkey
from service.embedded.home import PRIVATE_ROOT
from service.embedded.server import EmbeddedServer


@dataclass(frozen=True, kw_only=True, slots=True)
class Servers:
    """Where the database and the cache are; a context manager that stops what was started for it."""

    database_url: str = field(repr=False)  # for libpq; may hold a password
    redis_url: str = field(repr=False)  # for redis-py; may hold a password
    _stop: Callable[[], None] = field(repr=False, compare=False)

    def stop(self) -> None:
        """Stop the embedded servers that were started here, and wait for their end; a second call does nothing."""
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_servers(
    home: Path,
    database_url: str | None,
    redis_url: str | None,
    *,
    private_root: Path = PRIVATE_ROOT,
    meanwhile: Callable[[], None] = lambda: None,
) -> Servers:
    """Start an embedded server in `home` for each URL that is None; all or none.

    They come up beside each other, and beside `meanwhile`, which is called once they are under way. Raises
    HomeInUseError when another process runs one of them and EmbeddedServerError when one cannot be started; call it in
    the main thread, early, since the servers end with it.
    """
    with ExitStack() as started:
        database = _under_way(database_url, postgres.EmbeddedPostgres(home, private_root=private_root), started)
        cache = _under_way(redis_url, valkey.EmbeddedValkey(home, private_root=private_root), started)
        meanwhile()
        return Servers(database_url=database(), redis_url=cache(), _stop=started.pop_all().close)


def attach_servers(home: Path, database_url: str | None, redis_url: str | None) -> Servers | None:
    """Find the embedded servers that another process runs in `home`, for each URL that is None.

    Returns None unless all that are needed run; `stop` of the result leaves them running.
    """
    database_url = postgres.attach(home) if database_url is None else database_url
    redis_url = valkey.attach(home) if redis_url is None else redis_url
    if database_url is None or redis_url is None:
        return None
    return Servers(database_url=database_url, redis_url=redis_url, _stop=lambda: None)


def _under_way(url: str | None, server: EmbeddedServer, started: ExitStack) -> Callable[[], str]:
    """The wait for a server's URL: the one that was given, or that of the embedded server launched in its place."""
    if url is not None:
        return lambda: url
    server.launch()
    started.callback(server.stop)
    return server.ready
