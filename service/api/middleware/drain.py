"""Drain: a process that ends says so, refuses new requests, and finishes the accepted ones.

Accepted requests are answered, and every response then closes its connection (see `request_context`).
"""

from collections.abc import Callable
from typing import Final

from service.api.problems import Refusal

NOT_STARTED: Final = "X-Not-Started"
"""On a refusal: nothing of the request was worked on, and it may be sent elsewhere as it is."""

PROBES = frozenset({"/livez", "/readyz"})


class DrainState:
    """Whether new requests are taken. Set from a signal handler, read by every request."""

    def __init__(self, leaving: Callable[[], None] = lambda: None) -> None:
        """`leaving` is called when the drain begins, from a signal handler."""
        self.draining = False
        self._leaving = leaving

    def drain(self) -> None:
        """From now on refuse what is new; there is no way back."""
        self.draining = True
        self._leaving()

    def refuses(self, path: str) -> bool:
        """Whether a request comes too late. The operator's probes are answered to the end."""
        return self.draining and path not in PROBES


def draining() -> Refusal:
    """The answer to everything that comes too late."""
    return Refusal("draining", headers={"Retry-After": "1", NOT_STARTED: "1"})
