"""The life of an embedded server: lock, predecessor, runtime directory, launch, readiness, stop."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import ClassVar, Self

from service.embedded.errors import EmbeddedServerError
from service.embedded.home import PRIVATE_ROOT, Home, find_home, open_home
from service.embedded.lock import read_note
from service.embedded.process import require_main_thread
from service.embedded.supervision import Supervision


class EmbeddedServer(ABC):
    """The embedded server of a home; a context manager that starts and stops it.

    A subclass says how its program is found, prepared and asked.
    """

    title: ClassVar[str]  # in messages
    server: ClassVar[str]  # names the lock and the log
    start_timeout_s: ClassVar[float]
    stop_steps: ClassVar[Sequence[tuple[Signals, float]]]  # signal, seconds to wait for its effect
    death_signal: ClassVar[Signals]  # from the kernel, when we die

    def __init__(self, home: Path, *, private_root: Path = PRIVATE_ROOT) -> None:
        """Take the home, and where root keeps what its servers' account cannot reach there."""
        self._path = home
        self._private_root = private_root
        self._runtime = Path()
        self._supervision: Supervision | None = None

    def start(self) -> str:
        """Start the server and return its URL: `launch`, then `ready`, and what they raise."""
        self.launch()
        return self.ready()

    def launch(self) -> None:
        """Have the server begin to start; files that a first start needs are made.

        Raises HomeInUseError when another process runs it and EmbeddedServerError when it cannot be started; call it
        in the main thread.
        """
        require_main_thread()
        if self._supervision is not None:
            raise EmbeddedServerError(f"the embedded {self.title} of {self._path} has been started already")
        home = open_home(self._path, private_root=self._private_root)
        supervision = Supervision(home, self.server)
        try:
            self._choose_program(home)
            self._end_predecessor(supervision.predecessor_runtime)
            self._runtime = supervision.open_runtime()
            supervision.launch(self._prepare(home, self._runtime), death_signal=self.death_signal)
        except BaseException:
            supervision.close(self.stop_steps)
            raise
        self._supervision = supervision

    def ready(self) -> str:
        """Wait until the launched server answers, and return its URL, which holds the password.

        Raises EmbeddedServerError when it does not come up, or is not the one that was launched; it is stopped then.
        """
        supervision = self._supervision
        if supervision is None:
            raise EmbeddedServerError(f"the embedded {self.title} of {self._path} has not been launched")
        with ExitStack() as failing:
            failing.callback(self.stop)
            supervision.await_ready(self._answers, timeout_s=self.start_timeout_s)
            self._prove()
            failing.pop_all()
        return self._url()

    def stop(self) -> None:
        """Stop the server in order and wait for its end; does nothing when it is not running."""
        supervision, self._supervision = self._supervision, None
        if supervision is not None:
            supervision.close(self.stop_steps)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _choose_program(self, home: Home) -> None:
        """Find the program, and the directory that the server will have; raises EmbeddedServerError."""

    @abstractmethod
    def _end_predecessor(self, runtime: Path | None) -> None:
        """Wait for the end of a server whose owner died; `runtime` is the owner's directory of sockets, if known."""

    @abstractmethod
    def _prepare(self, home: Home, runtime: Path) -> Sequence[str | Path]:
        """Make the files that the server needs, and return its command line."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the launched server takes connections."""

    @abstractmethod
    def _prove(self) -> None:
        """Raise EmbeddedServerError unless the server that answers is the one that was launched."""

    @abstractmethod
    def _url(self) -> str:
        """The URL of the running server, for its client library."""


def find_running(path: Path, server: str) -> tuple[Home, Path] | None:
    """The places of a home and the directory of sockets that a running server's owner has noted; None for none.

    A note is no proof: its writer may have died.
    """
    home = find_home(path)
    note = None if home is None else read_note(home.state / f"{server}.lock")
    if home is None or note is None or note.runtime is None:
        return None
    return home, note.runtime
