"""One replica of the service: its wiring, its life cycle, and one facade for each audience."""

from collections.abc import Callable, Collection
from datetime import datetime

from service.core.noise import Entropy
from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.cache import Cache, NoCache
from service.ledger.ports.identity import IdentityProvider
from service.ledger.ports.row_reader import RowReader
from service.ledger.ports.shards import NO_SHARDS, ShardBackend
from service.ledger.ports.store import Store
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.ledger.ports.witness import Witness
from service.maintenance.amend import Amender
from service.maintenance.price_tables import PriceTables
from service.maintenance.start_check import StartChecks
from service.query.division import shards_for
from service.workflows.analyst import Analysts
from service.workflows.auditor import Auditors
from service.workflows.clock import PlausibleClock
from service.workflows.curator import Curators
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
from service.writer.registry import DatasetRegistry
from service.writer.replication.exchange import NO_EXCHANGE, ReplicaExchange
from service.writer.replication.ownership import Ownership
from service.writer.rollback.guard import RollbackGuard
from service.writer.shards.divided import DividedShards
from service.writer.threads import WriterThread


class Replica:
    """The entry point of the API and the command line: `analysts`, `curators`, `individuals`, `auditors`, `principals`.

    Thread-safe. Callers are already authenticated; `close` lets every dataset's writer finish.
    """

    shard_backend: ShardBackend = NO_SHARDS

    def __init__(
        self,
        *,
        store: Store,
        witness: Witness,
        pepper: Pepper,
        entropy: Entropy,
        clock: Callable[[], datetime],
        telemetry: Telemetry = NULL_TELEMETRY,
        cache: Cache | None = None,
        admission: Admission | None = None,
    ) -> None:
        """Wire the parts; datasets are loaded when first asked for. `cache` is shared with the other replicas."""
        clock = PlausibleClock(clock)
        self.admission = admission or Admission()
        self.limiter, self.transfers = self.admission.limiter, Transfers(MEMORY_BYTES_MAX)
        self.ownership: Ownership | None = None  # every process works on every dataset
        self.provider_sign_ins: ProviderSignIns | None = None  # browsers sign in by keys alone
        self._exchange = NO_EXCHANGE if cache is None else ReplicaExchange(cache)
        self._store, self._entropy, self._telemetry = store, entropy, telemetry
        self._pepper, self._clock = pepper, clock
        self._amender: Amender | None = None
        self.registry = DatasetRegistry(store=store, witness=witness, opening=self._open_writer)
        self.readiness = Readiness(store=store, registry=self.registry, clock=clock)
        self.principals = Principals(store=store, pepper=pepper, clock=clock)
        self.sign_ins = SignIns(store=store, principals=self.principals, pepper=pepper, clock=clock)
        self.parameter_storage = ParameterStorage(self.registry.guard)
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
        )
        self.overview = Overview(store=store, registry=self.registry, clock=clock, cache=cache or NoCache())
        self.individuals = Individuals(registry=self.registry, exchange=self._exchange, askers=self.principals.askers)
        self.auditors = Auditors(registry=self.registry)

    def close(self) -> None:
        """Refuse new requests, finish the waiting ones, and stop. The store must outlive this call."""
        self._submitter.close()
        self.curators.files.close()
        self.registry.close()
        self._exchange.close()

    def share(self, ownership: Ownership) -> None:
        """Work from now on only on datasets that this process owns. To be called before the first request."""
        self.ownership, self.registry.admits = ownership, ownership.admits
        ownership.watch(self._let_go)

    def admit_by(self, provider: IdentityProvider, rules: ClaimRules) -> None:
        """Let browsers sign in by an identity provider too. To be called before the first request."""
        self.principals.has_provider = True
        self.provider_sign_ins = ProviderSignIns(
            provider, rules, store=self._store, principals=self.principals, pepper=self._pepper, clock=self._clock
        )

    def read_with(self, reader: RowReader) -> None:
        """Read uploads from now on with `reader`, and not in this process. To be called before the first request."""
        self.curators.reader = reader

    def divide(self, backend: ShardBackend, shards_max: int) -> None:
        """Divide large datasets over so many shards at most. To be called before the first request."""
        self.shard_backend = self.readiness.shard_backend = backend
        self.registry.shards_for = lambda record: shards_for(record.capacity, shards_max=shards_max)

    def leave(self) -> None:
        """Let other processes take over the datasets; accepted requests are still finished. Safe in signal handlers."""
        if self.ownership is not None:
            self.ownership.leave()

    def check_ledgers(self) -> None:
        """Check, from now on, the end of a dataset's ledger in the background whenever its writer is opened."""
        self.registry.attach(StartChecks(self._store))

    def amend_ledgers(self) -> None:
        """Amend the ledger, from now on, after each erasure and for unfinished ones whenever a writer is opened."""
        self._amender = Amender()
        self.registry.attach(self._amender)

    def prepare_prices(self) -> None:
        """Make the prices of Laplace noise, from now on, in the background whenever a dataset's writer is opened."""
        self.registry.attach(PriceTables())

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
        if self._amender is not None:
            self._amender.ask(record, self.registry.writer(record))

    def _claims(self, dataset_id: int) -> bool:
        return self.ownership is None or self.ownership.is_here(self.ownership.claim(dataset_id))

    def _let_go(self, dataset_ids: Collection[int]) -> None:
        for writer in self.registry.let_go(dataset_ids):
            self._exchange.unfollow(writer)

    def _open_shards(self, record: DatasetRecord) -> DividedShards | None:
        count = self.registry.shards_for(record)
        return None if count == 1 else DividedShards(self.shard_backend.open(record, count))

    def _open_writer(self, record: DatasetRecord, guard: RollbackGuard) -> WriterThread:
        writer = WriterThread(
            record=record,
            guard=guard,
            entropy=self._entropy,
            telemetry=self._telemetry,
            exchange=self._exchange,
            shards_opened=self._open_shards(record),
            when_free=None if self.admission.scheduler is None else self.admission.scheduler.when_free,
        )
        self._exchange.follow(record.genesis, writer)
        self._exchange.open()  # not earlier: a command that opens no dataset need not listen
        return writer
