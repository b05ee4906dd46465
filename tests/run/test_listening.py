"""The doors of a process: the addresses at which it listens, their names, and the signals that end its start."""

import logging
import signal
import socket
import sys
import weakref
from collections.abc import Callable, Iterator

import pytest

from service.run.listening import (
    ENDING,
    _Start,
    end_if_asked,
    end_on_signals,
    host_and_port,
    open_forward_listener,
    quiet_when_cut,
    stay_until_asked,
)
from tests.logged import lines_of
from tests.starts import drop_signal
from tests.waiting import PATIENCE_S


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException | None]]:
    """A start of this test's own, and the exceptions of which the interpreter tells that it drops them."""
    told: list[BaseException | None] = []
    monkeypatch.setattr("service.run.listening._START", _Start())
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(dropped.exc_value))
    before = {number: signal.getsignal(number) for number in ENDING}
    end_on_signals()
    yield told
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def alarm() -> Iterator[None]:
    """Ends a test that would wait for ever."""

    def ring(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 5)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_the_door_for_other_processes_is_named_as_it_was_set(name: str) -> None:
    """With the port that was free; a connection there is accepted."""
    with open_forward_listener(f"http://{name}") as (listener, url):
        listener.listen()
        _, port = listener.getsockname()[:2]
        assert url == f"http://{name}:{port}"
        host = host_and_port(url)[0]
        with socket.create_connection((host, port), timeout=PATIENCE_S), listener.accept()[0]:
            pass


def test_a_name_is_listened_on_everywhere() -> None:
    """Its meaning on other machines is unknown."""
    with open_forward_listener("http://{hostname}") as (listener, url):
        listener.listen()
        assert url == f"http://{socket.gethostname().lower()}:{listener.getsockname()[1]}"
        assert listener.getsockname()[0] == ".".join("0000")
        with socket.create_connection(listener.getsockname(), timeout=PATIENCE_S), listener.accept()[0]:
            pass


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_is_an_exit_once(dropped: list[BaseException | None], number: signal.Signals) -> None:
    """With status 0; the next one does not disturb the way out."""
    with pytest.raises(SystemExit, match=r"^0$"):
        signal.raise_signal(number)
    signal.raise_signal(number)
    with pytest.raises(SystemExit, match=r"^0$"):
        end_if_asked()
    assert dropped == []


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("look", [end_if_asked, stay_until_asked])
def test_a_signal_whose_exception_is_dropped_ends_the_start_at_its_next_look(
    dropped: list[BaseException | None], look: Callable[[], None]
) -> None:
    """Without a word of the exception that was dropped."""
    end_if_asked()
    drop_signal()
    with pytest.raises(SystemExit, match=r"^0$"):
        look()
    assert dropped == []


def test_another_start_begins_without_the_signal_of_the_one_before(dropped: list[BaseException | None]) -> None:
    """Tests start several times in one process."""
    drop_signal()
    end_on_signals()
    end_if_asked()
    assert dropped == []


@pytest.mark.parametrize("error", [OSError("lost"), SystemExit(1), ValueError("a schema that met SystemExit")])
def test_every_outcome_of_a_signal_is_the_exit_that_was_asked_for(
    dropped: list[BaseException | None], error: BaseException
) -> None:
    """Others' code turns the exception into one of its own, or fails because of it."""
    drop_signal()
    with pytest.raises(SystemExit, match=r"^0$") as ended, quiet_when_cut():
        raise error
    assert (ended.value.__suppress_context__, dropped) == (True, [])


def test_without_a_signal_nothing_is_hidden(
    dropped: list[BaseException | None], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither an error of the start, nor an exit, nor what is dropped, nor a line of the log."""
    for error in (OSError("in use"), SystemExit(1)):
        with pytest.raises(type(error)) as raised, quiet_when_cut():
            raise error
        assert raised.value is error
    drop(SystemExit(1))
    logging.getLogger("psycopg.pool").warning("discarding closed connection: %s", "x")
    assert (len(dropped), lines_of(caplog, "psycopg")) == (1, ["discarding closed connection: x"])


def test_after_a_signal_only_its_own_errors_are_hidden(
    dropped: list[BaseException | None], caplog: pytest.LogCaptureFixture
) -> None:
    """These are the exit, and in the log what psycopg says of connections that the signal has cut."""
    drop_signal()
    error = ValueError("our own mistake")
    drop(error)
    logging.getLogger("psycopg").warning("query cancellation interrupted (%s): closing connection", "TypeError")
    logging.getLogger("psycopg.pool").warning("discarding closed connection: %s", "x")
    logging.getLogger("psycopg.pool").warning("couldn't stop thread %r", "x")
    logging.getLogger("psycopg").warning("query cancellation failed: %s", "x")
    assert dropped == [error]
    assert lines_of(caplog, "psycopg") == ["couldn't stop thread 'x'", "query cancellation failed: x"]


def drop(error: BaseException) -> None:
    """Raise where the interpreter drops it."""

    def fail(_: object) -> None:
        raise error

    short = type("Short", (), {})()
    callback = weakref.ref(short, fail)
    del short
    assert callback() is None
