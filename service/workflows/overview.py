"""The use cases behind a curator's overview: the budgets now and over time, the forecast, the alarm, a verification."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Literal

import orjson
from pydantic import TypeAdapter

from service.background import in_background, lower_priority
from service.core.charge import rho_of_units
from service.incidents import report_incident
from service.ledger.model.errors import ClockImplausible, InvalidRequest
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import BudgetSummary
from service.ledger.ports.cache import Cache, LedgerPosition, SharedSummary
from service.ledger.ports.store import BudgetAlarm, Store, SummaryPoint
from service.maintenance.reconcile import plan_of, witnessed
from service.maintenance.summary_points import SummaryPoints
from service.maintenance.verify.report import verify_dataset
from service.query.language import Query
from service.query.schema import doc
from service.query.words import in_words
from service.reads.budget_summary import QUANTILES, all_accounts, ledger_facts, summary
from service.reads.forecast import Forecast, forecast
from service.reads.ledger import snapshot
from service.workflows.queries.submit import compiled
from service.writer.operations import look_beside
from service.writer.registry import DatasetRegistry
from service.writer.threads import WriterThread

FINDINGS_SHOWN_MAX: Final = 20
_SUMMARY: Final = TypeAdapter(BudgetSummary)
_DAMAGED: Final = "ledger-damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHistory:
    """The budgets over time."""

    quantiles: Annotated[tuple[float, ...], doc("The quantiles that each point states, such as 0.05 and 0.5.")]
    points: Annotated[tuple[SummaryPoint, ...], doc("The points in time, by sequence.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The last verification of the ledger in this process."""

    state: Annotated[
        Literal["never", "running", "clean", "damaged", "failed"],
        doc("`never` begun, `running`, `clean`, `damaged`, or `failed` before its end."),
    ]
    began_at: Annotated[datetime | None, doc("When it began; null where none was begun.")] = None
    ended_at: Annotated[datetime | None, doc("When it ended; null until it has, and if the clock was wrong then.")] = (
        None
    )
    entries: Annotated[int, doc("How many entries of the ledger were verified.")] = 0
    answers: Annotated[int, doc("How many answers were verified.")] = 0
    accounts: Annotated[int, doc("How many accounts were verified.")] = 0
    finding_count: Annotated[int, doc("How many damaged rows were found.")] = 0
    findings: Annotated[tuple[str, ...], doc("The first twenty of them: table, row and fault.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """The comparison of the database with the witness outside of it. A backup that was put back lacks some answers."""

    state: Annotated[
        Literal["whole", "ledger-rollback", "witness-lost", "ledger-damaged"],
        doc("`whole`, or the problem that closes the dataset until the operator reconciles or mends it."),
    ]
    sequence: Annotated[int, doc("The ledger's sequence in the database.")]
    witnessed_sequence: Annotated[
        int | None, doc("The last sequence that was witnessed; null where the witness holds nothing.")
    ]
    shared_sequence: Annotated[
        int | None, doc("The last witnessed sequence that is in the ledger; null where none is, or all is whole.")
    ] = None
    missing_rho: Annotated[
        str | None,
        doc("The most that reconciling charges each individual for what is missing, in rho; null where that is open."),
    ] = None


class Overview:
    """The overview of each dataset. Thread-safe."""

    def __init__(
        self,
        *,
        store: Store,
        registry: DatasetRegistry,
        clock: Callable[[], datetime],
        cache: Cache,
        points: SummaryPoints | None,
    ) -> None:
        """`cache` holds summaries and is shared with the other replicas; `points` keeps points of the summaries."""
        self._store, self._registry, self._clock, self._cache = store, registry, clock, cache
        self._verifications: dict[int, Verification] = {}
        self._lock = threading.Lock()
        self._points = points

    def summary(self, dataset: str) -> BudgetSummary:
        """The remaining budgets; accounts are copied page by page between queries. Raises NotFound, Unavailable."""
        record = self._registry.record(dataset)
        return in_background(partial(self._summary, record), name=f"summary-{dataset}")

    def history(self, dataset: str) -> SummaryHistory:
        """The summary at earlier sequences, oldest first. Raises NotFound."""
        points = self._store.summaries.points(self._registry.record(dataset).id)
        return SummaryHistory(quantiles=QUANTILES, points=tuple(points))

    def forecast(self, dataset: str, query: Query) -> Forecast:
        """Find how many more queries like `query` the individuals it touches can pay for. Charges nothing.

        Raises NotFound, InvalidRequest for a query that the schema does not admit, Unavailable.
        """
        record = self._registry.record(dataset)
        plan, writer = compiled(query, record), self._registry.writer(record)
        if plan.scale.law.is_free:
            raise InvalidRequest.of("select[0].exhausted", "is prepaid: nobody's budget changes")
        words = in_words(orjson.loads(plan.canonical))

        def task() -> Forecast:
            charges = look_beside(writer, lambda records: records.charges(plan))
            return forecast(plan, words, charges, all_accounts(writer))

        return in_background(task, name=f"forecast-{dataset}")

    def alarm(self, dataset: str) -> BudgetAlarm | None:
        """The alarm that is set. Raises NotFound."""
        return self._store.summaries.alarm(self._registry.record(dataset).id)

    def set_alarm(self, dataset: str, share: float | None) -> BudgetAlarm | None:
        """Set the alarm anew, for a `share` above 0 and at most 1, or remove it. Raises NotFound."""
        alarm = None if share is None else BudgetAlarm(share=share)
        self._store.summaries.set_alarm(self._registry.record(dataset).id, alarm)
        return alarm

    def sequence(self, dataset: str) -> int:
        """The ledger's sequence, read from the head alone. Raises NotFound."""
        return self._store.head(self._registry.record(dataset).id).seq

    def watching(self, dataset: str) -> AbstractContextManager[None]:
        """Keep points more often while a curator watches. Raises NotFound."""
        record = self._registry.record(dataset)
        return nullcontext() if self._points is None else self._points.watching(record.id)

    def backup(self, dataset: str) -> BackupState:
        """The comparison of the database with its witness, also for a closed dataset. Raises NotFound, Unavailable."""
        record = self._registry.record(dataset)
        history = witnessed(self._registry.witness, record)  # before the snapshot, which then contains all of it
        with self._store.transaction(record.id, lock=False) as transaction:
            head, plan = transaction.head, plan_of(record, transaction, history, burn_units=0)
        is_damaged = self._registry.guard(record).code == _DAMAGED
        seen = history[-1].seq if history else None
        if plan is None:
            return BackupState(state=_DAMAGED if is_damaged else "whole", sequence=head.seq, witnessed_sequence=seen)
        if plan.witnessed is None:
            return BackupState(state="witness-lost", sequence=head.seq, witnessed_sequence=seen)
        return BackupState(
            state=_DAMAGED if is_damaged else "ledger-rollback",
            sequence=head.seq,
            witnessed_sequence=seen,
            shared_sequence=None if plan.shared is None else plan.shared.seq,
            missing_rho=str(rho_of_units(plan.missing_units)),
        )

    def verification(self, dataset: str) -> Verification:
        """The last verification in this process, or the one under way. Raises NotFound."""
        return self._verifications.get(self._registry.record(dataset).id, Verification(state="never"))

    def verify(self, dataset: str) -> Verification:
        """Begin to verify the dataset's ledger in the background, unless that is under way. Raises NotFound."""
        record = self._registry.record(dataset)
        with self._lock:
            running = self._verifications.get(record.id)
            if running is not None and running.state == "running":
                return running
            begun = self._verifications[record.id] = Verification(state="running", began_at=self._clock())
        threading.Thread(target=self._verify, args=(record, begun), name=f"verify-{dataset}", daemon=True).start()
        return begun

    def _summary(self, record: DatasetRecord) -> BudgetSummary:
        writer = self._registry.writer(record)
        place = _place(record, writer)
        held = self._cache.summary(record.genesis)
        if held is not None and held.place == place:
            return _SUMMARY.validate_json(held.body)
        taken = all_accounts(writer)
        with snapshot(writer.guard) as transaction:
            found = summary(taken, ledger_facts(record, transaction, seq=taken.seq))
        if _place(record, writer) == place:  # all of it is of one position
            self._cache.share([SharedSummary(place=place, body=_SUMMARY.dump_json(found))], [])
        return found

    def _now(self) -> datetime | None:
        """The time; None where the clock is wrong."""
        try:
            return self._clock()
        except ClockImplausible:
            return None

    def _verify(self, record: DatasetRecord, begun: Verification) -> None:
        lower_priority()
        try:
            report = verify_dataset(self._store, record, self._registry.witness)
        except Exception as error:  # noqa: BLE001 - the curator hears that it failed
            report_incident(error, f"verification of {record.name}", dataset=record.name)
            ended = replace(begun, state="failed", ended_at=self._now())
        else:
            ended = replace(
                begun,
                state="damaged" if report.findings else "clean",
                ended_at=self._now(),
                entries=report.entries,
                answers=report.answers,
                accounts=report.accounts,
                finding_count=len(report.findings),
                findings=tuple(report.findings[:FINDINGS_SHOWN_MAX]),
            )
        self._verifications[record.id] = ended


def _place(record: DatasetRecord, writer: WriterThread) -> LedgerPosition:
    """The dataset's position in the database. Raises Unavailable, Fenced."""
    with snapshot(writer.guard) as transaction:
        return LedgerPosition.of(record, transaction.head)
