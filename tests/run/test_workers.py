"""The supervisor of workers starts them, restarts them, gives up, and ends them."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from service.embedded.keeper import RestartPolicy
from service.run.listening import ENDING, _Start, end_on_signals
from service.run.workers import _SPAWN, Supervisor, WorkersFailed, _forward_url, _metrics_port
from service.settings.settings import Settings
from tests.fake_workers import be_hurried, die, die_early, leave_badly, refuse, stay
from tests.starts import drop_signal

DrainState = Callable[[Connection, str | None], None]
AT_ONCE = RestartPolicy(settled_s=3600, deaths_max=2, pause_s=0)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """The test's handlers are as they were afterwards."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@dataclass
class Stage:
    """Workers whose lives are given place by place, and what was told of them."""

    lives: Sequence[Sequence[DrainState]]
    told: list[Sequence[str | None]] = field(default_factory=list)
    left: int = 0
    started: list[tuple[int, str | None, SpawnProcess]] = field(default_factory=list)

    def start(self, number: int, report: str | None, reports: Connection) -> SpawnProcess:
        earlier = sum(place == number for place, _, _ in self.started)
        drain_state = self.lives[number][min(earlier, len(self.lives[number]) - 1)]
        process = _SPAWN.Process(target=drain_state, args=(reports, f"w{number}"))
        process.start()
        self.started.append((number, report, process))
        return process

    def leave(self) -> None:
        self.left += 1

    def run(self, ready: Callable[[], None] = lambda: signal.raise_signal(signal.SIGTERM)) -> None:
        """Until all of them have been ready at once, or whatever else ends it."""

        def tell(reports: Sequence[str | None]) -> None:
            self.told.append(reports)
            ready()

        places = len(self.lives)
        Supervisor(start=self.start, workers=places, ready=tell, leaving=self.leave, restart_policy=AT_ONCE).run()

    def places_started(self) -> list[int]:
        return sorted(number for number, _, _ in self.started)

    def living(self) -> list[SpawnProcess]:
        return [process for _, _, process in self.started if process.is_alive()]


def test_all_workers_are_ready_before_the_url_is_told_and_end_before_the_parent() -> None:
    """Reports come in the order of places; the signal reaches each."""
    stage = Stage([[stay], [stay], [stay]])
    stage.run()
    assert stage.told == [["w0", "w1", "w2"]]
    assert stage.places_started() == [0, 1, 2]
    assert [process.exitcode for _, _, process in stage.started] == [0, 0, 0]
    assert stage.left == 1


def test_a_signal_that_was_dropped_before_they_were_looked_after_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of the home were coming up, and nothing else would end the parent any more."""
    monkeypatch.setattr("service.run.listening._START", _Start())
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    end_on_signals()
    drop_signal()
    stage = Stage([[stay], [stay]])
    with pytest.raises(SystemExit, match=r"^0$"):
        stage.run()
    assert (stage.started, stage.told) == ([], [])


def test_every_signal_is_passed_on_as_it_is() -> None:
    """Ctrl-C as Ctrl-C, and a second signal too: it hastens a drain."""
    stage = Stage([[be_hurried], [be_hurried]])
    stage.run(lambda: signal.raise_signal(signal.SIGINT))
    assert [process.exitcode for _, _, process in stage.started] == [0, 0]


def test_a_dead_worker_is_replaced_and_the_others_are_left_alone() -> None:
    """Also before it was ready for the first time, when something has killed it."""
    stage = Stage([[die_early, die_early, stay], [stay]])
    stage.run()
    assert stage.places_started() == [0, 0, 0, 1]
    assert stage.told == [["w0", "w1"]]


def test_the_next_worker_of_a_place_is_given_the_report_of_the_one_before() -> None:
    """So that it can take the same port for its metrics."""
    stage = Stage([[die], [stay]])
    with pytest.raises(WorkersFailed, match="worker 0 ended 3 times, the last time with -9"):
        stage.run(lambda: None)
    assert [report for number, report, _ in stage.started if number == 0] == [None, "w0", "w0"]
    assert stage.places_started() == [0, 0, 0, 1]
    assert (stage.living(), stage.left) == ([], 1)


def test_one_that_cannot_start_ends_all_at_the_first_time() -> None:
    """It has said why; another would say the same."""
    stage = Stage([[refuse], [stay]])
    with pytest.raises(WorkersFailed, match="could not start"):
        stage.run()
    assert stage.places_started() == [0, 1]
    assert stage.living() == []


def test_an_end_in_disorder_is_told() -> None:
    """The exit status tells that the drain did not go through."""
    stage = Stage([[leave_badly], [stay]])
    with pytest.raises(WorkersFailed, match="worker 0 ended with 3"):
        stage.run()
    assert stage.living() == []


def test_no_worker_outlives_an_error_of_the_parent() -> None:
    """After every error, the workers are gone."""
    stage = Stage([[stay], [stay]])

    def fail() -> None:
        raise OSError("the standard output is closed")

    with pytest.raises(OSError, match="closed"):
        stage.run(fail)
    assert stage.living() == []


@pytest.mark.parametrize(
    ("setting", "report", "ports"),
    [("", None, [None, None]), ("0", None, [0, 0]), ("9100", None, [9100, 9101]), ("0", "http://[::1]:77/m", [77, 77])],
)
def test_every_worker_has_a_port_for_its_metrics(setting: str, report: str | None, ports: list[int | None]) -> None:
    """Side by side from the one that was set; a successor has its predecessor's."""
    settings = Settings.of({"SPARING_METRICS_PORT": setting}, home=Path("/nowhere"))
    assert [_metrics_port(settings, number, report) for number in range(2)] == ports


@pytest.mark.parametrize(
    ("url", "urls"),
    [
        ("http://127.0.0.1", ["http://127.0.0.1", "http://127.0.0.1"]),
        ("http://{hostname}:8100", ["http://{hostname}:8100", "http://{hostname}:8101"]),
        ("http://[::1]:8100", ["http://[::1]:8100", "http://[::1]:8101"]),
    ],
)
def test_every_worker_is_reached_at_a_port_of_its_own(url: str, urls: list[str]) -> None:
    """Side by side from the one that was set; without one, each picks its own."""
    assert [_forward_url(url, number) for number in range(2)] == urls
