"""Many tasks, one at a time: each runs on a thread of its own, and only the one that holds the baton moves.

A task gives the baton back wherever it calls `pause`; the world then picks, by the seed, who goes on. So ordinary
blocking code (the workflows) is interleaved at every call of the store, and the same seed gives the same run.
"""

import _thread
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random


class Crash(BaseException):
    """The process that ran this task is gone. No `except Exception` of the workflows may catch it."""


def always() -> bool:
    """A task that waits for nothing."""
    return True


def _held() -> "_thread.LockType":
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class Task:
    """One thread of the simulated machines; `place` says which process it is part of and dies with."""

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
    """Owns the baton. `paused` places do not run; everything else does in the order that `random` draws."""

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
        if task is None:  # the world itself is at work: setting up, or checking
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
        """Who could go on now."""
        return [task for task in self.tasks if task.killed or (task.place not in self.paused and task.ready())]

    def step(self) -> Task | None:
        """Let one task go on to its next pause; None when nobody can."""
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
