"""A unix socket in front of Postgres that understands one word of its protocol: COMMIT, alone or in a pipeline.

At each COMMIT of a transaction that has written an answer it asks what is to happen to the connection. Everything else
passes through unchanged.
"""

import random
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SOCKET_NAME = ".s.PGSQL.5432"
_ENDS = (b"BEGIN", b"COMMIT", b"ROLLBACK")
_SOURCE = random.Random(5)
_ANSWER = b"INSERT INTO answers"
_READY_AND_IDLE = b"Z\0\0\0\x05I"


class Cut(Enum):
    """Where a connection ends, seen from a COMMIT."""

    NEVER = auto()
    BEFORE = auto()  # COMMIT is not passed on
    WITHIN = auto()  # so many of its bytes are, from the first to the last but one
    SENT = auto()  # it is, and the connection ends at once
    REPLIED = auto()  # Postgres has answered, and nobody hears it
    AFTER = auto()  # the answer is passed on whole, and then the connection ends


class CommitProxy:
    """Listens where `url` says, passes on to the server that the given URL names; `aim` names another one."""

    def __init__(
        self, database_url: str, decide: Callable[[], Cut], between: Callable[[], None] = lambda: None
    ) -> None:
        """`decide` is asked at each COMMIT; `between` runs after it was sent (SENT) or answered (REPLIED), unheard."""
        self._decide, self._between = decide, between
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
        return make_conninfo(**{**self._parts, "host": str(self._folder)})  # type: ignore[arg-type]

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
                wire = _Wire(client, server, self._decide, self._between)
                while wire.passes():
                    pass
            except OSError:
                return


class _Wire:
    """One connection, both ways."""

    def __init__(
        self, client: socket.socket, server: socket.socket, decide: Callable[[], Cut], between: Callable[[], None]
    ) -> None:
        self._client, self._server, self._decide, self._between = client, server, decide, between
        self._messages = Messages()
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
        replied = self._reply.endswith(_READY_AND_IDLE) or not data
        if replied and self._verdict is Cut.REPLIED:
            self._between()
        elif replied:
            self._client.sendall(self._reply)
        return not replied

    def _up(self) -> bool:
        data = self._client.recv(2**16)
        for part, is_commit in self._messages.split(data):
            if is_commit:
                self._verdict = self._decide()
            if self._verdict is Cut.BEFORE:
                return False
            if self._verdict is Cut.WITHIN:
                self._server.sendall(part[: _SOURCE.randrange(1, len(part))])
                return False
            self._server.sendall(part)
            if self._verdict is Cut.SENT:
                self._between()
                return False
        return bool(data)


class Messages:
    """What a client sends, cut into messages; remembers whether the open transaction has written an answer.

    COMMIT comes as a simple query, or, in a pipeline, as Parse, Bind, Describe and Execute with the Sync that ends the
    pipeline: those five are one part here.
    """

    def __init__(self) -> None:
        self._waiting = b""
        self._type_bytes = 0  # the very first message has none
        self._statements: dict[bytes, bytes] = {}
        self._has_answer = False
        self._commit = b""

    def split(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """What is complete now, in few parts; True with a COMMIT that makes an answer last."""
        self._waiting += data
        passing = b""
        while (message := self._next()) is not None:
            kind, words = message[:1], message[5:]
            begins = self._has_answer and not self._commit and _is_commit(kind, words)
            if begins:
                yield passing, False
                passing = b""
            self._look_at(kind, words)
            if not begins and not self._commit:
                passing += message
                continue
            self._commit += message
            if kind in b"QS":
                part, self._commit = self._commit, b""
                yield part, True
        yield passing, False

    def _next(self) -> bytes | None:
        length = self._waiting[self._type_bytes : self._type_bytes + 4]
        size = self._type_bytes + int.from_bytes(length, "big")
        if len(length) < 4 or len(self._waiting) < size:
            return None
        message, self._waiting = self._waiting[:size], self._waiting[size:]
        self._type_bytes = 1
        return message

    def _look_at(self, kind: bytes, words: bytes) -> None:
        if kind == b"P":  # Parse: name, text
            name, text = words.split(b"\0", 2)[:2]
            self._statements[name] = text
            self._has_answer &= text.upper() not in _ENDS
        elif kind == b"B":  # Bind: portal, name
            self._has_answer |= self._statements.get(words.split(b"\0", 2)[1], b"").startswith(_ANSWER)
        elif kind == b"Q":
            self._has_answer &= words.rstrip(b"\0").upper() not in _ENDS


def _is_commit(kind: bytes, words: bytes) -> bool:
    """Whether a message is Query or Parse of COMMIT."""
    return (kind == b"Q" and words == b"COMMIT\0") or (kind == b"P" and words.split(b"\0", 2)[1] == b"COMMIT")
