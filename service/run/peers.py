"""The hosts that alarms and sign-ins go to are tried at a start and by the doctor, each for a few seconds.

A service goes on without them, and a start does not wait: a host that is away for a moment is a warning, with the
setting that names it, and so is one whose name is misspelt.
"""

import logging
import threading
from collections.abc import Iterator
from http.client import HTTP_PORT, HTTPS_PORT
from typing import Final
from urllib.parse import urlsplit

from service.settings.settings import Settings
from service.store.deadlines import connected
from service.store.fault_words import words_of

TRIED_S: Final = 5.0

log = logging.getLogger("sparing.start")


def unreached(settings: Settings) -> Iterator[str]:
    """A line for each host that takes no connection: its setting, the fault, and what waits meanwhile."""
    peers = (
        ("SPARING_ALARM_URL", settings.alarm_url, "alarms wait for their next try"),
        ("SPARING_OIDC_ISSUER", settings.oidc_issuer, "nobody can sign in by it, and keys go on"),
    )
    for name, url, meanwhile in peers:
        fault = None if url is None else _fault_of(url)
        if fault is not None:
            yield f"the host of {name} cannot be reached: {fault}; until it can, {meanwhile}"


def tell_of_peers(settings: Settings) -> threading.Thread | None:
    """Try the hosts beside the start, and warn of those that cannot be reached; None where no setting names any."""
    if settings.alarm_url is None and settings.oidc_issuer is None:
        return None
    thread = threading.Thread(target=_tell, args=(settings,), name="peers", daemon=True)
    thread.start()
    return thread


def _tell(settings: Settings) -> None:
    for line in unreached(settings):
        log.warning("%s", line)


def _fault_of(url: str) -> str | None:
    """The reason why its host takes no connection, without any part of the URL."""
    parts = urlsplit(url)
    try:
        port = parts.port or (HTTPS_PORT if parts.scheme == "https" else HTTP_PORT)
        with connected(parts.hostname or "", port, deadline_s=TRIED_S):
            return None
    except TimeoutError:
        return "it does not answer in time"
    except (OSError, UnicodeError) as fault:  # a label of a name may be too long
        return words_of(getattr(fault, "strerror", None) or str(fault), url)
