"""The options that a client may change for some of its requests: how long one try may take, and how many there are."""

import math
from dataclasses import dataclass, replace
from typing import Self

import httpx

from sparing._constants import CONNECT_TIMEOUT_S
from sparing._retry import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderOptions:
    """The time limits of one try, and the retries."""

    timeout: httpx.Timeout
    retry: RetryPolicy

    def with_options(self, *, timeout: float | None, max_retries: int | None) -> Self:
        """The same with other options; None keeps one. Raises as `timeout_of` and `RetryPolicy` do."""
        return replace(
            self,
            timeout=self.timeout if timeout is None else timeout_of(timeout),
            retry=self.retry if max_retries is None else replace(self.retry, max_retries=max_retries),
        )


def timeout_of(seconds: float) -> httpx.Timeout:
    """The limits of one try: so many seconds, and for connecting no more than CONNECT_TIMEOUT_S.

    Raises TypeError for anything but a number, and ValueError for one that is not positive and finite.
    """
    given: object = seconds
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise TypeError(f"timeout must be a number of seconds, not {given!r}")
    if not 0 < seconds < math.inf:
        raise ValueError(f"timeout must be a positive number of seconds, not {seconds}")
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_S))
