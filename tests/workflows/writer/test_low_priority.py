"""Work in the background: its thread's priority, and how soon threads hand over the interpreter's lock."""

import os
import sys
import threading

import pytest

from service.workflows.writer import low_priority
from service.workflows.writer.low_priority import handing_over_soon, in_background, lower_priority


def niceness() -> int:
    """Of this thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def in_thread(task: object) -> list[object]:
    """What a task returns on a new thread of usual priority."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(task()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
def test_a_thread_lowers_its_own_priority_and_no_others() -> None:
    """And never raises it, which an unprivileged process may not."""
    before = niceness()

    def lowered() -> list[int]:
        lower_priority()
        once = niceness()
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        lower_priority()
        return [once, niceness()]

    assert in_thread(lowered) == [[max(before, low_priority.NICENESS), 19]]
    assert niceness() == before


def test_a_task_runs_on_a_low_thread_of_its_own_and_its_result_comes_back() -> None:
    """Under the name that it was given."""
    before = niceness()
    found = in_background(lambda: (threading.current_thread().name, niceness()), name="act-survey")
    expected = max(before, low_priority.NICENESS) if sys.platform == "linux" else before
    assert found == ("act-survey", expected)
    assert niceness() == before


def test_what_a_task_raises_comes_back_too() -> None:
    """To the caller, who would otherwise wait for ever."""
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0, name="act")


def test_the_lock_is_handed_over_soon_while_any_such_work_is_under_way() -> None:
    """The interval that was set before returns with the end of the last, also where one fails."""
    usual = sys.getswitchinterval()
    with handing_over_soon():
        with pytest.raises(ZeroDivisionError):
            _fail_soon()
        assert sys.getswitchinterval() == pytest.approx(low_priority.SWITCH_INTERVAL_S)
    assert sys.getswitchinterval() == pytest.approx(usual)


def _fail_soon() -> None:
    with handing_over_soon():
        assert sys.getswitchinterval() == pytest.approx(low_priority.SWITCH_INTERVAL_S)
        raise ZeroDivisionError
