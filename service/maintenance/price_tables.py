"""The prices of Laplace noise of a dataset, made in the background when its writer is opened.

A table for Gaussian differential privacy takes a third of a second of arithmetic at 50 digits, once for each process.
If a query needs it sooner, the thread that compiles the query makes it.
"""

from service.accounting.accountings import Accounting
from service.background import JobQueue, handing_over_soon
from service.core.noise import SIGMA_STEPS_MIN
from service.ledger.model.rows import DatasetRecord
from service.writer.rollback.guard import RollbackGuard
from service.writer.threads import WriterThread


class PriceTables(JobQueue[Accounting]):
    """The queue of accountings whose prices are to be made; none is made twice."""

    name = "price-tables"

    def __init__(self) -> None:
        super().__init__()
        self._queued: set[str] = set()

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:  # noqa: ARG002 - a BackgroundService
        """Queue the dataset's accounting."""
        if record.accounting.name not in self._queued:
            self._queued.add(record.accounting.name)
            self.put(record.accounting)

    def do(self, job: Accounting) -> None:
        """Make the table, and the part of it that all scales share."""
        with handing_over_soon():
            for mechanism in job.mechanisms.values():
                mechanism.at(SIGMA_STEPS_MIN)

    def title_of(self, job: Accounting) -> str:
        """The title of a job, by the name of its accounting."""
        return f"prices of Laplace noise under {job.name}"
