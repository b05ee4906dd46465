"""One replica of the service: its wiring, its life cycle, and one facade for each audience."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from service.bounds import PARAMETERS_BYTES_MAX
from service.core.noise import Entropy
from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.cache import Cache, NoCache
from service.ledger.ports.identity import IdentityProvider
from service.ledger.ports.row_reader import ReaderHere, RowReader
from service.ledger.ports.shards import NO_SHARDS, ShardBackend
from service.ledger.ports.store import Store
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.ledger.ports.witness import Witness
from service.maintenance.amend import Amender
from service.maintenance.summary_points import SummaryPoints
from service.workflows.analyst import Analysts
from service.workflows.auditor import Auditors
from service.workflows.clock import PlausibleClock
from service.workflows.curator import Curators
from service.workflows.datasets import VECTOR_BYTES_MAX
from service.workflows.individual import Individuals
from service.workflows.overview import Overview
from service.workflows.principals import Principals
from service.workflows.provider_sign_ins import ClaimRules, ProviderSignIns
from service.workflows.queries.parameter_storage import ParameterStorage
from service.workflows.queries.submit import QuerySubmitter
from service.workflows.readiness import Readiness
from service.workflows.sign_ins import SignIns
from service.writer.admission.admission import MEMORY_BYTES_MAX, Admission
from service.writer.admission.transfers import Transfers
from service.writer.registry import BackgroundService, DatasetRegistry
from service.writer.replication.exchange import NO_EXCHANGE, ReplicaExchange
from service.writer.replication.ownership import Ownership
from service.writer.rollback.guard import RollbackGuard
from service.writer.shards.divided import DividedShards
from service.writer.threads import WriterThread


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOptions:
    """The optional parts of a replica.

    By default it works on every dataset, undivided, and does nothing in the background. A `cache` is shared with the
    other replicas, and `reader` reads the uploads. With an `ownership` the replica works only on datasets that this
    process owns. With a `provider` browsers can sign in by that too. `amender` amends ledgers after erasures, and
    `points` keeps points of the summaries. Both, and the services of `background`, work on each dataset whose writer is
    opened, and are closed with the replica.
    """

    telemetry: Telemetry = NULL_TELEMETRY
    cache: Cache | None = None
    admission: Admission = field(default_factory=Admission)
    transfers: Transfers = field(default_factory=partial(Transfers, MEMORY_BYTES_MAX))
    ownership: Ownership | None = None
    provider: tuple[IdentityProvider, ClaimRules] | None = None
    reader: RowReader = field(default_factory=ReaderHere)
    vector_bytes_max: int = VECTOR_BYTES_MAX
    parameters_bytes_max: int = PARAMETERS_BYTES_MAX
    shard_backend: ShardBackend = NO_SHARDS
    shards_for: Callable[[DatasetRecord], int] = lambda _: 1
    amender: Amender | None = None
    points: SummaryPoints | None = None
    background: tuple[BackgroundService, ...] = ()


class Replica:
    """The entry point of the API and the command line: `analysts`, `curators`, `individuals`, `auditors`, `principals`.

    Thread-safe. Callers are already authenticated; `close` lets every dataset's writer finish.
    """

    def __init__(
        self,
        *,
        store: Store,
        witness: Witness,
        pepper: Pepper,
        entropy: Entropy,
        clock: Callable[[], datetime],
        options: ReplicaOptions | None = None,
    ) -> None:
        """Wire the parts; datasets are loaded when first asked for."""
        clock, options = PlausibleClock(clock), options or ReplicaOptions()
        self.admission, self.transfers, self.ownership = options.admission, options.transfers, options.ownership
        self.limiter = self.admission.limiter
        self._exchange = NO_EXCHANGE if options.cache is None else ReplicaExchange(options.cache)
        self._entropy, self._options = entropy, options
        self.registry = DatasetRegistry(
            store=store,
            witness=witness,
            opening=self._open_writer,
            admits=(lambda _: True) if self.ownership is None else self.ownership.admits,
            shards_for=options.shards_for,
            background=[*options.background, *(each for each in (options.amender, options.points) if each is not None)],
        )
        self.readiness = Readiness(store=store, registry=self.registry, clock=clock, backend=options.shard_backend)
        has_provider = options.provider is not None
        self.principals = Principals(store=store, pepper=pepper, clock=clock, has_provider=has_provider)
        self.sign_ins = SignIns(store=store, principals=self.principals, pepper=pepper, clock=clock)
        self.provider_sign_ins = (
            None
            if options.provider is None
            else ProviderSignIns(*options.provider, store=store, principals=self.principals, pepper=pepper, clock=clock)
        )
        self.parameter_storage = ParameterStorage(self.registry.guard, options.parameters_bytes_max)
        self._submitter = QuerySubmitter(
            registry=self.registry, admission=self.admission, clock=clock, parameter_storage=self.parameter_storage
        )
        self.analysts = Analysts(
            store=store, registry=self.registry, submitter=self._submitter, admission=self.admission
        )
        self.curators = Curators(
            store=store,
            registry=self.registry,
            exchange=self._exchange,
            pepper=pepper,
            principals=self.principals,
            amend=self._amend,
            reader=options.reader,
            vector_bytes_max=options.vector_bytes_max,
        )
        self.overview = Overview(
            store=store, registry=self.registry, clock=clock, cache=options.cache or NoCache(), points=options.points
        )
        self.individuals = Individuals(registry=self.registry, exchange=self._exchange, askers=self.principals.askers)
        self.auditors = Auditors(registry=self.registry)
        if self.ownership is not None:
            self.ownership.watch(self._let_go)

    def close(self) -> None:
        """Refuse new requests, finish the waiting ones, and stop. The store must outlive this call."""
        self._submitter.close()
        self.curators.files.close()
        self.registry.close()
        self._exchange.close()

    def leave(self) -> None:
        """Let other processes take over the datasets; accepted requests are still finished. Safe in signal handlers."""
        if self.ownership is not None:
            self.ownership.leave()

    def waiting(self) -> int:
        """The number of submissions and acts waiting in all writers together."""
        return sum(writer.length for writer in self.registry.opened())

    def fenced(self) -> int:
        """The number of datasets known to be closed, by their witness or for damage; does not check again."""
        return len(self.registry.closed())

    def opened(self) -> int:
        """The number of datasets in this process's memory, or being loaded."""
        return len(self.registry.opened())

    def preload(self) -> None:
        """Load every dataset that this process may work on, one after the other."""
        self.registry.preload(self._claims)

    def _amend(self, record: DatasetRecord) -> None:
        if self._options.amender is not None:
            self._options.amender.ask(record, self.registry.writer(record))

    def _claims(self, dataset_id: int) -> bool:
        return self.ownership is None or self.ownership.is_here(self.ownership.claim(dataset_id))

    def _let_go(self, dataset_ids: Collection[int]) -> None:
        for writer in self.registry.let_go(dataset_ids):
            self._exchange.unfollow(writer)

    def _open_shards(self, record: DatasetRecord) -> DividedShards | None:
        count = self.registry.shards_for(record)
        return None if count == 1 else DividedShards(self._options.shard_backend.open(record, count))

    def _open_writer(self, record: DatasetRecord, guard: RollbackGuard) -> WriterThread:
        writer = WriterThread(
            record=record,
            guard=guard,
            entropy=self._entropy,
            telemetry=self._options.telemetry,
            exchange=self._exchange,
            shards_opened=self._open_shards(record),
            when_free=None if self.admission.scheduler is None else self.admission.scheduler.when_free,
        )
        self._exchange.follow(record.genesis, writer)
        self._exchange.open()  # not earlier: a command that opens no dataset need not listen
        return writer
