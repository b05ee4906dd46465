"""Between the service and its Postgres: a proxy that notes the direction, kind and size of every message."""

import select
import socket
from dataclasses import dataclass
from typing import Final

from tests.faults.messages import Messages
from tests.faults.proxy import Cut, CuttingProxy

ROW: Final = b"D"
FLUSH: Final = b"H"  # a read sends none of this kind
SENT, READ = "sent", "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One message, its size without a statement's name.

    `text` is the statement that a Parse or a Query brings, `bound` the one that a Bind names.
    """

    direction: str
    kind: bytes
    size: int
    text: str = ""
    bound: str = ""


class NotingProxy(CuttingProxy):
    """Passes everything on unchanged, and notes it."""

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url, lambda: Cut.NEVER)
        self.notes: list[Note] = []

    def taken(self) -> list[Note]:
        """The notes since the last call, of messages that were passed on."""
        taken, self.notes = self.notes, []
        return taken

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._target)
            ends = {client: (server, SENT, Messages()), server: (client, READ, Messages(type_bytes=1))}
            prepared: dict[bytes, bytes] = {}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(2**16)
                    if not data:
                        return
                    other, direction, messages = ends[end]
                    # First, so that a reply that has been heard has been noted.
                    self.notes += [_note(prepared, direction, *message) for message in messages.take(data)]
                    other.sendall(data)


def _note(prepared: dict[bytes, bytes], direction: str, message: bytes, kind: bytes, words: bytes) -> Note:
    """The note of a message; `prepared` are the statements of its connection, by name."""
    if direction == READ:
        return Note(direction=direction, kind=kind, size=len(message))
    name = _statement_name(kind, words)
    text, bound = b"", prepared.get(name, b"") if kind == b"B" else b""
    if kind == b"P":
        text = prepared[name] = words.split(b"\0", 2)[1]
    elif kind == b"Q":
        text = words.rstrip(b"\0")
    size = len(message) - len(name)
    return Note(direction=direction, kind=kind, size=size, text=text.decode(), bound=bound.decode())


def _statement_name(kind: bytes, words: bytes) -> bytes:
    """The name of a prepared statement, which is numbered by the process and gets longer at the tenth."""
    if kind == b"P":
        return words.split(b"\0", 1)[0]
    return words.split(b"\0", 2)[1] if kind == b"B" else b""


def sizes(notes: list[Note]) -> dict[str, list[tuple[bytes, int]]]:
    """By direction: kind and size of every message, in order.

    A Flush asks for nothing; psycopg sends one more or less as replies come sooner or later.
    """
    return {
        direction: [(note.kind, note.size) for note in notes if note.direction == direction and note.kind != FLUSH]
        for direction in (SENT, READ)
    }
