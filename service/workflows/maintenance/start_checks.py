"""Start checks, one dataset after the other on a thread of low priority, outside the writer.

Queries are answered before the check has ended, so that no client waits for it. When damage is found, the guard closes
the dataset.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.incidents import report_incident
from service.workflows.maintenance.job_queue import JobQueue
from service.workflows.maintenance.start_check import StartCheck
from service.workflows.model.errors import LedgerDamaged
from service.workflows.model.rows import DatasetRecord
from service.workflows.ports.store import Store, StoreUnavailable
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.writer.low_priority import handing_over_soon
from service.workflows.writer.threads import WriterThread

SILENT_RETRIES: Final = 30
"""A database unavailable this often is an incident; retries are a second apart, after other datasets' turns."""
LOOKS: Final = 100
LOOK_EVERY_S: Final = 0.1
"""A check waits up to LOOKS intervals of this length for its dataset to be loaded: a client may need that first."""


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A dataset whose ledger is to be checked, and the number of attempts with the store unavailable."""

    record: DatasetRecord
    guard: RollbackGuard
    is_loaded: Callable[[], bool]
    failures: int = 0


class StartChecks(JobQueue[_Asked]):
    """The queue of ledgers to check; checks left at the end are dropped."""

    name = "start-checks"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:
        self.ask(record, guard, is_loaded=lambda: writer.position is not None)

    def ask(self, record: DatasetRecord, guard: RollbackGuard, *, is_loaded: Callable[[], bool]) -> None:
        """Queue the check of a dataset's ledger, once `is_loaded()` or after a while; damage closes `guard`."""
        self.put(_Asked(record=record, guard=guard, is_loaded=is_loaded))

    def title_of(self, job: _Asked) -> str:
        return f"start check of dataset {job.record.id}"

    def do(self, job: _Asked) -> None:
        try:
            self._check(job)
        except StoreUnavailable as fault:
            job.failures += 1
            if job.failures == SILENT_RETRIES:
                report_incident(fault, f"{self.title_of(job)}: its rows cannot be read; retrying")
            self.put_again(job)

    def _check(self, asked: _Asked) -> None:
        """Check to the end, or to the first damage. Raises StoreUnavailable."""
        self._await_load(asked)
        check, is_more = StartCheck(asked.record), True
        with handing_over_soon():
            while is_more and not self._closed.is_set():
                with self._store.transaction(asked.record.id, lock=False) as transaction:
                    is_more = check.step(transaction)
        if check.finding is not None:
            asked.guard.close_for_damage()
            report_incident(LedgerDamaged(), f"{self.title_of(asked)}: {check.finding}")

    def _await_load(self, asked: _Asked) -> None:
        for _ in range(LOOKS):
            if asked.is_loaded() or self._closed.wait(LOOK_EVERY_S):
                return
