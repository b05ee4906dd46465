"""The house: every workflow behind one object, which is all that the api room and the command line know."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import BinaryIO
from uuid import UUID

from service.core.noise import Entropy
from service.core.units import units_down
from service.query.language import Query
from service.workflows.admission.admission import Admission
from service.workflows.catalogue import Counts, dataset_view, public_dataset
from service.workflows.datasets import Registration, register
from service.workflows.erasure import erasing
from service.workflows.maintenance.amender import Amender
from service.workflows.maintenance.start_checks import StartChecks
from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import InvalidRequest, NotFound
from service.workflows.model.rows import DatasetRecord, OwnAccount
from service.workflows.model.views import (
    Allowance,
    BudgetRow,
    BudgetSummary,
    DatasetView,
    LedgerRow,
    MyBudget,
    Page,
    Preview,
    Principal,
    PublicDataset,
    Receipt,
    ReleaseRow,
    StoredAnswer,
    UploadReport,
)
from service.workflows.ports.cache import Cache
from service.workflows.ports.store import Store, Witness
from service.workflows.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.workflows.preloading import preload
from service.workflows.principals import Principals
from service.workflows.queries.answer_lookup import AnswerLookup
from service.workflows.queries.preview import allowances, preview
from service.workflows.queries.releases import releases
from service.workflows.queries.submit import QuerySubmitter, compiled
from service.workflows.readiness import Readiness
from service.workflows.reads import accounts
from service.workflows.reads import ledger as ledger_reads
from service.workflows.reads.act_log import ActLog
from service.workflows.reads.budget_summary import all_accounts, summary
from service.workflows.replication.exchange import NO_EXCHANGE, ReplicaExchange
from service.workflows.replication.ownership import Ownership
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.uploads import placing, read_upload
from service.workflows.writer.batch import stored_answer
from service.workflows.writer.committer import Operation
from service.workflows.writer.low_priority import in_background
from service.workflows.writer.operations import Result, act_beside, next_epoch
from service.workflows.writer.registry import DatasetRegistry
from service.workflows.writer.submission import PendingAnswer
from service.workflows.writer.threads import WriterThread


class Replica:
    """All that can be done, for principals already recognised. Thread-safe; `close` drains every dataset's line."""

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
        """Open the house; datasets are loaded when first asked for.

        `cache` is shared with the other replicas, if there are any.
        """
        self.admission = admission or Admission()
        self.limiter = self.admission.limiter
        self.ownership: Ownership | None = None  # every process works on every dataset
        self._exchange = NO_EXCHANGE if cache is None else ReplicaExchange(cache)
        self._store, self._pepper, self._entropy, self._clock = store, pepper, entropy, clock
        self._telemetry = telemetry
        self._counts = Counts(store)
        self._amender: Amender | None = None
        self.registry = DatasetRegistry(store=store, witness=witness, opening=self._open_writer, admits=self._admits)
        lookup = None if cache is None else AnswerLookup(cache, self._exchange.hints)
        self._submitter = QuerySubmitter(registry=self.registry, admission=self.admission, lookup=lookup, clock=clock)
        principals = Principals(store=store, pepper=pepper, clock=clock)
        self._principals = principals
        self.authenticate = principals.authenticate
        self.remembered = principals.remembered
        self.create_principal = principals.create
        self.list_principals = principals.listed
        self.revoke_principal = principals.revoke
        self.acts = ActLog(self.registry).page
        readiness = Readiness(store=store, registry=self.registry, clock=clock)
        self.ready = readiness.problems
        self.check_witnesses = readiness.check_witnesses

    def close(self) -> None:
        """Take nothing new, finish what waits, and stop. The store must outlive this call."""
        self._submitter.close()
        self.registry.close()
        self._exchange.close()

    def share(self, ownership: Ownership) -> None:
        """From now on work only on datasets that this process owns. To be called before anything is asked."""
        self.ownership = ownership
        ownership.watch(self._let_go)

    def leave(self) -> None:
        """Let other processes take the datasets over; what was accepted is still finished. For signal handlers too."""
        if self.ownership is not None:
            self.ownership.leave()

    def check_ledgers(self) -> None:
        """From now on check the end of a dataset's ledger in the background each time its writer is opened."""
        self.registry.attach(StartChecks(self._store))

    def amend_ledgers(self) -> None:
        """From now on bring erasures to their end in the ledger, when they happen and when a writer is opened."""
        self._amender = Amender()
        self.registry.attach(self._amender)

    def waiting(self) -> int:
        """The number of things that wait in all lines together."""
        return sum(writer.length for writer in self.registry.opened())

    def fenced(self) -> int:
        """The number of datasets that are known to be closed, by their witness or for damage; looks nowhere."""
        return len(self.registry.closed())

    def opened(self) -> int:
        """The number of datasets that are in memory here, or are being loaded."""
        return len(self.registry.opened())

    def preload(self) -> None:
        """Load every dataset that this process may work on, one after the other; the rest is left for who asks."""
        preload(self._store, self.registry, self._claims)

    # Curators

    def register(self, registration: Registration) -> DatasetView:
        """Register a dataset. Raises NameTaken, InvalidRequest."""
        return dataset_view(register(registration, self._store), self._store, self._counts)

    def datasets(self) -> list[DatasetView]:
        """Every dataset, by name."""
        return [dataset_view(record, self._store, self._counts) for record in self._store.datasets()]

    def dataset(self, name: str) -> DatasetView:
        """One dataset. Raises NotFound."""
        return dataset_view(self.registry.record(name), self._store, self._counts)

    def append_rows(self, dataset: str, table: str, content_type: str, source: BinaryIO) -> UploadReport:
        """Append rows, all or nothing. Raises NotFound, InvalidRequest naming rows and columns."""
        record = self.registry.record(dataset)

        def append() -> UploadReport:
            rows = read_upload(record, table, content_type, source)
            return act_beside(self.registry.writer(record), placing(record, table, rows, self._pepper))

        return self._beside(record, append)

    def erase_individual(self, dataset: str, key: str) -> None:
        """Erase a record and the keys to it; the account stays as a tombstone. Raises NotFound."""
        record = self.registry.record(dataset)
        self._beside(record, lambda: act_beside(self.registry.writer(record), erasing(record, key, self._pepper)))
        self._principals.forget_individual(dataset, key)
        if self._amender is not None:
            self._amender.ask(record, self.registry.writer(record))

    def open_epoch(self, dataset: str) -> int:
        """Start the next public epoch, in which nothing released before is reused."""
        return self.registry.writer(self.registry.record(dataset)).act(next_epoch)

    def budgets(self, dataset: str, *, cursor: str | None, limit: int) -> Page[BudgetRow]:
        """The individuals' accounts."""
        record = self.registry.record(dataset)
        return accounts.budgets(record, self.registry.writer(record), self._exchange, cursor=cursor, limit=limit)

    def budget_summary(self, dataset: str) -> BudgetSummary:
        """The budgets' remains, summed up; accounts are copied page by page, while queries are answered."""
        return summary(all_accounts(self.registry.writer(self.registry.record(dataset))))

    def ledger(self, dataset: str, *, cursor: str | None, limit: int) -> Page[LedgerRow]:
        """The queries, newest first."""
        return ledger_reads.ledger(self.registry.guard(self.registry.record(dataset)), cursor=cursor, limit=limit)

    # Analysts

    def submit(self, principal: Principal, dataset: str, key: str, query: Query) -> PendingAnswer:
        """Let a query wait for its turn. Raises NotFound, Busy; the promise fails with all else.

        A query that is not valid, or not any more, is looked for under its key before it is refused.
        """
        return self._submitter.submit(principal, self._visible(principal, dataset), key, query)

    def submit_all(
        self, principal: Principal, dataset: str, queries: Sequence[tuple[str, Query]]
    ) -> list[PendingAnswer]:
        """Let several queries, each under its own key, wait as one unit: they are worked on and committed together.

        A query that is not valid fails its own promise alone. Raises NotFound, and InvalidRequest or Busy for the unit.
        """
        return self._submitter.submit_all(principal, self._visible(principal, dataset), queries)

    def preview(self, principal: Principal, dataset: str, query: Query) -> Preview:
        """Everything public about a query; touches no record and costs nothing. Raises Fenced."""
        record = self._visible(principal, dataset)
        plan = compiled(query, record)
        self.registry.guard(record).refuse_if_closed()
        return preview(plan, record, principal, self._store, self.admission)

    def release(self, principal: Principal, query_id: UUID) -> StoredAnswer:
        """One of the analyst's own releases. Raises NotFound, Fenced, Unavailable."""
        found = self._store.answer_of(principal.id, query_id)
        if found is None:
            raise NotFound
        guard = self.registry.guard(self.registry.record(found.dataset))
        with guard.transaction(lock=False) as transaction:
            head = transaction.head
        guard.confirm_recorded_up_to(found.reply.seq, head)  # it may have been withheld when it was committed
        return stored_answer(found.reply)

    def releases(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[ReleaseRow]:
        """The analyst's own releases, newest first."""
        return releases(self._store, principal, cursor=cursor, limit=limit)

    def allowances(self, principal: Principal) -> list[Allowance]:
        """The analyst's worst-case allowance on each dataset it may ask."""
        return allowances(principal, self._store)

    def visible_datasets(self, principal: Principal) -> list[PublicDataset]:
        """The public part of every dataset the analyst may ask."""
        records = self._store.datasets()
        return [public_dataset(record, self._store) for record in records if principal.dataset in (None, record.name)]

    def visible_dataset(self, principal: Principal, name: str) -> PublicDataset:
        """The public part of one dataset. Raises NotFound."""
        return public_dataset(self._visible(principal, name), self._store)

    # Individuals

    def my_budgets(self, principal: Principal) -> list[MyBudget]:
        """The individual's own account. Raises NotFound once erased."""
        record, key = self._own(principal)
        return [accounts.my_budget(record, key, self.registry.writer(record), self._exchange)]

    def my_receipts(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[Receipt]:
        """The cost of each query to this individual."""
        record, key = self._own(principal)
        return ledger_reads.receipts(record, self.registry.guard(record), key, cursor=cursor, limit=limit)

    def lower_my_limit(
        self, principal: Principal, dataset: str, *, limit_rho: Decimal | None = None, pause: bool = False
    ) -> MyBudget:
        """Lower one's own limit, or pause. Raises InvalidRequest on a raise, NotFound on another's dataset."""
        if (limit_rho is None) != pause:
            raise InvalidRequest.of("limit_rho", "give either limit_rho or pause")
        if limit_rho is None:
            return self._do_mine(principal, dataset, partial(ledger_reads.pausing, paused=True))
        units = units_down(Fraction(limit_rho))
        return self._do_mine(principal, dataset, partial(ledger_reads.lowering, limit_units=units))

    def resume(self, principal: Principal, dataset: str) -> MyBudget:
        """End one's own pause; a limit that was lowered stays so. Raises NotFound on another's dataset."""
        return self._do_mine(principal, dataset, partial(ledger_reads.pausing, paused=False))

    def submits_at_once(self, dataset: str) -> bool:
        """Whether `submit` would touch no database: its registration and its line are at hand."""
        return self.registry.is_at_hand(dataset)

    # Within

    def _visible(self, principal: Principal, name: str) -> DatasetRecord:
        if principal.dataset not in (None, name):
            raise NotFound
        return self.registry.record(name)

    def _own(self, principal: Principal) -> tuple[DatasetRecord, str]:
        if principal.dataset is None or principal.individual is None:
            raise NotFound
        return self.registry.record(principal.dataset), principal.individual

    def _do_mine(self, principal: Principal, dataset: str, act_of: Callable[[str], Operation[OwnAccount]]) -> MyBudget:
        """The act of an individual on the own account, given the key."""
        record, key = self._own(principal)
        if record.name != dataset:
            raise NotFound
        account = self.registry.writer(record).act(act_of(key))
        # Put into words after the line is left; a promise does not follow the limit down.
        return ledger_reads.my_budget_view(
            record, account, ledger_reads.promised_to(record, self.registry.guard(record), key)
        )

    def _admits(self, dataset_id: int) -> bool:
        return self.ownership is None or self.ownership.admits(dataset_id)

    def _claims(self, dataset_id: int) -> bool:
        return self.ownership is None or self.ownership.is_here(self.ownership.claim(dataset_id))

    def _let_go(self, dataset_ids: Collection[int]) -> None:
        for writer in self.registry.let_go(dataset_ids):
            self._exchange.unfollow(writer)

    def _beside(self, record: DatasetRecord, task: Callable[[], Result]) -> Result:
        return in_background(task, name=f"act-{record.name}")

    def _open_writer(self, record: DatasetRecord, guard: RollbackGuard) -> WriterThread:
        writer = WriterThread(
            record=record,
            guard=guard,
            entropy=self._entropy,
            telemetry=self._telemetry,
            exchange=self._exchange,
            when_free=None if self.admission.scheduler is None else self.admission.scheduler.when_free,
        )
        self._exchange.follow(record.genesis, writer)
        self._exchange.open()  # only now: a command that touches no dataset need not listen
        return writer
