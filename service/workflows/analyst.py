"""The use cases of analysts: ask, preview, read their own releases, see what may be asked. Nothing here is private."""

from collections.abc import Sequence
from uuid import UUID

from service.query.language import Query
from service.workflows.admission.admission import Admission
from service.workflows.datasets import public_dataset
from service.workflows.model.analyst_views import Allowance, Preview, ReleaseRow, StoredAnswer
from service.workflows.model.errors import NotFound
from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import Page, Principal, PublicDataset
from service.workflows.ports.store import Store
from service.workflows.queries.preview import allowances, preview
from service.workflows.queries.releases import releases
from service.workflows.queries.submit import QuerySubmitter, compiled
from service.workflows.writer.batch import stored_answer
from service.workflows.writer.registry import DatasetRegistry
from service.workflows.writer.submission import PendingAnswer


class Analysts:
    """Everything an analyst can do; a principal that is bound to one dataset sees no other. Thread-safe."""

    def __init__(
        self, *, store: Store, registry: DatasetRegistry, submitter: QuerySubmitter, admission: Admission
    ) -> None:
        self._store, self._registry, self._submitter, self._admission = store, registry, submitter, admission

    def submit(self, principal: Principal, dataset: str, key: str, query: Query) -> PendingAnswer:
        """Submit a query under an idempotency key. Raises NotFound, Busy; all other errors fail the promise.

        An invalid query is first looked up under its key: an earlier version may have answered it.
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
        """Cancel the query that waits under an idempotency key, with the others of its batch.

        Nothing is charged, and the key is free. Raises NotFound, and NotWaiting where it has begun or is not there.
        """
        self._submitter.cancel(principal, self._visible(principal, dataset), key)

    def submits_at_once(self, dataset: str) -> bool:
        """Whether `submit` needs no round trip to the database: the registration is known and the writer is open."""
        return self._registry.is_open_for(dataset)

    def preview(self, principal: Principal, dataset: str, query: Query) -> Preview:
        """Everything public about a query, for the dataset's curators too. Raises InvalidRequest, Fenced.

        Reads no record and costs nothing.
        """
        record = self._visible(principal, dataset)
        plan = compiled(query, record)
        self._registry.guard(record).refuse_if_closed()
        return preview(plan, record, principal, self._store, self._admission)

    def release(self, principal: Principal, query_id: UUID) -> StoredAnswer:
        """One of the analyst's own releases. Raises NotFound, Fenced, Unavailable."""
        found = self._store.answer_of(principal.id, query_id)
        if found is None:
            raise NotFound
        guard = self._registry.guard(self._registry.record(found.dataset))
        with guard.transaction(lock=False) as transaction:
            head = transaction.head
        guard.confirm_recorded_up_to(found.answer.seq, head)  # it may have been withheld when it was committed
        return stored_answer(found.answer)

    def releases(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[ReleaseRow]:
        """The analyst's own releases, newest first. Raises InvalidRequest on an unknown cursor."""
        return releases(self._store, principal, cursor=cursor, limit=limit)

    def allowances(self, principal: Principal) -> list[Allowance]:
        """The analyst's worst-case allowance on each dataset it may ask."""
        return allowances(principal, self._store)

    def datasets(self, principal: Principal) -> list[PublicDataset]:
        """The public part of every dataset the analyst may ask."""
        records = self._store.datasets()
        return [public_dataset(record, self._store) for record in records if principal.dataset in (None, record.name)]

    def dataset(self, principal: Principal, name: str) -> PublicDataset:
        """The public part of one dataset. Raises NotFound."""
        return public_dataset(self._visible(principal, name), self._store)

    def _visible(self, principal: Principal, name: str) -> DatasetRecord:
        if principal.dataset not in (None, name):
            raise NotFound
        return self._registry.record(name)
