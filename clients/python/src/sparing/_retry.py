"""The rules by which a request is sent again, and the wait before. Sleep and randomness are the client's.

Sending a request twice is only harmless if the second has no further effect. Queries and uploads carry an idempotency
key, so that they may be repeated after any failure. Reading changes nothing. Any other request, such as a registration,
is repeated only if it certainly was not carried out.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from sparing._constants import RETRY_AFTER_MAX_S, RETRY_WAIT_BASE_S, RETRY_WAIT_MAX_S

_AWAY = frozenset({429, 502, 503, 504})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Repeat(enum.Enum):
    """The conditions under which a request may be repeated."""

    KEYED = "keyed"  # the idempotency key makes it one request, however often it is sent
    READ = "read"  # doing it twice has the effect of doing it once
    ONCE = "once"  # only while it certainly has not been carried out

    def after_status(self, status: int) -> bool:
        """Tell whether a response with this status is worth another try."""
        return status in _REPEATED[self]

    def after_failure(self, error: httpx.RequestError) -> bool:
        """Tell whether a request without a response is worth another try."""
        if self is Repeat.ONCE:
            return isinstance(error, _NEVER_SENT)
        return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)


_REPEATED: Final[Mapping[Repeat, frozenset[int]]] = {
    Repeat.KEYED: _AWAY | {httpx.codes.CONFLICT},  # 409: the same key is still running
    Repeat.READ: _AWAY,
    Repeat.ONCE: frozenset({httpx.codes.TOO_MANY_REQUESTS}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The number of retries (`max_retries` after the first try), and the waits between them."""

    max_retries: int
    rng: Callable[[], float]  # uniform on [0, 1)

    def __post_init__(self) -> None:
        """Raise TypeError if `max_retries` is no whole number, and ValueError if it is negative."""
        given: object = self.max_retries
        if not isinstance(given, int) or isinstance(given, bool):
            raise TypeError(f"max_retries must be a whole number, not {given!r}")
        if self.max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {self.max_retries}")

    def wait_s(self, retry: int, asked_s: float | None) -> float:
        """The seconds before retry number `retry` (0, 1, ...): a random part (full jitter) plus a bounded `asked_s`."""
        jitter_s = self.rng() * min(RETRY_WAIT_MAX_S, RETRY_WAIT_BASE_S * 2.0**retry)
        return jitter_s + min(asked_s or 0.0, RETRY_AFTER_MAX_S)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The `Retry-After` of a reply in seconds; None if it is absent or a date, which only proxies send."""
    value = headers.get("Retry-After", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
