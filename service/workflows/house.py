"""The house: every workflow behind one object, which is all that the api room and the command line know."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import BinaryIO
from uuid import UUID

from service.core.noise import Entropy
from service.core.units import units_down
from service.query.language import Query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.workflows import accounts, reading
from service.workflows.answering import Question, stored_answer
from service.workflows.caching import Cache
from service.workflows.catalogue import Counts, dataset_view, public_dataset
from service.workflows.erasing import erasing
from service.workflows.errors import InvalidRequest, NotFound
from service.workflows.limiting import Limiter
from service.workflows.lines import Lines
from service.workflows.ports import Store, Transaction, Witness
from service.workflows.preloading import preload
from service.workflows.previewing import allowances, preview
from service.workflows.principals import Principals
from service.workflows.readiness import Readiness
from service.workflows.recalling import Recall
from service.workflows.records import DatasetRecord
from service.workflows.registration import Registration, register
from service.workflows.releases import releases
from service.workflows.secrets import Pepper
from service.workflows.sharing import UNSHARED, Exchange
from service.workflows.state import DatasetState
from service.workflows.telemetry import SILENT, Telemetry
from service.workflows.threads import DatasetWriter
from service.workflows.uploads import placing, read_upload
from service.workflows.views import (
    Allowance,
    BudgetRow,
    BudgetSummary,
    DatasetView,
    LedgerRow,
    MyBudget,
    Page,
    PendingAnswer,
    Preview,
    Principal,
    PublicDataset,
    Receipt,
    ReleaseRow,
    StoredAnswer,
    UploadReport,
)
from service.workflows.witnessing import Guard


class House:
    """All that can be done, for principals already recognised. Thread-safe; `close` drains every dataset's line."""

    def __init__(
        self,
        *,
        store: Store,
        witness: Witness,
        pepper: Pepper,
        entropy: Entropy,
        clock: Callable[[], datetime],
        telemetry: Telemetry = SILENT,
        cache: Cache | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        """Open the house; datasets are loaded when first asked for.

        `cache` is shared with the other replicas, if there are any; `limiter` is for whoever lets requests in.
        """
        self.limiter = limiter
        self._exchange = UNSHARED if cache is None else Exchange(cache)
        self._recall = None if cache is None else Recall(cache, self._exchange.hints)
        self._store, self._pepper, self._entropy, self._clock = store, pepper, entropy, clock
        self._telemetry = telemetry
        self._counts = Counts(store)
        self.lines = Lines(store=store, witness=witness, opening=self._open_line)
        principals = Principals(store=store, pepper=pepper, clock=clock)
        self.authenticate = principals.authenticate
        self.remembered = principals.remembered
        self.create_principal = principals.create
        self.list_principals = principals.listed
        self.revoke_principal = principals.revoke
        readiness = Readiness(store=store, lines=self.lines, clock=clock)
        self.ready = readiness.problems
        self.check_witnesses = readiness.check_witnesses

    def close(self) -> None:
        """Take nothing new, finish what waits, and stop. The store must outlive this call."""
        if self._recall is not None:
            self._recall.close()
        self.lines.close()
        self._exchange.close()

    def waiting(self) -> int:
        """How much waits in all lines together."""
        return sum(line.length for line in self.lines.opened())

    def fenced(self) -> int:
        """How many datasets are known to be closed by their witness; looks nowhere."""
        return len(self.lines.closed_by_witness())

    def preload(self) -> None:
        """Load every dataset that is not in memory yet, one after the other; what cannot be is left for who asks."""
        preload(self._store, self.lines)

    # Curators

    def register(self, registration: Registration) -> DatasetView:
        """Register a dataset. Raises NameTaken, InvalidRequest."""
        return dataset_view(register(registration, self._store), self._store, self._counts)

    def datasets(self) -> list[DatasetView]:
        """Every dataset, by name."""
        return [dataset_view(record, self._store, self._counts) for record in self._store.datasets()]

    def dataset(self, name: str) -> DatasetView:
        """One dataset. Raises NotFound."""
        return dataset_view(self.lines.record(name), self._store, self._counts)

    def append_rows(self, dataset: str, table: str, content_type: str, source: BinaryIO) -> UploadReport:
        """Append rows, all or nothing. Raises NotFound, InvalidRequest naming rows and columns."""
        record = self.lines.record(dataset)
        rows = read_upload(record, table, content_type, source)
        return self.lines.line(record).act(placing(record, table, rows, self._pepper))

    def erase_individual(self, dataset: str, key: str) -> None:
        """Erase a record; the account stays as a tombstone. Raises NotFound."""
        record = self.lines.record(dataset)
        self.lines.line(record).act(erasing(record, key, self._pepper))

    def open_epoch(self, dataset: str) -> int:
        """Start the next public epoch, in which nothing released before is reused."""
        return self.lines.line(self.lines.record(dataset)).act(_next_epoch)

    def budgets(self, dataset: str, *, cursor: str | None, limit: int) -> Page[BudgetRow]:
        """The individuals' accounts."""
        record = self.lines.record(dataset)
        return accounts.budgets(record, self.lines.line(record), self._exchange, cursor=cursor, limit=limit)

    def budget_summary(self, dataset: str) -> BudgetSummary:
        """How much of the budgets remains."""
        return reading.summary(self.lines.line(self.lines.record(dataset)).read(reading.standing))

    def ledger(self, dataset: str, *, cursor: str | None, limit: int) -> Page[LedgerRow]:
        """The queries, newest first."""
        return self.lines.line(self.lines.record(dataset)).read(reading.ledger(cursor=cursor, limit=limit))

    # Analysts

    def submit(self, principal: Principal, dataset: str, key: str, query: Query) -> PendingAnswer:
        """Put a query in the dataset's line. Raises NotFound, InvalidRequest; the promise fails with all else."""
        record = self._visible(principal, dataset)
        plan = _compiled(query, record)
        question = Question(
            analyst=principal,
            key=key,
            request_hash=hashlib.sha256(b"%d:%s" % (plan.reuse, plan.canonical)).digest(),
            plan=plan,
            accepted_at=self._clock(),
        )
        line = self.lines.line(record)
        return line.submit(question) if self._recall is None else self._recall.submit(question, record, line)

    def preview(self, principal: Principal, dataset: str, query: Query) -> Preview:
        """Everything public about a query; touches no record and costs nothing. Raises Fenced."""
        record = self._visible(principal, dataset)
        plan = _compiled(query, record)
        self.lines.guard(record).refuse_if_closed()
        return preview(plan, record, principal, self._store)

    def release(self, principal: Principal, query_id: UUID) -> StoredAnswer:
        """One of the analyst's own releases. Raises NotFound, Fenced, Unavailable."""
        found = self._store.answer_of(principal.id, query_id)
        if found is None:
            raise NotFound
        dataset, record, entry = found
        self.lines.guard(dataset).vouch_now()  # it may have been withheld when it was committed
        return stored_answer(record, entry.grid_log2)

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
        return [accounts.my_budget(record, key, self.lines.line(record), self._exchange)]

    def my_receipts(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[Receipt]:
        """What each query cost this individual."""
        record, key = self._own(principal)
        return self.lines.line(record).read(reading.receipts(record, key, cursor=cursor, limit=limit))

    def lower_my_limit(
        self, principal: Principal, dataset: str, *, limit_rho: Decimal | None = None, pause: bool = False
    ) -> MyBudget:
        """Lower one's own limit, or pause. Raises InvalidRequest on a raise, NotFound on another's dataset."""
        record, key = self._own(principal)
        if record.name != dataset:
            raise NotFound
        if (limit_rho is None) != pause:
            raise InvalidRequest.of("limit_rho", "give either limit_rho or pause")
        units = None if limit_rho is None else units_down(Fraction(limit_rho))
        return self.lines.line(record).act(reading.lowering(record, key, limit_units=units))

    def submits_at_once(self, dataset: str) -> bool:
        """Whether `submit` would touch no database: its registration and its line are at hand."""
        return self.lines.is_at_hand(dataset)

    # Within

    def _visible(self, principal: Principal, name: str) -> DatasetRecord:
        if principal.dataset not in (None, name):
            raise NotFound
        return self.lines.record(name)

    def _own(self, principal: Principal) -> tuple[DatasetRecord, str]:
        if principal.dataset is None or principal.individual is None:
            raise NotFound
        return self.lines.record(principal.dataset), principal.individual

    def _open_line(self, record: DatasetRecord, guard: Guard) -> DatasetWriter:
        line = DatasetWriter(
            record=record, guard=guard, entropy=self._entropy, telemetry=self._telemetry, exchange=self._exchange
        )
        self._exchange.follow(record.genesis, line)
        self._exchange.open()  # only now: a command that touches no dataset need not listen
        return line


def _compiled(query: Query, record: DatasetRecord) -> Plan:
    try:
        return compile_query(query, record.schema, capacity=record.capacity)
    except QueryProblem as problem:
        raise InvalidRequest(*problem.errors) from problem


def _next_epoch(transaction: Transaction, _state: DatasetState) -> int:
    epoch = transaction.head.epoch + 1
    transaction.journal("epoch", {"epoch": epoch}, epoch=epoch)
    return epoch
