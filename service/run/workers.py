"""Several processes behind one listening socket: each is a replica, and a parent opens the servers and watches them.

Each replica has its own memory, its own writer for each dataset and its own store, and is fenced by the dataset's row.
So workers share nothing but the socket. Uvicorn has a supervisor too; docs/decisions/0020 says why it is not used.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Final
from urllib.parse import urlsplit

from service.embedded.keeper import RestartPolicy
from service.embedded.launch import end_with
from service.failpoints import arm
from service.logs import configure_logs
from service.run.home import pepper_of, servers_of
from service.run.listening import (
    ENDING,
    bound_socket,
    end_because,
    end_if_asked,
    end_on_signals,
    failing_when_told,
    host_and_port,
    ignore_signals,
    quiet_when_cut,
    url_of,
)
from service.settings.settings import Settings

_SPAWN: Final = get_context("spawn")  # fresh processes: what forks after threads have begun may wait for ever

Start = Callable[[int, str | None, Connection], SpawnProcess]
"""Starts the worker of a place. It is given the place's number, the predecessor's report and the pipe for reports."""


class WorkersFailed(Exception):
    """The workers cannot be kept alive."""


@dataclass(slots=True)
class _WorkerPlace:
    """The place of one worker after the other: when one ends, the next one gets its place."""

    number: int
    process: SpawnProcess | None = None
    reports: Connection | None = None
    report: str | None = None
    ready_at: float | None = None
    start_at: float = 0.0
    deaths: int = 0
    was_ready: bool = False

    def send(self, number: int) -> None:
        """Send a signal to the worker.

        One that does not take connections yet gets SIGTERM in place of any other signal.
        """
        if self.process is not None and self.process.pid is not None:
            os.kill(self.process.pid, number if self.ready_at is not None else signal.SIGTERM)


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Keeps `workers` workers alive until a signal ends them."""

    start: Start
    workers: int
    ready: Callable[[Sequence[str | None]], None]
    leaving: Callable[[], None]
    restart_policy: RestartPolicy = field(default_factory=RestartPolicy)
    _places: list[_WorkerPlace] = field(init=False, default_factory=list)
    _is_leaving: bool = field(init=False, default=False)
    _failure: str | None = field(init=False, default=None)

    def run(self) -> None:
        """Watch the workers until a signal has come and the last worker has ended.

        `ready` is called once all are ready. Every signal is passed on to the workers. Raises WorkersFailed when
        workers do not stay alive, or did not all end in good order.
        """
        self._places = [_WorkerPlace(number) for number in range(self.workers)]
        with _signals() as signals:
            try:
                while not (self._is_leaving and all(place.process is None for place in self._places)):
                    self._step(signals)
            finally:
                for place in self._places:
                    if place.process is not None:
                        place.process.kill()
                        place.process.join()
        if self._failure is not None:
            raise WorkersFailed(self._failure)

    def _step(self, signals: socket.socket) -> None:
        """Start the workers that are due, then wait for the first event."""
        now = time.monotonic()
        absent = [] if self._is_leaving else [place for place in self._places if place.process is None]
        for place in absent:
            if place.start_at <= now:
                self._start(place)
        due = [place.start_at - now for place in absent if place.process is None]
        heard = [place for place in self._places if place.reports is not None]
        woken = wait([signals, *(place.reports for place in heard if place.reports)], min(due, default=None))
        for place in heard:
            if place.reports in woken:
                self._hear(place)
        if signals in woken:
            for number in signals.recv(64):
                self._leave(number)

    def _start(self, place: _WorkerPlace) -> None:
        place.reports, theirs = _SPAWN.Pipe(duplex=False)
        with theirs:
            place.process = self.start(place.number, place.report, theirs)

    def _hear(self, place: _WorkerPlace) -> None:
        """Take a worker's one report, that it takes connections, or the end of its pipe, which is the worker's end."""
        try:
            place.report = place.reports.recv() if place.reports else None
        except EOFError:
            self._bury(place)
            return
        place.ready_at = time.monotonic()
        if not place.was_ready:
            place.was_ready = True
            if all(each.was_ready for each in self._places):
                self.ready([each.report for each in self._places])

    def _bury(self, place: _WorkerPlace) -> None:
        process, reports, ready_at = place.process, place.reports, place.ready_at
        place.process = place.reports = place.ready_at = None
        if process is None or reports is None:
            return
        process.join()
        reports.close()
        if self._is_leaving:
            if ready_at is not None and process.exitcode != 0:
                self._fail(f"worker {place.number} ended with {process.exitcode}")
            return
        now = time.monotonic()
        ready_s = None if ready_at is None else now - ready_at
        place.deaths = self.restart_policy.deaths_after(place.deaths, ready_s=ready_s)
        pause_s = self.restart_policy.pause_after(place.deaths)
        place.start_at = now + pause_s
        if not place.was_ready and (process.exitcode or 0) > 0:
            self._fail("a worker could not start")  # it has said why, and would say it again
        elif place.deaths > self.restart_policy.deaths_max:
            self._fail(f"worker {place.number} ended {place.deaths} times, the last time with {process.exitcode}")
        else:
            _say(f"worker {place.number} ended with {process.exitcode}; another starts in {pause_s:g} s")

    def _fail(self, message: str) -> None:
        """Keep the first reason, and end all workers."""
        self._failure = self._failure or message
        self._leave(signal.SIGTERM)

    def _leave(self, number: int) -> None:
        if not self._is_leaving:
            self._is_leaving = True
            self.leaving()
        for place in self._places:
            place.send(number)


def serve_with_workers(
    settings: Settings, *, host: str, port: int, ready: Callable[[str], None], measured: Callable[[str], None]
) -> None:
    """Serve with `settings.workers` processes until SIGTERM or SIGINT, then drain all of them.

    `ready` is called with the URL once every worker takes connections, then `measured` with the URL of each worker's
    metrics. Raises OSError when the address is taken and WorkersFailed when the workers do not stay alive. Call it in
    the main thread: the workers end with the thread that has started them.
    """
    end_on_signals()
    configure_logs(settings.log)
    with failing_when_told(), quiet_when_cut(), ExitStack() as stack:
        listener = stack.enter_context(bound_socket(host, port))
        servers = stack.enter_context(servers_of(settings, failed=end_because))
        theirs = settings.model_copy(
            update={
                "database_url": servers.database_url,
                "redis_url": servers.redis_url,
                "pepper": pepper_of(settings),  # made once, here: workers of a new home would each make their own
            }
        )

        def start(number: int, report: str | None, reports: Connection) -> SpawnProcess:
            own = theirs.model_copy(
                update={
                    "metrics_port": _metrics_port(settings, number, report),
                    "forward_url": _forward_url(settings.forward_url, number),
                }
            )
            process = _SPAWN.Process(target=work, args=(os.getpid(), own, host, listener, reports))
            process.start()
            return process

        def tell(reports: Sequence[str | None]) -> None:
            ready(url_of(listener))
            for url in filter(None, reports):
                measured(url)

        # When the last worker has closed its copy of the socket, no process may be left that takes connections in vain.
        Supervisor(start=start, workers=settings.workers, ready=tell, leaving=listener.close).run()


@quiet_when_cut()
def work(parent_pid: int, settings: Settings, host: str, listener: socket.socket, reports: Connection) -> None:
    """Run a worker. It ends when its parent ends in any way, and answers to its parent's signals only."""
    end_with(parent_pid, signal.SIGKILL)
    os.setsid()  # a terminal's Ctrl-C is for the parent, which passes it on
    end_on_signals()
    arm(os.environ, host=host)
    # Here and not above: the parent serves nothing, and is a third of the size without.
    from service.run.composition import known_failures  # noqa: PLC0415
    from service.run.serve import serve_on  # noqa: PLC0415

    is_measured = settings.metrics_port is not None
    try:
        serve_on(listener, settings, ready=lambda _: None if is_measured else reports.send(None), measured=reports.send)
    except known_failures() as error:
        _say(str(error))
        sys.exit(1)


def _metrics_port(settings: Settings, number: int, report: str | None) -> int | None:
    """The port of a place's metrics: the first port plus the number of the place.

    A later worker there gets the same port.
    """
    if report is not None:
        return urlsplit(report).port
    if not settings.metrics_port:
        return settings.metrics_port
    return settings.metrics_port + number


def _forward_url(url: str, number: int) -> str:
    """The URL at which other processes reach the worker of a place. Without a port in `url` each worker picks one."""
    _, port = host_and_port(url)
    return f"{url.removesuffix(f':{port}')}:{port + number}" if port else url


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket from which the numbers of ending signals are read as they come. Afterwards these signals are ignored."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(0)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, _noted)
        try:
            end_if_asked()
            yield ours
        finally:
            ignore_signals()
            signal.set_wakeup_fd(before)


def _noted(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor has received the signal."""


def _say(message: str) -> None:
    sys.stderr.write(f"sparing: {message}\n")
    sys.stderr.flush()
