"""The options of a client's requests: the time of a try, the number of retries, and the length of replies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Self

import httpx

from sparing._constants import CONNECT_TIMEOUT_S
from sparing._reply_words import ReplyWords
from sparing._retry import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderOptions:
    """The time of one try, the retries, and the most bytes of a reply."""

    timeout: httpx.Timeout
    retry: RetryPolicy
    reply_bytes_max: int
    words: ReplyWords = field(default_factory=ReplyWords)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, so that clients and objects with a client cannot be pickled."""
        raise TypeError("a client is not pickled, because its API key would be: make one in the process that needs it")

    def __deepcopy__(self, memo: Mapping[int, object]) -> Self:
        """Return these options themselves, so that copies of a client share its connections."""
        return self

    def __post_init__(self) -> None:
        """Raise TypeError if `reply_bytes_max` is no whole number, and ValueError if it is below 1."""
        given: object = self.reply_bytes_max
        if not isinstance(given, int) or isinstance(given, bool):
            raise TypeError(f"reply_bytes_max must be a whole number, not {given!r}")
        if self.reply_bytes_max < 1:
            raise ValueError(f"reply_bytes_max must be at least 1, not {self.reply_bytes_max}")

    @property
    def timeout_s(self) -> float:
        """The seconds of one try as a whole, which also limit each wait in it."""
        return self.timeout.read or 0.0

    def with_options(self, *, timeout: float | None, max_retries: int | None) -> Self:
        """A copy with another timeout or number of retries; None keeps it. Raises as `timeout_of` and `RetryPolicy`."""
        return replace(
            self,
            timeout=self.timeout if timeout is None else timeout_of(timeout),
            retry=self.retry if max_retries is None else replace(self.retry, max_retries=max_retries),
        )


def timeout_of(seconds: float) -> httpx.Timeout:
    """The time limits of one try: `seconds`, but at most CONNECT_TIMEOUT_S for connecting.

    Raises TypeError if `seconds` is no number, and ValueError if it is not positive and finite.
    """
    given: object = seconds
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise TypeError(f"timeout must be a number of seconds, not {given!r}")
    if not 0 < seconds < math.inf:
        raise ValueError(f"timeout must be a positive number of seconds, not {seconds}")
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_S))
