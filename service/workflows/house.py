"""The house: every workflow behind one object, which is all that the api room and the command line know."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import BinaryIO, Final
from uuid import UUID

import orjson

from service.accounting.coverage import coverage_certified
from service.core.budget import mu_of_units
from service.core.noise import Entropy
from service.core.units import rho_of_units, units_down
from service.query.language import Query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.workflows import accounts, reading
from service.workflows.answering import Question, stored_answer
from service.workflows.caching import Cache
from service.workflows.erasing import erasing
from service.workflows.errors import InvalidRequest, NotFound, WorkflowError
from service.workflows.incidents import report_incident
from service.workflows.limiting import Limiter
from service.workflows.lines import Lines
from service.workflows.ports import DatasetRecord, Store, StoreUnavailable, Transaction, Witness
from service.workflows.principals import Principals
from service.workflows.recalling import Recall
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
    DatasetCounts,
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

READY_FOR: Final = timedelta(seconds=1)


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
        self.lines = Lines(store=store, witness=witness, opening=self._open_line)
        self._readiness: tuple[datetime, list[str]] = (datetime.min.replace(tzinfo=UTC), [])
        principals = Principals(store=store, pepper=pepper, clock=clock)
        self.authenticate = principals.authenticate
        self.remembered = principals.remembered
        self.create_principal = principals.create
        self.list_principals = principals.listed
        self.revoke_principal = principals.revoke

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

    def ready(self) -> list[str]:
        """Public codes of what keeps the house from serving; empty when ready. Asked anew at most once a second."""
        now = self._clock()
        asked_at, problems = self._readiness
        if not asked_at <= now < asked_at + READY_FOR:
            problems = self._store.problems() or self._witness_problems()
            self._readiness = now, problems
        return problems

    def check_witnesses(self) -> list[str]:
        """Hold every dataset against its witness, so that `ready` knows; the public codes of what is wrong."""
        guards = [self.lines.guard(record) for record in self._store.datasets()]
        return sorted({code for guard in guards if (code := guard.recheck()) is not None})

    def preload(self) -> None:
        """Load every dataset that is not in memory yet, one after the other; what cannot be is left for who asks."""
        try:
            records = self._store.datasets()
        except StoreUnavailable:
            return
        for record in records:
            try:
                self.lines.line(record).read(_nothing)
            except WorkflowError:
                continue  # whoever asks is told
            except Exception as error:  # noqa: BLE001 - and the others are loaded
                report_incident(error, f"loading of dataset {record.id}")

    # Curators

    def register(self, registration: Registration) -> DatasetView:
        """Register a dataset. Raises NameTaken, InvalidRequest."""
        return self._view(register(registration, self._store))

    def datasets(self) -> list[DatasetView]:
        """Every dataset, by name."""
        return [self._view(record) for record in self._store.datasets()]

    def dataset(self, name: str) -> DatasetView:
        """One dataset. Raises NotFound."""
        return self._view(self.lines.record(name))

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
        return self.lines.line(self.lines.record(dataset)).read(reading.summary)

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
        worst_cases = [self._store.head(record.id).worst_case_units, plan.worst_case_units]
        return Preview(
            dimension=plan.dimension,
            grid=2.0**plan.grid_log2,
            sigma=plan.sigma,
            half_width_95=plan.half_width_95,
            l2_clip=plan.l2_clip,
            worst_case_rho=str(rho_of_units(plan.worst_case_units)),
            allowance_left_rho=self._allowance(principal, dataset).left_rho,
            coverage_certified=coverage_certified(worst_cases, limit_floor_units=record.limit_floor_units),
            canonical=orjson.loads(plan.canonical),
            query_hash=plan.query_hash,
        )

    def release(self, principal: Principal, query_id: UUID) -> StoredAnswer:
        """One of the analyst's own releases. Raises NotFound, Fenced, Unavailable."""
        found = self._store.answer_of(principal.id, query_id)
        if found is None:
            raise NotFound
        dataset, record, entry = found
        self.lines.guard(dataset).vouch_for(entry.seq)  # it may have been withheld when it was committed
        return stored_answer(record, entry.grid_log2)

    def releases(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[ReleaseRow]:
        """The analyst's own releases, newest first."""
        return releases(self._store, principal, cursor=cursor, limit=limit)

    def allowances(self, principal: Principal) -> list[Allowance]:
        """The analyst's worst-case allowance on each dataset it may ask."""
        names = [principal.dataset] if principal.dataset else [record.name for record in self._store.datasets()]
        return [self._allowance(principal, name) for name in names]

    def visible_datasets(self, principal: Principal) -> list[PublicDataset]:
        """The public part of every dataset the analyst may ask."""
        records = self._store.datasets()
        return [self._public(record) for record in records if principal.dataset in (None, record.name)]

    def visible_dataset(self, principal: Principal, name: str) -> PublicDataset:
        """The public part of one dataset. Raises NotFound."""
        return self._public(self._visible(principal, name))

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

    def _witness_problems(self) -> list[str]:
        """What is closed is checked anew: it may have been reconciled."""
        closed = self.lines.closed_by_witness()
        return sorted({code for guard in closed if (code := guard.recheck()) is not None})

    def _allowance(self, principal: Principal, dataset: str) -> Allowance:
        spent = self._store.worst_cases_of(principal.id).get(dataset, 0)
        allowed = principal.allowance_units
        return Allowance(
            dataset=dataset,
            allowance_rho=None if allowed is None else str(rho_of_units(allowed)),
            spent_rho=str(rho_of_units(spent)),
            left_rho=None if allowed is None else str(rho_of_units(max(allowed - spent, 0))),
        )

    def _view(self, record: DatasetRecord) -> DatasetView:
        individuals, rows = self._store.row_counts(record.id)
        counts = DatasetCounts(sequence=self._store.head(record.id).seq, individuals=individuals, rows=rows)
        return DatasetView(public=self._public(record), counts=counts)

    def _public(self, record: DatasetRecord) -> PublicDataset:
        """Looks at no record, and so takes no time that depends on how many there are."""
        return PublicDataset(
            name=record.name,
            guarantee=record.guarantee,
            budget_rho=str(rho_of_units(record.budget_units)),
            budget_units=record.budget_units,
            mu=mu_of_units(record.budget_units),
            limit_floor_rho=str(rho_of_units(record.limit_floor_units)),
            capacity=record.capacity,
            rule=record.rule,
            epoch=self._store.head(record.id).epoch,
            tables=record.schema,
        )


def _compiled(query: Query, record: DatasetRecord) -> Plan:
    try:
        return compile_query(query, record.schema, capacity=record.capacity)
    except QueryProblem as problem:
        raise InvalidRequest(*problem.errors) from problem


def _nothing(_transaction: Transaction, _state: DatasetState) -> None:
    """What whoever wants nothing but the dataset in memory reads."""


def _next_epoch(transaction: Transaction, _state: DatasetState) -> int:
    epoch = transaction.head.epoch + 1
    transaction.journal("epoch", {"epoch": epoch}, epoch=epoch)
    return epoch
