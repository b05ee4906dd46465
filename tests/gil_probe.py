"""A thread that takes the GIL whenever another thread releases it."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NEVER_S = 300.0


@contextmanager
def bystander() -> Iterator[Callable[[], int]]:
    """How often the probe has had the GIL so far. Within the block no thread is forced to hand it over."""
    interval_s, turns, is_over = sys.getswitchinterval(), 0, False

    def stand_by() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            time.sleep(0)  # gives the lock up, and waits for it

    thread = threading.Thread(target=stand_by)
    sys.setswitchinterval(_NEVER_S)
    try:
        thread.start()
        while turns == 0:
            time.sleep(0.001)
        yield lambda: turns
    finally:
        is_over = True
        sys.setswitchinterval(interval_s)
        thread.join()
