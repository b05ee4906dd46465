"""Errors of the embedded servers.

EmbeddedServerError          cannot find, start, reach or stop a server; the message says what to do
└── HomeInUseError           another process already runs this server of this home
"""

from pathlib import Path


class EmbeddedServerError(RuntimeError):
    """An embedded server cannot be found, started, reached or stopped."""


class HomeInUseError(EmbeddedServerError):
    """Another process already runs this server; attach to it, or stop it first."""

    def __init__(self, state: Path, server: str, holder_pid: int | None) -> None:
        """Name the server, the directory that is taken and, when known, the process that holds it."""
        holder = "another process" if holder_pid is None else f"process {holder_pid}"
        super().__init__(f"{holder} already runs the embedded {server} of {state}; stop it first or attach to it")
        self.state = state
        self.server = server
        self.holder_pid = holder_pid
