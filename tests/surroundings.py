"""The surroundings of every test: what a process inherits from the one that has started it is set once, to the same.

`make surroundings` chooses another locale and another time zone by two variables of their own.
"""

import os
import signal
import time
from typing import Final

LOCALE_VARIABLE: Final = "SPARING_TEST_LOCALE"
ZONE_VARIABLE: Final = "SPARING_TEST_ZONE"
LOCALE: Final = os.environ.get(LOCALE_VARIABLE) or "C.UTF-8"
ZONE: Final = os.environ.get(ZONE_VARIABLE) or "UTC"
VARIABLES: Final = {"LC_ALL": LOCALE, "TZ": ZONE, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PROXIES: Final = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
UMASK: Final = 0o022
SIGNALS: Final = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD)
"""A shell that starts a command in the background leaves some of them ignored, and so would every child of a test."""


def settle() -> None:
    """Set signals, umask, locale, time zone, threads of BLAS and proxies, for this process and its children."""
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(UMASK)
    os.environ.update(VARIABLES)
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.lower(), None)
    time.tzset()
