"""The use cases of auditors: read the chained ledger, entry by entry."""

from uuid import UUID

from service.ledger.model.rows import EntryFilter
from service.ledger.model.views import LedgerRow, Page
from service.reads.ledger import ledger
from service.writer.registry import DatasetRegistry


class Auditors:
    """Everything an auditor can do. Thread-safe."""

    def __init__(self, *, registry: DatasetRegistry) -> None:
        self._registry = registry

    def ledger(
        self, dataset: str, *, cursor: str | None, limit: int, analyst_id: UUID | None = None, search: str = ""
    ) -> Page[LedgerRow]:
        """The entries, newest first: those of one analyst if `analyst_id` is given, and with every word of `search`.

        Raises NotFound, Unavailable, Fenced.
        """
        guard = self._registry.guard(self._registry.record(dataset))
        only = EntryFilter(analyst_id=analyst_id, words=tuple(search.split()))
        return ledger(guard, cursor=cursor, limit=limit, only=only)
