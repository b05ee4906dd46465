"""A unix socket in front of Postgres that asks what is to happen at each COMMIT of an answer, or at each round trip.

Everything else passes through unchanged.
"""

import random
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from tests.faults.messages import Commits, RoundTrips, spoilt

SOCKET_NAME = ".s.PGSQL.5432"
_FLUSH = b"H\0\0\0\x04"
_SOURCE = random.Random(5)

Splitter = Commits | RoundTrips


class Cut(Enum):
    """The places at which a connection ends, seen from a COMMIT, or from another statement that is named."""

    NEVER = auto()
    BEFORE = auto()  # it is not passed on
    WITHIN = auto()  # so many of its bytes are, from the first to the last but one
    SENT = auto()  # it is, and the connection ends at once
    REPLIED = auto()  # Postgres has answered, and no client hears it
    AFTER = auto()  # the answer is passed on whole, and then the connection ends
    ERROR = auto()  # a statement in it is spoilt, which Postgres refuses; the connection stays


class CuttingProxy:
    """Listens where `url` says, passes on to the server that the given URL names; `aim` names another one."""

    def __init__(
        self,
        database_url: str,
        decide: Callable[[], Cut],
        between: Callable[[], None] = lambda: None,
        reads: type[Splitter] = Commits,
    ) -> None:
        """`decide` is asked at each part that `reads` sets apart.

        `between` runs after it was sent (SENT) or answered (REPLIED), unheard.
        """
        self._decide, self._between, self._reads = decide, between, reads
        self._folder = Path(tempfile.mkdtemp(prefix="sparing-cut-"))
        self._parts = conninfo_to_dict(database_url)
        self.aim(database_url)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / SOCKET_NAME))
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    @property
    def url(self) -> str:
        """The database, through here."""
        account, password, name = (quote(str(self._parts[each])) for each in ("user", "password", "dbname"))
        return f"postgresql://{account}:{password}@/{name}?host={quote(str(self._folder), safe='')}"

    def aim(self, database_url: str) -> None:
        """Pass new connections on to this server from now on."""
        self._target = str(Path(str(conninfo_to_dict(database_url)["host"])) / SOCKET_NAME)

    def close(self) -> None:
        """Take no more connections; those that are open end with their own sides."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[client], name="proxied", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            try:
                server.connect(self._target)
                wire = _Wire(client, server, self._decide, self._between, self._reads())
                while wire.passes():
                    pass
            except OSError:
                return


class _Wire:
    """One connection, both ways."""

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        decide: Callable[[], Cut],
        between: Callable[[], None],
        splitter: Splitter,
    ) -> None:
        self._client, self._server, self._decide, self._between = client, server, decide, between
        self._splitter = splitter
        self._verdict = Cut.NEVER
        self._reply = b""

    def passes(self) -> bool:
        """Pass on what has come; False when the connection is to end."""
        ready, _, _ = select.select([self._client, self._server], [], [])
        return (self._server not in ready or self._down()) and (self._client not in ready or self._up())

    def _down(self) -> bool:
        data = self._server.recv(2**16)
        if self._verdict is Cut.NEVER:
            self._client.sendall(data)
            return bool(data)
        self._reply += data
        replied = _is_reply(self._reply) or not data
        if replied and self._verdict is Cut.REPLIED:
            self._between()
        elif replied:
            self._client.sendall(self._reply)
        return not replied

    def _up(self) -> bool:
        data = self._client.recv(2**16)
        return all(self._passes_up(part, is_asked) for part, is_asked in self._splitter.split(data)) and bool(data)

    def _passes_up(self, part: bytes, is_asked: bool) -> bool:
        if is_asked:
            self._verdict = self._decide()
        if self._verdict is Cut.BEFORE:
            return False
        if self._verdict is Cut.ERROR:
            self._verdict, part = Cut.NEVER, spoilt(part)
        if self._verdict is Cut.WITHIN:
            self._server.sendall(part[: _SOURCE.randrange(1, len(part))])
            return False
        self._server.sendall(part)
        if self._verdict is Cut.SENT or (self._verdict is Cut.REPLIED and part[-5:] == _FLUSH):
            self._between()
            return False
        return True


def _is_reply(data: bytes) -> bool:
    """Tell whether a server has said all that a client waits for: ready, or ready to take the rows of a COPY."""
    while len(data) >= 5:
        kind, size = data[:1], 1 + int.from_bytes(data[1:5], "big")
        if kind in {b"Z", b"G"} and len(data) >= size:
            return True
        data = data[size:]
    return False
