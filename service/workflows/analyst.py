"""The use cases of analysts: ask, preview, read their own releases, see what may be asked. Nothing here is private."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final
from uuid import UUID

import orjson

from service.accounting.accountings import Accounting
from service.accounting.laws import deviation_of
from service.core.charge import rho_of_units
from service.core.laws import Gaussian
from service.ledger.model.analyst_views import Allowance, CostView, Preview, ReleaseRow, StoredAnswer
from service.ledger.model.errors import NotFound, UnknownDataset
from service.ledger.model.rows import DatasetRecord, ReleasePlace, ReleaseRecord
from service.ledger.model.stated_monitor import MonitorTicks
from service.ledger.model.views import DatasetRow, Page, Principal, PublicDataset
from service.ledger.ports.store import Store
from service.query.asking import notes_of
from service.query.language import Query
from service.query.stated import promise_of
from service.query.stated_noise import unpacked
from service.query.words import in_words
from service.reads.ledger import PAGE_BYTES_MAX, is_full, number_of, unknown_cursor
from service.reads.monitor import monitor_ticks
from service.workflows.datasets import dataset_row, listed_datasets, public_dataset
from service.workflows.queries.submit import QuerySubmitter, compiled
from service.writer.admission.admission import Admission
from service.writer.batch import stored_answer
from service.writer.registry import DatasetRegistry
from service.writer.submission import PendingAnswer


class Analysts:
    """Everything an analyst can do; a principal that is bound to one dataset sees no other. Thread-safe."""

    def __init__(
        self, *, store: Store, registry: DatasetRegistry, submitter: QuerySubmitter, admission: Admission
    ) -> None:
        self._store, self._registry, self._submitter, self._admission = store, registry, submitter, admission

    def submit(self, principal: Principal, dataset: str, key: str, query: Query) -> PendingAnswer:
        """Submit a query under an idempotency key. Raises NotFound, Busy; all other errors fail the promise.

        Before a query is refused, its key is looked up: it may have been answered before the dataset was extended or
        archived.
        """
        return self._submitter.submit(principal, self._visible(principal, dataset), key, query)

    def submit_all(
        self, principal: Principal, dataset: str, queries: Sequence[tuple[str, Query]]
    ) -> list[PendingAnswer]:
        """Submit several queries, each under its own key, as one unit that is committed together.

        An invalid query fails its own promise alone. Raises NotFound, and InvalidRequest or Busy for the unit.
        """
        return self._submitter.submit_all(principal, self._visible(principal, dataset), queries)

    def cancel(self, principal: Principal, dataset: str, key: str) -> None:
        """Cancel the query that waits under an idempotency key, and the queries submitted with it as one unit.

        Nothing is charged, and the key may be used again. Raises NotFound, and NotWaiting where no query waits under
        the key.
        """
        self._submitter.cancel(principal, self._visible(principal, dataset), key)

    def submits_at_once(self, dataset: str, query: Query) -> bool:
        """Tell whether `submit` needs no round trip to the database and no long arithmetic.

        The registration must be known, the writer open, and no numbers named by their hash, since these may have to be
        read. The noise must be Gaussian or the plan kept, since making prices of Laplace noise takes milliseconds.
        """
        return (
            self._registry.is_open_for(dataset)
            and not query.hashed
            and (query.mechanism == Gaussian.word or self._submitter.has_plan(query))
        )

    def preview(self, principal: Principal, dataset: str, query: Query) -> Preview:
        """Everything public about a query, for the dataset's curators too. Raises InvalidRequest, Fenced.

        Reads no record and costs nothing.
        """
        record = self._visible(principal, dataset)
        plan = compiled(self._submitter.numbered(principal, record, query), record)
        self._registry.guard(record).refuse_if_closed()
        cost = self._admission.cost_of(plan, record, self._registry.shards(record))
        canonical = orjson.loads(plan.canonical)
        promise = promise_of(plan, record, worst_cases_before=self._store.head(record.id).worst_case_units)
        return Preview(
            dimension=plan.dimension,
            grid=promise.noise.grid,
            sigma=promise.noise.sigma,
            scale=promise.noise.scale,
            half_width_95=promise.noise.half_width_95,
            l2_clip=plan.scale.bounds if plan.scale.sigmas else plan.scale.l2_charged,
            worst_case_rho=promise.worst_case_rho,
            worst_case_share=promise.worst_case_share,
            worst_case_epsilon=_epsilon(record.accounting, plan.scale.worst_case_units, record.guarantee.delta),
            largest_countable_norm=promise.largest_countable_norm,
            warnings=tuple(promise.warnings),
            allowance_left_rho=_allowance(principal, record.name, self._store.worst_cases_of(principal.id)).left_rho,
            coverage_certified=promise.is_certified,
            coverage_words=promise.coverage_words,
            certified_left_share=promise.certified_left_share,
            notes=notes_of(plan),
            estimates=tuple(item.title for item in plan.layout.estimated),
            canonical=canonical,
            words=in_words(canonical),
            query_hash=plan.query_hash,
            public_cost=CostView(
                time_ms=cost.time_ns / 1e6, memory_bytes=cost.memory_bytes, delay_ms=self._admission.delay_ms(cost)
            ),
        )

    def release(self, principal: Principal, query_id: UUID) -> StoredAnswer:
        """One of the analyst's own releases, on a dataset that it may ask. Raises NotFound, Fenced, Unavailable."""
        found = self._store.answer_of(principal.id, query_id)
        if found is None or principal.dataset not in (None, found.dataset):
            raise NotFound
        guard = self._registry.guard(self._registry.record(found.dataset))
        with guard.transaction(lock=False) as transaction:
            head = transaction.head
        guard.confirm_recorded_up_to(found.answer.seq, head)  # it may have been withheld when it was committed
        return stored_answer(found.answer)

    def releases(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[ReleaseRow]:
        """The analyst's own releases, newest first; within one second by dataset and sequence.

        Releases on a dataset to which the analyst is no longer bound are left out. Raises InvalidRequest on an unknown
        cursor.
        """
        before = None if cursor is None else _place_of(cursor)
        found = self._store.releases_of(principal.id, before=before, limit=limit, bytes_max=PAGE_BYTES_MAX)
        has_next = is_full([len(record.canonical) for record in found], limit=limit)
        shown = tuple(_release_row(each) for each in found if principal.dataset in (None, each.dataset))
        return Page(items=shown, next=_cursor_at(found[-1].place) if has_next else None)

    def allowances(self, principal: Principal) -> list[Allowance]:
        """The analyst's worst-case allowance on each dataset it may ask."""
        names = [principal.dataset] if principal.dataset else [record.name for record in self._store.datasets()]
        spent = self._store.worst_cases_of(principal.id)
        return [_allowance(principal, name, spent) for name in names]

    def datasets(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[DatasetRow]:
        """The datasets that the analyst may ask, by name. Raises InvalidRequest on an unknown cursor."""
        records, following = listed_datasets(self._store, principal.dataset, cursor=cursor, limit=limit)
        return Page(items=tuple(dataset_row(record, self._store) for record in records), next=following)

    def dataset(self, principal: Principal, name: str) -> PublicDataset:
        """The public part of one dataset. Raises NotFound."""
        return public_dataset(self._visible(principal, name), self._store)

    def monitor(self, principal: Principal, name: str) -> MonitorTicks:
        """The dataset's monitor with every tick that was answered. Raises NotFound without one, Fenced, Unavailable."""
        record = self._visible(principal, name)
        guard = self._registry.guard(record)
        guard.refuse_if_closed()
        if record.monitor is None:
            raise NotFound("This dataset has no monitor.")
        with guard.transaction(lock=False) as transaction:
            head, ticks = transaction.head, transaction.ticks()
            shown = monitor_ticks(record.monitor, transaction, ticks)
        if ticks:
            guard.confirm_recorded_up_to(ticks[-1].seq, head)  # it may have been withheld when it was committed
        return shown

    def _visible(self, principal: Principal, name: str) -> DatasetRecord:
        if principal.dataset is not None and principal.dataset != name:
            raise UnknownDataset(name, [principal.dataset])
        return self._registry.record(name)


def _allowance(principal: Principal, dataset: str, spent_by_dataset: Mapping[str, int]) -> Allowance:
    spent, allowed = spent_by_dataset.get(dataset, 0), principal.allowance_units
    return Allowance(
        dataset=dataset,
        allowance_rho=None if allowed is None else str(rho_of_units(allowed)),
        spent_rho=str(rho_of_units(spent)),
        left_rho=None if allowed is None else str(rho_of_units(max(allowed - spent, 0))),
    )


@lru_cache(maxsize=1024)
def _epsilon(accounting: Accounting, units: int, delta: str | None) -> float | None:
    """The epsilon of a worst case, or None if it needs a delta that is not stated.

    Cached: it takes ten milliseconds.
    """
    if delta is None and accounting.has_delta:
        return None
    return accounting.epsilon_of_units(units, Decimal(delta or 0))


def _release_row(record: ReleaseRecord) -> ReleaseRow:
    query = orjson.loads(record.canonical)
    return ReleaseRow(
        id=record.query_id,
        dataset=record.dataset,
        sequence=record.place.seq,
        query=query,
        words=in_words(query),
        sigma=unpacked(record.sigmas) or record.sigma * deviation_of(record.mechanism),
        dimension=record.dimension,
        worst_case_rho=str(rho_of_units(record.worst_case_units)),
        released_at=record.place.at,
        epoch=record.epoch,
    )


_PARTS: Final = len(ReleasePlace._fields)


def _cursor_at(place: ReleasePlace) -> str:
    return f"{place.at.isoformat()}/{place.dataset_id}/{place.seq}/{place.key}"


def _place_of(cursor: str) -> ReleasePlace:
    """The place of the last release shown; it is stated in full, because many releases may be of one second."""
    at, *numbers, key = cursor.split("/", _PARTS - 1) if cursor.count("/") >= _PARTS - 1 else ("", "")
    try:
        instant = datetime.fromisoformat(at)
    except ValueError as error:
        raise unknown_cursor() from error
    if instant.tzinfo is None or not (key.isascii() and key.isprintable()):
        raise unknown_cursor()
    dataset_id, seq = (number_of(number, default=0) for number in numbers)
    return ReleasePlace(at=instant, dataset_id=dataset_id, seq=seq, key=key)
