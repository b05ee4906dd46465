"""A thread that stands by and takes the interpreter's lock whenever somebody gives it up."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NEVER_S = 300.0


@contextmanager
def bystander() -> Iterator[Callable[[], int]]:
    """How often it has had the lock so far. Within the block nobody is made to hand the lock over."""
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
