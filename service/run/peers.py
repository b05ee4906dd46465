"""The host of the identity provider is tried at a start and by the doctor, for a few seconds.

A service works without that host, and a start does not wait for it. A host that cannot be reached, or whose name is
misspelt, is a warning with the setting that names it.
"""

import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from http.client import HTTP_PORT, HTTPS_PORT
from typing import Final
from urllib.parse import urlsplit

from service.settings.settings import Settings
from service.store.fault_words import words_of

TRIED_S: Final = 5.0

log = logging.getLogger("sparing.start")


def unreached(settings: Settings) -> Iterator[str]:
    """A line where the host takes no connection: its setting, the fault, and what waits meanwhile."""
    fault = None if settings.oidc_issuer is None else _fault_of(settings.oidc_issuer)
    if fault is not None:
        yield (
            f"the host of SPARING_OIDC_ISSUER cannot be reached: {fault}; "
            "until it can, nobody can sign in by it, and keys go on"
        )


def tell_of_peers(settings: Settings) -> threading.Thread | None:
    """Try the host beside the start, and warn if it cannot be reached. The thread that does so; None without a host."""
    if settings.oidc_issuer is None:
        return None
    thread = threading.Thread(target=_tell, args=(settings,), name="peers", daemon=True)
    thread.start()
    return thread


def _tell(settings: Settings) -> None:
    for line in unreached(settings):
        log.warning("%s", line)


def _fault_of(url: str) -> str | None:
    """The reason why a URL's host takes no connection, without any part of the URL; None if it takes one."""
    tried: Future[None] = Future()
    threading.Thread(target=_try, args=(url, tried), name="names", daemon=True).start()
    try:
        return tried.result(TRIED_S)
    except TimeoutError:
        return "it does not answer in time"
    except (OSError, UnicodeError) as fault:  # a label of a name may be too long
        return words_of(getattr(fault, "strerror", None) or str(fault), url)


def _try(url: str, tried: "Future[None]") -> None:
    """Connect to a URL's host. Looking up the name may take any time: a process that ends does not wait for it."""
    parts = urlsplit(url)
    try:
        port = parts.port or (HTTPS_PORT if parts.scheme == "https" else HTTP_PORT)
        socket.create_connection((parts.hostname or "", port), TRIED_S).close()
    except (OSError, UnicodeError) as fault:
        tried.set_exception(fault)
    else:
        tried.set_result(None)
