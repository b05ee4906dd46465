"""The clock by which responses leave: the instant and the order of each wake-up."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from service.api.middleware import release_clock
from service.api.middleware.release_clock import LoopTimer, ReleaseClock, TimerFd, system_clock
from tests.api.clocks import FakeTime
from tests.waiting import settled


@pytest.fixture
def fake() -> FakeTime:
    """A time that stands."""
    return FakeTime()


async def wait(clock: ReleaseClock, instant_ns: int, name: str, woken: list[str]) -> None:
    """Wait, then say so."""
    await clock.until(instant_ns)
    woken.append(name)


async def test_waiters_are_woken_at_their_instants_in_order(fake: FakeTime) -> None:
    """By instant, and within one instant in the order of arrival; never before."""
    clock, woken = fake.clock(), list[str]()
    start = fake.ns
    waits = {"late": 30, "early": 10, "middle": 20, "early too": 10}
    tasks = [asyncio.create_task(wait(clock, start + at, name, woken)) for name, at in waits.items()]
    await settled()
    assert fake.set_to == start + 10
    for at, expected in (
        (9, []),
        (10, ["early", "early too"]),
        (19, ["early", "early too"]),
        (40, ["early", "early too", "middle", "late"]),
    ):
        fake.pass_to(start + at)
        await settled()
        assert woken == expected
    await asyncio.gather(*tasks)


async def test_the_alarm_stands_at_the_earliest(fake: FakeTime) -> None:
    """A later waiter does not move it, an earlier one does, and without waiters there is none."""
    clock, woken = fake.clock(), list[str]()
    tasks = []
    for at in (20, 30, 10):
        tasks.append(asyncio.create_task(wait(clock, fake.ns + at, str(at), woken)))
        await settled()
    start = fake.ns
    assert fake.alarms == [start + 20, start + 10]
    fake.pass_to(start + 10)
    assert fake.set_to == start + 20
    fake.pass_to(start + 30)
    await asyncio.gather(*tasks)
    assert fake.set_to is None


async def test_an_instant_that_has_passed_is_not_waited_for(fake: FakeTime) -> None:
    """Nor is the present one."""
    await fake.clock().until(fake.ns)
    assert fake.alarms == []


async def test_a_cancelled_waiter_delays_no_other(fake: FakeTime) -> None:
    """The others are woken at theirs."""
    clock, woken = fake.clock(), list[str]()
    start = fake.ns
    gone = asyncio.create_task(wait(clock, start + 10, "gone", woken))
    stays = asyncio.create_task(wait(clock, start + 20, "stays", woken))
    await settled()
    gone.cancel()
    await settled()
    fake.pass_to(start + 10)
    fake.pass_to(start + 20)
    await stays
    assert woken == ["stays"]


async def test_an_alarm_that_rings_too_soon_wakes_no_waiter(fake: FakeTime) -> None:
    """Some timers round down; the clock looks at the time itself."""
    clock, woken = fake.clock(), list[str]()
    task = asyncio.create_task(wait(clock, fake.ns + 10, "one", woken))
    await settled()
    clock._ring()
    await settled()
    assert woken == []
    fake.pass_to(fake.ns + 10)
    await task


def alarms() -> list[Any]:
    """The alarms that this machine has."""
    return [TimerFd, LoopTimer] if hasattr(os, "eventfd") else [LoopTimer]


@pytest.mark.parametrize("alarm", alarms())
def test_a_real_alarm_wakes_in_order_and_never_early(alarm: Any) -> None:
    """In one event loop and then, with a waiter left in the first, in the next."""
    clock = ReleaseClock(alarm())
    for _ in range(2):
        asyncio.run(_three_waits(clock))


async def _three_waits(clock: ReleaseClock) -> None:
    """Further and further apart, until all three have come before the first instant: a machine may be busy."""
    asyncio.create_task(clock.until(clock.now_ns() + 10**12)).set_name("left waiting")
    apart_ns = 3_000_000
    while not await _waited_in_order(clock, apart_ns):
        apart_ns *= 2


async def _waited_in_order(clock: ReleaseClock, apart_ns: int) -> bool:
    order: list[int] = []

    async def one(name: int, instant_ns: int) -> None:
        await clock.until(instant_ns)
        assert clock.now_ns() >= instant_ns
        order.append(name)

    start = clock.now_ns()
    waiting = [asyncio.create_task(one(name, start + name * apart_ns)) for name in (3, 1, 2)]
    await asyncio.sleep(0)  # by now each of them waits, or was told that its instant has passed
    were_in_time = clock.now_ns() < start + apart_ns
    await asyncio.gather(*waiting)
    assert not were_in_time or order == [1, 2, 3]
    return were_in_time


def test_under_uvloop_as_well() -> None:
    """The loop that the service runs on."""
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_three_waits(system_clock()))


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="Linux alone has timerfd")
def test_a_timer_closes_with_its_clock() -> None:
    """No descriptor is left behind."""
    timer = TimerFd()
    descriptor = timer._timer
    os.fstat(descriptor)
    del timer
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="Linux alone has timerfd")
def test_what_the_kernel_refuses_is_an_error() -> None:
    """A descriptor that is no timer."""
    with Path(os.devnull).open("rb") as nothing, pytest.raises(OSError, match="Invalid argument"):
        release_clock._set_time(nothing.fileno(), 1)
