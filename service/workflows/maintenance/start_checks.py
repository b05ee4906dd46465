"""Start checks, one dataset after the other on a thread of low priority, outside the writer.

A dataset is answered from before its check has ended, so that no client waits for it. When damage is found the guard is
told, and from then on the dataset is closed.
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
"""A database that is away this often is an incident; every retry is a second, and other datasets have their turn."""
LOOKS: Final = 100
LOOK_EVERY_S: Final = 0.1
"""A check waits so often and so long for its dataset to be loaded; a client may be waiting for that."""


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A dataset whose ledger is to be checked, and how often the store was away when it was its turn."""

    record: DatasetRecord
    guard: RollbackGuard
    is_loaded: Callable[[], bool]
    failures: int = 0


class StartChecks(JobQueue[_Asked]):
    """The datasets whose ledgers are to be checked; one that was not checked before the end is not."""

    name = "start-checks"

    def __init__(self, store: Store) -> None:
        """Nothing waits."""
        super().__init__()
        self._store = store

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:
        self.ask(record, guard, is_loaded=lambda: writer.position is not None)

    def ask(self, record: DatasetRecord, guard: RollbackGuard, *, is_loaded: Callable[[], bool]) -> None:
        """Have a dataset's ledger checked, once `is_loaded` or after a while; `guard` is told of damage."""
        self.put(_Asked(record=record, guard=guard, is_loaded=is_loaded))

    def title_of(self, job: _Asked) -> str:
        return f"start check of dataset {job.record.id}"

    def do(self, job: _Asked) -> None:
        try:
            self._check(job)
        except StoreUnavailable as fault:
            job.failures += 1
            if job.failures == SILENT_RETRIES:
                report_incident(fault, f"{self.title_of(job)}: its rows cannot be read; tried on")
            self.put_again(job)

    def _check(self, asked: _Asked) -> None:
        """To the end, or to the first damage. Raises StoreUnavailable."""
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
