"""Amends the ledgers after erasures: one dataset after the other, outside the writers.

A dataset is queued when its writer is opened, to continue the work of another process, and after each erasure. After
an error it is queued again, as long as its writer is open here.
"""

from dataclasses import dataclass
from typing import Final

from service.incidents import report_incident
from service.workflows.maintenance.amend import NoCheckpoint, amend_erased
from service.workflows.maintenance.job_queue import JobQueue
from service.workflows.model.errors import WorkflowError
from service.workflows.model.rows import DatasetRecord
from service.workflows.ports.store import StoreUnavailable
from service.workflows.rollback.guard import RollbackGuard
from service.workflows.writer.low_priority import handing_over_soon
from service.workflows.writer.threads import WriterThread

SILENT_RETRIES: Final = 600
"""An erasure that is not amended after ten minutes is an incident; it is still retried."""


@dataclass(slots=True, kw_only=True)
class _Erasures:
    """The erasures of one dataset, and the number of failed attempts to amend for them."""

    record: DatasetRecord
    writer: WriterThread
    failures: int = 0


class Amender(JobQueue[_Erasures]):
    """The queue of datasets with erasures. Jobs left at the end are queued again at the next start."""

    name = "amender"

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:  # noqa: ARG002 - a BackgroundService
        self.ask(record, writer)

    def ask(self, record: DatasetRecord, writer: WriterThread) -> None:
        """Queue a dataset whose ledger is to be amended."""
        self.put(_Erasures(record=record, writer=writer))

    def title_of(self, job: _Erasures) -> str:
        return f"erasures of dataset {job.record.id}"

    def do(self, job: _Erasures) -> None:
        if not job.writer.is_open:  # the new owner of the dataset has queued them
            return
        try:
            with handing_over_soon():
                amend_erased(job.writer, is_over=self._closed.is_set)
        except (WorkflowError, StoreUnavailable, NoCheckpoint) as fault:
            job.failures += 1
            if job.failures == SILENT_RETRIES:
                report_incident(fault, f"{self.title_of(job)}: entries are left to be amended; retrying")
            self.put_again(job)
