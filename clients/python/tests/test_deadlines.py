"""The end of a try as a whole, however its bytes are spread over time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpcore
import pytest

from sparing._constants import FILE_BYTES_S_MIN
from sparing._deadlines import Deadline, in_force, traced


@dataclass
class Clock:
    """A clock that is moved by hand."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stream:
    """A connection on which each transfer takes a second; the limits of each wait are kept."""

    clock: Clock
    limits: list[float | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.limits.append(timeout)
        self.clock.now += 1
        return b"x" * min(max_bytes, 1)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.limits.append(timeout)
        self.sizes.append(len(buffer))
        self.clock.now += 1


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


@pytest.fixture
def stream(clock: Clock) -> Any:
    """A connection of httpcore as it is made."""
    made = Stream(clock)
    traced("connection.connect_tcp.complete", {"return_value": made})
    return made


def ending(clock: Clock, seconds: float) -> Deadline:
    """A deadline in so many seconds."""
    return Deadline(clock=clock, ends_at=clock() + seconds)


def test_a_server_that_drips_is_read_until_the_deadline(clock: Clock, stream: Any) -> None:
    """Each wait is shorter than the last, and after the end there is none."""
    with in_force(ending(clock, 3)):
        for _ in range(3):
            assert stream.read(10, timeout=2.5) == b"x"
        with pytest.raises(httpcore.ReadTimeout, match="as a whole"):
            stream.read(10, timeout=2.5)
    assert stream.limits == [2.5, 2, 1]


def test_a_server_that_takes_little_is_written_to_until_the_deadline(clock: Clock, stream: Any) -> None:
    """In pieces, because a wait is measured for each."""
    with in_force(ending(clock, 2)), pytest.raises(httpcore.WriteTimeout, match="as a whole"):
        stream.write(b"x" * 200_000, timeout=9)
    assert (stream.sizes, stream.limits) == ([65_536] * 2, [2, 1])


def test_a_connection_without_a_deadline_keeps_its_own_limits(stream: Any) -> None:
    """A connection that httpx closes, or that another program uses."""
    stream.read(10, timeout=7)
    stream.write(b"x" * 70_000)
    assert (stream.limits, stream.sizes) == ([7, None, None], [65_536, 4464])


@pytest.mark.parametrize(
    ("seconds", "added"), [(0.5, 0.5), (2.0, 2.0), (9.0, 2.0)], ids=["fast", "just", "slower than a slow line"]
)
def test_the_bytes_of_a_file_have_their_time(clock: Clock, seconds: float, added: float) -> None:
    """Sent or fetched, as much as they take, and no more than a slow line needs."""
    size = 2 * FILE_BYTES_S_MIN
    sent, fetched = ending(clock, 1), ending(clock, 1)
    with sent.transferring(size):
        assert sent.left_s() == 3
        clock.now += seconds
    fetched.received(size, seconds)
    assert (sent.ends_at, fetched.ends_at) == (1 + added, 1 + added)


def test_the_own_file_is_read_at_leisure(clock: Clock) -> None:
    """Meanwhile there is no deadline; afterwards as much time is left as before. A limit elsewhere is told."""
    told: list[float] = []
    remember: Callable[[float], object] = told.append
    deadline = Deadline(clock=clock, ends_at=5, moved=remember)
    clock.now = 2
    with deadline.stopped():
        clock.now = 100
        assert deadline.left_s() > 1e300
    assert deadline.left_s() == 3
    assert told == [float("inf"), 103]
