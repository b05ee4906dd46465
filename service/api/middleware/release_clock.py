"""The clock by which responses leave: one timer for all that wait, set to absolute instants.

`asyncio.sleep` is no clock for this. An event loop waits in epoll for whole milliseconds, counted from when the wait
begins, which is when the work ended. So a response would leave a whole number of milliseconds after the end of its
work, and tell how long the work took. A timerfd is set to an absolute instant of the monotonic clock, and wakes any
kind of event loop like every other file descriptor.
"""

import asyncio
import ctypes
import heapq
import itertools
import os
import sys
import time
import weakref
from collections.abc import Callable
from functools import cache
from typing import Final, Protocol

_NS_PER_S: Final = 1_000_000_000
_CLOCK_MONOTONIC: Final = 1
_TFD_TIMER_ABSTIME: Final = 1


class Alarm(Protocol):
    """Rings once at an absolute instant, in the running event loop."""

    def set(self, instant_ns: int, ring: Callable[[], None]) -> None:
        """Ring at `instant_ns` of the monotonic clock, or at once if it has passed. Replaces the instant set before."""

    def clear(self) -> None:
        """Do not ring, and release the event loop."""


class ReleaseClock:
    """Wakes its waiters in the order of their instants.

    Waiters for one instant are woken in the order in which they came. Belongs to one event loop at a time; with no
    waiter it belongs to none.
    """

    def __init__(self, alarm: Alarm, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Keep time by `now_ns`, to which the alarm's instants refer."""
        self.now_ns = now_ns
        self._alarm = alarm
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()

    async def until(self, instant_ns: int) -> None:
        """Return at `instant_ns`, never before."""
        if instant_ns <= self.now_ns():
            return
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (instant_ns, next(self._arrivals), waiter))
        if self._waiting[0][2] is waiter:
            self._alarm.set(instant_ns, self._ring)
        await waiter

    def _ring(self) -> None:
        now_ns = self.now_ns()
        while self._waiting and self._waiting[0][0] <= now_ns:
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():  # a request that was cancelled no longer waits
                waiter.set_result(None)
        if self._waiting:
            self._alarm.set(self._waiting[0][0], self._ring)
        else:
            self._alarm.clear()


class TimerFd:
    """A Linux timerfd, watched by the running loop while it is set."""

    def __init__(self) -> None:
        """Open the timer. Raises OSError where the kernel refuses."""
        self._timer = _create()
        self._loop: asyncio.AbstractEventLoop | None = None
        weakref.finalize(self, os.close, self._timer)

    def set(self, instant_ns: int, ring: Callable[[], None]) -> None:
        """Ring at `instant_ns`."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the loop before may have ended while a task waited
            self._loop = loop
            loop.add_reader(self._timer, self._read, ring)
        _set_time(self._timer, instant_ns)

    def clear(self) -> None:
        """Release the loop. A timer that has rung stays silent until it is set again."""
        if self._loop is not None:
            self._loop.remove_reader(self._timer)
            self._loop = None

    def _read(self, ring: Callable[[], None]) -> None:
        try:
            os.read(self._timer, 8)
        except BlockingIOError:
            return  # it was set anew after the loop had seen it ring
        ring()


class LoopTimer:
    """The event loop's own timer, for systems without a timerfd, where it is as exact as the loop's poll."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    def set(self, instant_ns: int, ring: Callable[[], None]) -> None:
        """Ring at `instant_ns` of the monotonic clock, whose origin may differ from that of the loop's clock."""
        self.clear()
        wait_s = (instant_ns - time.monotonic_ns()) / _NS_PER_S
        self._handle = asyncio.get_running_loop().call_later(max(wait_s, 0), ring)

    def clear(self) -> None:
        """Do not ring."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def system_clock() -> ReleaseClock:
    """The clock of this machine."""
    return ReleaseClock(TimerFd() if sys.platform == "linux" else LoopTimer())


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _create() -> int:
    timer: int = _libc().timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)  # of `os` from Python 3.13 on
    if timer < 0:
        raise _os_error()
    return timer


def _set_time(timer: int, instant_ns: int) -> None:
    seconds, nanoseconds = divmod(max(instant_ns, 1), _NS_PER_S)  # zero would switch it off
    spec = _Itimerspec(_Timespec(0, 0), _Timespec(seconds, nanoseconds))
    if _libc().timerfd_settime(timer, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None) < 0:
        raise _os_error()


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _os_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
