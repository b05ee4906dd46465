"""Many tasks, one at a time: each has a thread of its own, and only the task that holds the baton runs.

A task gives the baton back when it calls `pause`; the world then picks the next task by the seed. So ordinary
blocking code (the workflows) is interleaved at every call of the store, and the same seed gives the same run.
"""

import _thread
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random


class Crash(BaseException):
    """The process of this task has died. A BaseException, so that no `except Exception` of the workflows catches it."""


def always() -> bool:
    """The condition of a task that can always run."""
    return True


def _held() -> "_thread.LockType":
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class Task:
    """One thread of the simulated machines; it dies with the process `place`."""

    name: str
    place: str
    run: Callable[[], None]
    ready: Callable[[], bool] = always
    killed: bool = False
    done: bool = False
    error: BaseException | None = None
    note: object = None
    baton: "_thread.LockType" = field(default_factory=_held)


class Scheduler:
    """Owns the baton. Tasks of `paused` places do not run; the others run in the order that `random` draws."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tasks: list[Task] = []
        self.paused: set[str] = set()
        self.current: Task | None = None
        self._baton = _held()

    def spawn(self, name: str, place: str, run: Callable[[], None], *, note: object = None) -> Task:
        """A new task, which starts when it is first picked."""
        task = Task(name, place, run, note=note)
        self.tasks.append(task)
        threading.Thread(target=self._thread, args=[task], daemon=True).start()
        return task

    def pause(self, ready: Callable[[], bool] = always) -> None:
        """Called by a task: give the baton away until picked again, which happens only while `ready()`."""
        task = self.current
        if task is None:  # called by the world itself, during setup or checks
            return
        if task.killed:
            raise Crash
        task.ready = ready
        self._baton.release()
        task.baton.acquire()
        task.ready = always
        if task.killed:
            raise Crash

    def runnable(self) -> list[Task]:
        """The tasks that could run now."""
        return [task for task in self.tasks if task.killed or (task.place not in self.paused and task.ready())]

    def step(self) -> Task | None:
        """Run one task up to its next pause; None when no task can run."""
        candidates = self.runnable()
        if not candidates:
            return None
        task = candidates[self.random.randrange(len(candidates))]
        self._resume(task)
        return task

    def kill(self, place: str) -> None:
        """Crash a process: each of its tasks unwinds at once, and its transactions with it."""
        for task in [task for task in self.tasks if task.place == place]:
            task.killed = True
            self._resume(task)

    def _resume(self, task: Task) -> None:
        self.current = task
        task.baton.release()
        self._baton.acquire()
        self.current = None
        if task.done:
            self.tasks.remove(task)
            if task.error is not None:
                raise task.error

    def _thread(self, task: Task) -> None:
        task.baton.acquire()
        try:
            if not task.killed:
                task.run()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again in the world's own thread
            task.error = error
        task.done = True
        self._baton.release()
