"""Background work that must not slow queries: threads of low priority, which hand over the GIL soon.

A thread that runs Python keeps the GIL until another has waited for the switch interval, 5 ms by default. The writer
needs the GIL back after each round trip to the database, so an upload would cost a query that much several times.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, TypeVar

NICENESS: Final = 10
"""As of `nice`: such a thread gets a tenth of a core that others want."""
SWITCH_INTERVAL_S: Final = 0.0005

Result = TypeVar("Result")
_lock: Final = threading.Lock()
_usual_s: Final[list[float]] = []
"""The switch interval to return to, once for each work that is under way."""


def lower_priority() -> None:
    """Lower this thread's priority for good, on Linux, where every thread has its own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


@contextmanager
def handing_over_soon() -> Iterator[None]:
    """Have threads hand over the GIL after SWITCH_INTERVAL_S, until no such block is left."""
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


def in_background(task: Callable[[], Result], *, name: str) -> Result:
    """Run a task on a thread of its own and wait for it. Raises what it raises."""
    future: Future[Result] = Future()

    def run() -> None:
        lower_priority()
        try:
            with handing_over_soon():
                result = task()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future.result()
