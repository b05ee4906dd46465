"""One timer for many operations: none expires too early, too late or twice."""

import heapq
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from service.api.middleware.request_limits import SharedTimeout

LIMIT_S = 30.0


class Time:
    """An event loop that has nothing but a clock, and counts the timers that were set."""

    def __init__(self) -> None:
        self.now_s, self.timers = 0.0, 0
        self._calls: list[tuple[float, int, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when: float, callback: Callable[[], object], /) -> None:
        self.timers += 1
        heapq.heappush(self._calls, (when, self.timers, callback))

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and ring whatever rings meanwhile."""
        until_s = self.now_s + seconds
        while self._calls and self._calls[0][0] <= until_s:
            self.now_s, _, ring = heapq.heappop(self._calls)
            ring()
        self.now_s = until_s


STEPS = st.one_of(
    st.tuples(st.just("pass"), st.integers(0, 40)), st.tuples(st.sampled_from(["begin", "end"]), st.integers(0, 5))
)


@given(steps=st.lists(STEPS, max_size=60))
def test_each_is_lost_when_its_own_time_is_over_and_not_before(steps: list[tuple[str, int]]) -> None:
    """Other operations began and ended around it."""
    time, lost = Time(), list[tuple[int, float]]()
    shared_timeout: SharedTimeout[int] = SharedTimeout(
        LIMIT_S, lambda one: lost.append((one, time.now_s)), lambda: time
    )
    waiting: dict[int, float] = {}
    due: list[tuple[int, float]] = []
    for step, value in steps:
        if step == "pass":
            time.pass_by(value)
            due += [(one, since + LIMIT_S) for one, since in waiting.items() if since + LIMIT_S <= time.now_s]
            waiting = {one: since for one, since in waiting.items() if since + LIMIT_S > time.now_s}
        elif step == "begin" and value not in waiting:
            shared_timeout.begin(value)
            waiting[value] = time.now_s
        elif step == "end":
            shared_timeout.end(value)
            waiting.pop(value, None)
    assert lost == due


def test_many_that_come_and_go_cost_one_timer() -> None:
    """As long as the first of them would have had; the timer is armed again for the operations left when it fires."""
    time = Time()
    shared_timeout: SharedTimeout[int] = SharedTimeout(LIMIT_S, lambda _: None, lambda: time)
    for number in range(290):
        shared_timeout.begin(number)
        time.pass_by(0.1)
        shared_timeout.end(number)
    assert time.timers == 1
    shared_timeout.begin(-1)
    time.pass_by(2)
    assert time.timers == 2
    shared_timeout.end(-1)
    time.pass_by(1000)
    assert time.timers == 2


def test_a_loop_that_ended_is_not_waited_for() -> None:
    """Its timer will never ring."""
    loops, lost = [Time(), Time()], list[int]()
    shared_timeout: SharedTimeout[int] = SharedTimeout(LIMIT_S, lost.append, lambda: loops[-1])
    shared_timeout.begin(1)
    shared_timeout.end(1)
    loops.append(Time())
    shared_timeout.begin(2)
    loops[-1].pass_by(LIMIT_S)
    assert lost == [2]
