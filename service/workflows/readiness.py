"""Whether the replica can serve: its store, and every dataset, which may be closed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from service.workflows.ports.store import Store
from service.workflows.writer.registry import DatasetRegistry

READY_FOR: Final = timedelta(seconds=1)


class Readiness:
    """Public codes of what keeps the replica from serving."""

    def __init__(self, *, store: Store, registry: DatasetRegistry, clock: Callable[[], datetime]) -> None:
        self._store, self._registry, self._clock = store, registry, clock
        self._found: tuple[datetime, list[str]] = (datetime.min.replace(tzinfo=UTC), [])

    def problems(self) -> list[str]:
        """The codes, none when ready; checked at most once a second."""
        now = self._clock()
        asked_at, problems = self._found
        if not asked_at <= now < asked_at + READY_FOR:
            problems = self._store.problems() or self._closed_problems()
            self._found = now, problems
        return problems

    def check_witnesses(self) -> list[str]:
        """Compare every dataset with its witness, for `problems` too; the public codes of the problems."""
        guards = [self._registry.guard(record) for record in self._store.datasets()]
        return sorted({code for guard in guards if (code := guard.recheck()) is not None})

    def _closed_problems(self) -> list[str]:
        """Codes of the closed datasets, each checked again: it may have been reconciled."""
        return sorted({code for guard in self._registry.closed() if (code := guard.recheck()) is not None})
