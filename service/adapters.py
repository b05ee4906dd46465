"""Which adapter stands behind which port of a house, opened in one order and closed in the other."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from service.home import pepper_of
from service.settings import Settings
from service.store.cache.redis import RedisShelf
from service.store.cache.sealed import SealedCache
from service.store.embedded import Servers
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
from service.workflows.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """An open house and where its servers are."""

    house: House
    store: PostgresStore
    witness: Witness
    servers: Servers


@contextmanager
def furnished(settings: Settings, servers: Servers, telemetry: Telemetry) -> Iterator[Premises]:
    """Migrations, store, witness and house, opened in this order and closed in the other."""
    with ExitStack() as opened:
        migrate(servers.database_url, folder=settings.migrations)
        store = opened.enter_context(closing(_store(settings, servers)))
        store.refuse_unsafe()
        store.refuse_strange()
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


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)
