"""The use cases of auditors: read the chained ledger, entry by entry."""

from service.workflows.model.views import LedgerRow, Page
from service.workflows.reads.ledger import ledger
from service.workflows.writer.registry import DatasetRegistry


class Auditors:
    """Everything an auditor can do. Thread-safe."""

    def __init__(self, *, registry: DatasetRegistry) -> None:
        self._registry = registry

    def ledger(self, dataset: str, *, cursor: str | None, limit: int) -> Page[LedgerRow]:
        """The entries, newest first. Raises NotFound, Unavailable, Fenced."""
        return ledger(self._registry.guard(self._registry.record(dataset)), cursor=cursor, limit=limit)
