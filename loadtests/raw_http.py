"""HTTP/1.1 over asyncio streams, with almost no cost: requests as bytes, responses by their Content-Length."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


Address = tuple[str, int]


class Cut(Exception):
    """The connection ended before a response was whole, or no response came in time."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A response."""

    status: int
    head: bytes
    body: bytes

    @property
    def closes(self) -> bool:
        """Tell whether this is the last reply of its connection."""
        return b"\r\nconnection: close" in self.head.lower()


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, address: Address) -> "Wire":
        """Open a connection. Raises Cut."""
        try:
            async with asyncio.timeout(10):
                return cls(*await asyncio.open_connection(*address, limit=2**24))
        except (OSError, TimeoutError) as error:
            raise Cut from error

    async def ask(self, request: bytes, *, within_s: float = 60) -> Reply:
        """Send a request and return its response. Raises Cut."""
        try:
            async with asyncio.timeout(within_s):
                self.writer.write(request)
                head = await self.reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await self.reader.readexactly(0 if length is None else int(length[1]))
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            raise Cut from error
        return Reply(status=int(head[9:12]), head=head, body=body)

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):
            self.writer.close()

    def reset(self) -> None:
        """End the connection at once, with data that has not left yet."""
        self.writer.transport.abort()


def request_of(method: str, target: str, key: str | None, *, body: bytes | None = None, more: str = "") -> bytes:
    """A plain request as bytes; `more` are whole header lines."""
    lines = f"{method} {target} HTTP/1.1\r\nHost: x\r\n{more}"
    lines += "" if key is None else f"Authorization: Bearer {key}\r\n"
    lines += "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return lines.encode() + b"\r\n" + (body or b"")
