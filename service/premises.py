"""The premises of a house: which adapter stands behind which port, opened in one order and closed in the other."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from service.settings import Settings
from service.store.cache.redis import RedisShelf
from service.store.cache.sealed import SealedCache
from service.store.embedded import HomeInUseError, Servers, attach_servers, start_servers
from service.store.embedded.home import open_home, write_private
from service.store.entropy import system_entropy
from service.store.postgres.migrate import migrate
from service.store.postgres.store import PostgresStore
from service.store.witness.file import FileWitness
from service.store.witness.redis import RedisWitness
from service.store.witness.several import SeveralWitnesses
from service.workflows.caching import Cache
from service.workflows.house import House
from service.workflows.limiting import Limiter, Rate
from service.workflows.ports import Witness
from service.workflows.secrets import Pepper
from service.workflows.telemetry import SILENT, Telemetry

_PEPPER_FILE: Final = "pepper"
_START_WAIT_S: Final = 30
_START_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """An open house and where its servers are."""

    house: House
    store: PostgresStore
    witness: Witness
    servers: Servers


@contextmanager
def servers_of(settings: Settings) -> Iterator[Servers]:
    """The servers of the home: those that somebody runs there already, or our own until the end of the block."""
    with _found_or_started(settings) as servers:
        yield servers


def _found_or_started(settings: Settings) -> Servers:
    """Attach or start; when another process is half-way through starting them, wait until it is through."""
    deadline = time.monotonic() + _START_WAIT_S
    while True:
        running = attach_servers(settings.home, settings.database_url, settings.redis_url)
        if running is not None:
            return running
        try:
            return start_servers(settings.home, settings.database_url, settings.redis_url)
        except HomeInUseError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_START_POLL_S)


@contextmanager
def premises(settings: Settings, telemetry: Telemetry = SILENT) -> Iterator[Premises]:
    """Servers, migrations, store, witness and house, opened in this order and closed in the other."""
    with ExitStack() as opened:
        servers = opened.enter_context(servers_of(settings))
        migrate(servers.database_url, folder=settings.migrations)
        store = opened.enter_context(closing(_store(settings, servers)))
        store.refuse_unsafe()
        pepper = Pepper(pepper_of(settings))
        second = opened.enter_context(closing(RedisWitness(servers.redis_url, pepper.witness_seal)))
        witness = SeveralWitnesses(FileWitness(settings.witness), [second])
        shelf = RedisShelf(servers.redis_url, timeout_s=settings.redis_timeout_ms / 1000)
        cache = opened.enter_context(closing(SealedCache(shelf, pepper.cache_key())))
        house = House(
            store=store,
            witness=witness,
            pepper=pepper,
            entropy=system_entropy,
            clock=now,
            telemetry=telemetry,
            cache=cache,
            limiter=_limiter(settings, cache),
        )
        opened.enter_context(closing(house))
        house.check_witnesses()
        yield Premises(house=house, store=store, witness=witness, servers=servers)


def _limiter(settings: Settings, cache: Cache) -> Limiter | None:
    """None when there is no limit: then no request asks anybody."""
    if settings.rate_limit == 0:
        return None
    return Limiter(Rate(per_s=settings.rate_limit, burst=settings.rate_burst), cache)


def _store(settings: Settings, servers: Servers) -> PostgresStore:
    return PostgresStore(
        servers.database_url,
        connections_max=settings.connections_max,
        statement_timeout_ms=settings.statement_timeout_ms,
        lock_timeout_ms=settings.lock_timeout_ms,
        idle_timeout_ms=settings.idle_transaction_timeout_ms,
        tcp_timeout_ms=settings.tcp_timeout_ms,
    )


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
