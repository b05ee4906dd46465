"""The adapters of a replica's ports, opened in one order and closed in reverse."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import uuid4

from service.embedded import Servers
from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import ReplicaAddress
from service.ledger.ports.cache import Cache
from service.ledger.ports.identity import IdentityProvider
from service.ledger.ports.row_reader import ReaderHere, RowReader
from service.ledger.ports.shards import NO_SHARDS, ShardBackend
from service.ledger.ports.telemetry import Telemetry
from service.ledger.ports.witness import Witness
from service.maintenance.amend import Amender
from service.maintenance.price_tables import PriceTables
from service.maintenance.start_check import StartChecks
from service.maintenance.summary_points import SummaryPoints
from service.query.cost import Speed
from service.query.division import shards_for
from service.run.home import pepper_of
from service.run.lost_database import refuse_to_begin
from service.run.peers import tell_of_peers
from service.run.speed import speed_of
from service.settings.settings import Settings, SettingsError
from service.store.decoder import DecoderProcess
from service.store.entropy import system_entropy
from service.store.postgres.leases import PostgresLeases
from service.store.postgres.registrations import migrate
from service.store.postgres.store import PostgresStore
from service.store.redis.client import RedisKeyValueStore
from service.store.redis.condition import RedisUnusable, redis_condition
from service.store.redis.sealed import SealedCache
from service.store.witness.combined import CombinedWitness
from service.store.witness.file import FileWitness
from service.store.witness.redis import RedisWitness
from service.workflows.clock import PlausibleClock
from service.workflows.provider_sign_ins import CALLBACK, ClaimRules, Grant
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.admission.admission import Admission, MemoryBound
from service.writer.admission.rate_limit import Limiter, Rate
from service.writer.admission.scheduler import Scheduler, slot_rules
from service.writer.admission.spools import SpoolBounds
from service.writer.admission.transfers import Transfers
from service.writer.replication.ownership import Ownership

wall_clock: Final[Callable[[], datetime]] = partial(datetime.now, UTC)
"""The machine's time, in UTC."""
now: Final = PlausibleClock(wall_clock)
"""The machine's time in UTC, refused where it is implausible; for what is kept and sent."""

log = logging.getLogger("sparing.shards")
start_log = logging.getLogger("sparing.start")

_NS_PER_MS: Final = 1_000_000
_SCHEDULED_PERCENT: Final = 95
"""The percentage of a request's deadline within which the schedule has its response leave; the rest is a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """An open replica, its store and its witness."""

    replica: Replica
    store: PostgresStore
    witness: Witness


@contextmanager
def open_adapters(
    settings: Settings, servers: Servers, telemetry: Telemetry, *, serves: bool = False, forward_url: str | None = None
) -> Iterator[Adapters]:
    """Migrations, store, witness, ownership and replica, opened in this order and closed in reverse order.

    Only a process that `serves` has a schedule, and the speed of its machine measured.
    """
    with ExitStack() as opened:
        migrate(
            servers.database_url,
            wait_s=serves * settings.start_timeout_ms / 1000,
            begins=partial(refuse_to_begin, settings.witness),
        )
        store = opened.enter_context(closing(store_of(settings, servers)))
        store.check_durability()
        store.check_schema()
        pepper = Pepper(pepper_of(settings))
        store.check_pepper(pepper.database_proof)
        second = opened.enter_context(closing(RedisWitness(servers.redis_url, pepper.witness_key())))
        witness = CombinedWitness(FileWitness(settings.witness), [second])
        if serves and settings.redis_url is not None:
            tell_of_cache(settings.redis_url)
        if serves:
            tell_of_peers(settings)
        values = RedisKeyValueStore(servers.redis_url, timeout_s=settings.redis_timeout_ms / 1000)
        cache = opened.enter_context(closing(SealedCache(values, pepper.cache_key())))
        ownership = None if forward_url is None else opened.enter_context(_owning(servers, pepper, forward_url))
        reader: RowReader = ReaderHere()
        if sys.platform == "linux":  # whose kernel limits the memory of a process
            reader = opened.enter_context(closing(DecoderProcess()))
        options = ReplicaOptions(
            telemetry=telemetry,
            cache=cache,
            transfers=Transfers(
                settings.memory_bytes_max // 2,
                SpoolBounds(principal_bytes_max=settings.spool_bytes_max, bytes_max=settings.spool_bytes_total_max),
            ),
            ownership=ownership,
            reader=reader,
            vector_bytes_max=settings.vector_bytes_max,
            parameters_bytes_max=settings.parameters_bytes_max,
        )
        if serves:
            options = replace(
                options,
                admission=_admission(settings, cache, speed_of(settings, store)),
                provider=_provider(settings),
                shard_backend=_shard_backend(settings),
                shards_for=lambda record: shards_for(record.capacity, shards_max=settings.shards),
                amender=Amender(),
                points=SummaryPoints(store, clock=now, telemetry=telemetry),
                background=(StartChecks(store), PriceTables()),
            )
        replica = Replica(
            store=store, witness=witness, pepper=pepper, entropy=system_entropy, clock=wall_clock, options=options
        )
        opened.enter_context(closing(replica))
        if ownership is not None:
            ownership.open()
        replica.readiness.check_witnesses()
        yield Adapters(replica=replica, store=store, witness=witness)


def tell_of_cache(redis_url: str) -> None:
    """Warn of a cache in another place that does not answer; the service goes on without it."""
    try:
        redis_condition(redis_url)
    except RedisUnusable as fault:
        start_log.warning("the cache of REDIS_URL cannot be reached: %s; queries go on without it", fault)


def _shard_backend(settings: Settings) -> ShardBackend:
    """The processes of large datasets, if the settings ask for them.

    With more processes than cores they wait for each other. Raises ShardsUnusable, and SettingsError where nothing
    would be divided over a cluster.
    """
    if settings.ray_address is not None:
        if settings.shards == 1:
            raise SettingsError("SPARING_RAY_ADDRESS needs SPARING_SHARDS of at least 2")
        from sparing_ray.shards import RayShards  # noqa: PLC0415 - few have a cluster

        return RayShards(settings.ray_address)
    if settings.shards == 1:
        return NO_SHARDS
    from service.store.shards import ProcessShards  # noqa: PLC0415 - few have shards

    cores = os.cpu_count() or 1
    if settings.shards > cores:
        log.warning(
            "SPARING_SHARDS is %d, and this machine has %d cores: shards will wait for each other",
            settings.shards,
            cores,
        )
    return ProcessShards()


def _provider(settings: Settings) -> tuple[IdentityProvider, ClaimRules] | None:
    """The organisation's identity provider, if there is one, and what its claims grant."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None or settings.oidc_origin is None:
        return None
    from service.store.openid_connect import ClientRegistration, OpenIdProvider  # noqa: PLC0415 - few have one

    grants = {
        value: Grant(**dict(grant))  # of the same fields
        for value, grant in (settings.oidc_roles or {}).items()
    }
    registration = ClientRegistration(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        redirect_uri=f"{settings.oidc_origin}{CALLBACK}",
        scope=settings.oidc_scope,
    )
    rules = ClaimRules(
        title=settings.oidc_title,
        grants=grants,
        role_claim=settings.oidc_role_claim,
        name_claim=settings.oidc_name_claim,
        individual_claim=settings.oidc_individual_claim,
    )
    return OpenIdProvider(registration, clock=now), rules


@contextmanager
def _owning(servers: Servers, pepper: Pepper, forward_url: str) -> Iterator[Ownership]:
    """The ownership of this process under a new id, released at the end."""
    replica = ReplicaAddress(id=uuid4(), url=forward_url)
    with (
        closing(PostgresLeases(servers.database_url, replica)) as leases,
        closing(Ownership(leases=leases, replica=replica, pepper=pepper)) as ownership,
    ):
        yield ownership


def _admission(settings: Settings, cache: Cache, speed: Speed) -> Admission:
    """The admission: bounds of memory and rate always, and slots where responses are held."""
    memory = MemoryBound(settings.memory_bytes_max // 2)
    scheduler = None
    if settings.release_slot_ms > 0:
        scheduler = Scheduler(
            slot_rules(settings.release_slot_ms * _NS_PER_MS, speed),
            deadline_ns=settings.request_deadline_ms * _NS_PER_MS * _SCHEDULED_PERCENT // 100,
        )
    limiter = None  # then no request asks the cache
    if settings.rate_limit > 0:
        limiter = Limiter(Rate(per_s=settings.rate_limit, burst=settings.rate_burst), cache)
    return Admission(memory=memory, speed=speed, scheduler=scheduler, limiter=limiter)


def store_of(settings: Settings, servers: Servers) -> PostgresStore:
    """The store on the servers' Postgres. It is not checked here."""
    return PostgresStore(
        servers.database_url,
        Pepper(pepper_of(settings)).ledger_key(),
        connections_max=settings.connections_max,
        statement_timeout_ms=settings.statement_timeout_ms,
        lock_timeout_ms=settings.lock_timeout_ms,
        idle_timeout_ms=settings.idle_transaction_timeout_ms,
        tcp_timeout_ms=settings.tcp_timeout_ms,
    )
