"""Work in the background: its thread's priority, and how soon threads hand over the GIL."""

import os
import sys
import threading

import pytest

from service import background
from service.background import Background, handing_over_soon, in_background, lower_priority
from tests.waiting import until


def niceness() -> int:
    """The niceness of this thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def in_thread(task: object) -> list[object]:
    """The result of a task on a new thread of usual priority."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(task()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
def test_a_thread_lowers_its_own_priority_and_no_others() -> None:
    """It never raises the priority, which an unprivileged process may not do."""
    before = niceness()

    def lowered() -> list[int]:
        lower_priority()
        once = niceness()
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        lower_priority()
        return [once, niceness()]

    assert in_thread(lowered) == [[max(before, background.NICENESS), 19]]
    assert niceness() == before


def test_a_task_runs_on_a_low_thread_of_its_own_and_its_result_comes_back() -> None:
    """The thread has the given name."""
    before = niceness()
    found = in_background(lambda: (threading.current_thread().name, niceness()), name="act-survey")
    expected = max(before, background.NICENESS) if sys.platform == "linux" else before
    assert found == ("act-survey", expected)
    assert niceness() == before


def test_an_error_of_a_task_is_raised_in_the_caller() -> None:
    """The error is raised in the caller, which would otherwise wait for ever."""
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0, name="act")


def test_the_gil_is_handed_over_soon_while_background_work_runs() -> None:
    """The previous switch interval returns with the end of the last task, also where one fails."""
    usual = sys.getswitchinterval()
    with handing_over_soon():
        with pytest.raises(ZeroDivisionError):
            _fail_soon()
        assert sys.getswitchinterval() == pytest.approx(background.SWITCH_INTERVAL_S)
    assert sys.getswitchinterval() == pytest.approx(usual)


def _fail_soon() -> None:
    with handing_over_soon():
        assert sys.getswitchinterval() == pytest.approx(background.SWITCH_INTERVAL_S)
        raise ZeroDivisionError


class TwoLoops(Background):
    """Two loops that wait for the end, and one that does not heed it."""

    def open(self, heedless: threading.Event) -> None:
        """Begin them."""
        self.ended: list[str] = []
        for name in ("first", "second"):
            self._begin_thread(self._wait, name)
        self._begin_thread(heedless.wait, "heedless")

    def _wait(self) -> None:
        self._closed.wait()
        self.ended.append(threading.current_thread().name)


def test_closing_ends_the_loops_and_waits_no_longer_than_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that does not end is left behind; its thread does not hold up the end of the process."""
    monkeypatch.setattr(background, "ENDING_S", 0.05)
    loops, heedless = TwoLoops(), threading.Event()
    loops.open(heedless)
    loops.close()
    until(lambda: sorted(loops.ended) == ["first", "second"])
    (left,) = [thread for thread in threading.enumerate() if thread.name == "heedless"]
    assert left.daemon
    heedless.set()
    left.join()
