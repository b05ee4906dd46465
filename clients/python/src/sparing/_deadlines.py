"""Time limits for one try as a whole; httpx only limits each single wait, so that a slow server can stretch a try.

A `Deadline` ends a try as a whole. Time that this process takes to read its own file does not count. The bytes of a
file that is sent or fetched get extra time, as much as they need at FILE_BYTES_S_MIN bytes a second.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import httpcore

from sparing._constants import FILE_BYTES_S_MIN

_WRITE_BYTES: Final = 65_536
_CURRENT: ContextVar["Deadline | None"] = ContextVar("deadline", default=None)


@dataclass(slots=True, kw_only=True)
class Deadline:
    """The instant, by `clock`, at which a try ends; whenever it is moved, `moved` is called with the new instant."""

    clock: Callable[[], float]  # seconds
    ends_at: float
    moved: Callable[[float], object] = lambda _: None

    def left_s(self) -> float:
        """The seconds that are left, 0 or fewer after the end."""
        return self.ends_at - self.clock()

    @contextlib.contextmanager
    def transferring(self, size: int) -> Iterator[None]:
        """A context for sending `size` bytes of a file; it adds the time taken, up to that at FILE_BYTES_S_MIN."""
        allowed, begun = size / FILE_BYTES_S_MIN, self.clock()
        self._move(allowed)
        try:
            yield
        finally:
            self._move(min(self.clock() - begun - allowed, 0.0))

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """A context in which the deadline stands still, while this process reads its own file."""
        left_s = self.left_s()
        self._move(math.inf)
        try:
            yield
        finally:
            self.ends_at = self.clock()
            self._move(left_s)

    def received(self, size: int, seconds: float) -> None:
        """Add the seconds in which `size` bytes of a file arrived, up to the time they need at FILE_BYTES_S_MIN."""
        self._move(min(seconds, size / FILE_BYTES_S_MIN))

    def _move(self, seconds: float) -> None:
        self.ends_at += seconds
        self.moved(self.ends_at)


@contextlib.contextmanager
def in_force(deadline: Deadline) -> Iterator[None]:
    """A context in which every stream of `traced` keeps to this deadline, in the thread of the caller."""
    token = _CURRENT.set(deadline)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def traced(event: str, info: Mapping[str, Any]) -> None:
    """Make the stream of each new connection keep to deadlines; httpcore calls this as its `trace` extension."""
    if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        _keep_to_deadlines(info["return_value"])


def _keep_to_deadlines(stream: httpcore.NetworkStream) -> None:
    read, write = stream.read, stream.write

    def read_in_time(max_bytes: int, timeout: float | None = None) -> bytes:
        return read(max_bytes, _limit_s(timeout, httpcore.ReadTimeout))

    def write_in_time(buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        for start in range(0, len(rest), _WRITE_BYTES):
            write(bytes(rest[start : start + _WRITE_BYTES]), _limit_s(timeout, httpcore.WriteTimeout))

    stream.read, stream.write = read_in_time, write_in_time  # type: ignore[method-assign]


def _limit_s(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    """The seconds that one wait may take. Raises `late` after the deadline."""
    deadline = _CURRENT.get()
    if deadline is None:
        return timeout
    left = deadline.left_s()
    if left <= 0:
        raise late("the try took too long as a whole")
    return left if timeout is None else min(left, timeout)
