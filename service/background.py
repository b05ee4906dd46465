"""Work beside the queries, on threads of its own: loops, queues of jobs, single tasks.

A thread that runs Python keeps the GIL until another thread has waited for the switch interval, 5 ms by default. A
dataset's writer needs the GIL back after each round trip to the database, so that an upload could delay a query by
several such intervals. Work that may be slow therefore runs at low priority and hands over the GIL soon.
"""

import os
import queue
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from service.incidents import report_incident

NICENESS: Final = 10
"""The niceness of a background thread. Where other threads want a core, it gets a tenth of that core."""
SWITCH_INTERVAL_S: Final = 0.0005
ENDING_S: Final = 2.0
"""The seconds that closing waits for each loop. The threads are daemons, and end with the process at the latest."""
RETRY_S: Final = 1.0

Job = TypeVar("Job")
Result = TypeVar("Result")

_lock: Final = threading.Lock()
_usual_s: Final[list[float]] = []
"""The switch interval to return to: one copy for each piece of work under way."""


class Background:
    """Loops on threads of their own. Every loop must end once `_closed` is set."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def close(self) -> None:
        """Have the loops end, and wait up to ENDING_S for each."""
        self._closed.set()
        for thread in self._threads:
            thread.join(ENDING_S)

    def _begin_thread(self, loop: Callable[[], object], name: str) -> None:
        """Run a loop on a thread of this name."""
        self._threads.append(_started_thread(loop, name))


class JobQueue(Background, ABC, Generic[Job]):
    """A queue of jobs. Only one caller may call `step` at a time; `open` starts a thread of low priority that calls it.

    An error in a job is reported as an incident, and the next job runs all the same.
    """

    name: str
    """The name of the thread."""

    def __init__(self) -> None:
        super().__init__()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def open(self) -> None:
        """Start the thread."""
        self._begin_thread(self._run, self.name)

    def close(self) -> None:
        """End after the current job; waiting jobs are dropped. The resources of jobs must outlive this call."""
        self._closed.set()
        self._jobs.put(None)
        super().close()

    def put(self, job: Job) -> None:
        """Queue a job."""
        self._jobs.put(job)

    def put_again(self, job: Job) -> None:
        """Queue a job again after waiting for RETRY_S."""
        self._closed.wait(RETRY_S)
        self._jobs.put(job)

    def step(self) -> bool:
        """Wait for a job and do it. Returns False when the queue is closed."""
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
        """Do a job. It must end early once the queue is closed."""

    @abstractmethod
    def title_of(self, job: Job) -> str:
        """The job's name in an incident."""

    def _run(self) -> None:
        lower_priority()
        while self.step():
            pass


def in_background(task: Callable[[], Result], *, name: str) -> Result:
    """Run a task on a thread of its own at low priority, and wait for it. Raises the task's exception."""

    def run() -> Result:
        lower_priority()
        with handing_over_soon():
            return task()

    return on_own_thread(run, name=name).result()


def on_own_thread(task: Callable[[], Result], *, name: str) -> Future[Result]:
    """Begin a task on a daemon thread of its own, and return the future of its result."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            result = task()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    _started_thread(run, name)
    return future


def lower_priority() -> None:
    """Lower this thread's priority for good, on Linux, where every thread has its own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


@contextmanager
def handing_over_soon() -> Iterator[None]:
    """Have threads hand over the GIL after SWITCH_INTERVAL_S, for as long as any block of this kind runs."""
    with _lock:
        _usual_s.append(_usual_s[0] if _usual_s else sys.getswitchinterval())
        sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        with _lock:
            usual_s = _usual_s.pop()
            if not _usual_s:
                sys.setswitchinterval(usual_s)


def _started_thread(work: Callable[[], object], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
