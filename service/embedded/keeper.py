"""Keeps an embedded server running for a process that serves.

A server that ends is started again, at the same URL, after a pause that grows with each end. A server that another
process runs is taken over once that process has ended, also at the same URL.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from service.embedded.lock import HomeInUseError
from service.embedded.process import EmbeddedServerError, LastingThread
from service.embedded.server import EmbeddedServer

FOLLOW_S = 0.25  # how often a process that uses another's server looks whether that process has ended
JOIN_S = 10.0

log = logging.getLogger("sparing.servers")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """The rules by which a child is started again: how often, and how soon."""

    settled_s: float = 10.0  # one that was ready for so long had started well, and its end counts as the first
    deaths_max: int = 8
    pause_s: float = 0.1  # doubled with every death: with the starts half a minute in all, for a database to come back
    pause_s_max: float = 10.0

    def deaths_after(self, deaths: int, *, ready_s: float | None) -> int:
        """The number of quick deaths after one more, of a child that was ready for `ready_s`; None: never ready."""
        return 1 if ready_s is not None and ready_s >= self.settled_s else deaths + 1

    def pause_after(self, deaths: int) -> float:
        """The pause in seconds before the start after this many quick deaths."""
        return float(min(self.pause_s * 2 ** (deaths - 1), self.pause_s_max))


class Keeper:
    """One thread that looks after one server, from `open` to `close`."""

    def __init__(
        self,
        server: EmbeddedServer,
        url: str,
        *,
        name: str,
        failed: Callable[[str], None],
        restart_policy: RestartPolicy | None = None,
    ) -> None:
        """Take a server that answers at `url`, and the thread's name; `failed` is called if the server keeps ending."""
        self._server, self._url, self.name = server, url, name
        self._failed = failed
        self._restart_policy = restart_policy or RestartPolicy()
        self._closing = threading.Event()
        self._thread = LastingThread(target=self._run, name=self.name, daemon=True)

    def open(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the server if it is ours, and end the thread if it has begun."""
        self._closing.set()
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        try:
            self._keep()
        except Exception as error:  # noqa: BLE001 - without this thread nobody looks after the server
            if not self._closing.is_set():
                self._failed(_in_one_line(error))

    def _keep(self) -> None:
        """Wait for the server's end and start it again, until this keeper is closed. Raises EmbeddedServerError."""
        deaths, is_up = 0, self._server.is_ours
        while not self._closing.is_set():
            ready_at = None
            try:
                if not is_up:
                    self._start()
                if self._closing.is_set():
                    self._server.stop()
                    return
                is_up, ready_at = False, time.monotonic()
                reason = self._server.wait()
            except HomeInUseError:
                self._closing.wait(FOLLOW_S)
                continue
            except EmbeddedServerError as error:
                reason = _in_one_line(error)
            if self._closing.is_set():
                return
            ready_s = None if ready_at is None else time.monotonic() - ready_at
            deaths = self._restart_policy.deaths_after(deaths, ready_s=ready_s)
            self._pause(deaths, reason)

    def _start(self) -> None:
        """Start our server again, or take over another process's. Raises HomeInUseError while that process lives.

        Raises EmbeddedServerError when the server does not come up, or not at the same URL.
        """
        title = self._server.title
        if self._server.is_ours:
            self._server.restart()
            log.warning("the embedded %s answers again", title)
            return
        self._server.launch()
        log.warning("the process that ran the embedded %s has ended; this one runs it now", title)
        if self._server.ready() != self._url:
            self._server.stop()
            raise EmbeddedServerError(f"the embedded {title} could not be started where it was")

    def _pause(self, deaths: int, reason: str) -> None:
        title = self._server.title
        if deaths > self._restart_policy.deaths_max:
            raise EmbeddedServerError(
                f"the embedded {title} does not stay alive; quick ends: {deaths}, the last: {reason}"
            )
        pause_s = self._restart_policy.pause_after(deaths)
        log.warning("the embedded %s: %s; it is started again in %g s", title, reason, pause_s)
        self._closing.wait(pause_s)


def _in_one_line(error: Exception) -> str:
    """The error's first line, with the last line of the server's log where the error quotes the log."""
    first, *quoted = str(error).splitlines() or [type(error).__name__]
    return f"{first} {quoted[-1]}" if quoted else first
