"""The thread on which erasures are brought to their end in the ledgers: one dataset after the other, beside every line.

A dataset is asked for when its line is opened, so that what another process had left is taken up, and after each
erasure. A fault puts it at the end of the queue again.
"""

import queue
import threading
from typing import Final

from service.workflows.amending import NoCheckpoint, amend_erased
from service.workflows.background import handing_over_soon, lower_priority
from service.workflows.errors import WorkflowError
from service.workflows.incidents import report_incident
from service.workflows.ports import StoreUnavailable
from service.workflows.records import DatasetRecord
from service.workflows.threads import DatasetWriter

RETRY_S: Final = 1.0
RETRIES: Final = 600
"""Ten minutes; a dataset that is closed or taken over by another process is asked for again when it is opened."""
_ENDING_S: Final = 2.0


class Amender:
    """The datasets that wait. Passive; one caller of `step` at a time, and `open` gives it a thread."""

    def __init__(self) -> None:
        """Nothing waits."""
        self._queue: queue.SimpleQueue[tuple[DatasetRecord, DatasetWriter, int] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="amender", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the stretch that is worked on; the rest is taken up at the next start."""
        self._closed.set()
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(_ENDING_S)

    def ask(self, record: DatasetRecord, line: DatasetWriter) -> None:
        """Have the erasures of a dataset brought to their end."""
        self._queue.put((record, line, RETRIES))

    def step(self) -> bool:
        """Wait for a dataset and amend its ledger. False at the end."""
        asked = self._queue.get()
        if asked is None or self._closed.is_set():
            return False
        record, line, retries = asked
        try:
            with handing_over_soon():
                amend_erased(line, is_over=self._closed.is_set)
        except (WorkflowError, StoreUnavailable, NoCheckpoint) as fault:
            if retries > 0:
                self._closed.wait(RETRY_S)
                self._queue.put((record, line, retries - 1))
            else:
                report_incident(fault, f"erasures of dataset {record.id}: entries are left to be amended")
        except Exception as error:  # noqa: BLE001 - and the others are amended
            report_incident(error, f"erasures of dataset {record.id}")
        return True

    def _run(self) -> None:
        lower_priority()
        while self.step():
            pass
