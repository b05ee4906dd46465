"""A queue of background jobs on one thread of low priority: checks of ledgers, amendments.

Passive until it is opened, so that a test can run a job by calling `step`. An error of a job is an incident, and the
next job runs all the same.
"""

import queue
import threading
from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from service.incidents import report_incident
from service.workflows.writer.threads import lower_priority

RETRY_S: Final = 1.0
_ENDING_S: Final = 2.0

Job = TypeVar("Job")


class JobQueue(ABC, Generic[Job]):
    """A queue of jobs. One caller of `step` at a time; `open` starts a thread that calls it."""

    name: str
    """The name of the thread."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End after the current job; waiting jobs are dropped. The resources of jobs must outlive this call."""
        self._closed.set()
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(_ENDING_S)

    def put(self, job: Job) -> None:
        """Queue a job."""
        self._jobs.put(job)

    def put_again(self, job: Job) -> None:
        """Queue a job again, after RETRY_S."""
        self._closed.wait(RETRY_S)
        self._jobs.put(job)

    def step(self) -> bool:
        """Wait for a job and do it. False when the queue is closed."""
        job = self._jobs.get()
        if job is None or self._closed.is_set():
            return False
        try:
            self.do(job)
        except Exception as error:  # noqa: BLE001 - the other jobs must run
            report_incident(error, self.title_of(job))
        return True

    @abstractmethod
    def do(self, job: Job) -> None:
        """Do a job; must end early once the queue is closed."""

    @abstractmethod
    def title_of(self, job: Job) -> str:
        """The job's name in an incident."""

    def _run(self) -> None:
        lower_priority()
        while self.step():
            pass
