"""One kept HTTP/1.1 connection to another process, for one exchange at a time.

It is an asyncio protocol with httptools, because a general HTTP client takes several times as long as a sparse count
(docs/decisions/0025-one-owner-for-each-dataset.md has the figures).
"""

import asyncio
import socket
from typing import Final, cast

import httptools

from service.api.forwarding.request_head import RawHeaders

BUFFERED_BYTES_MAX: Final = 256 * 1024
"""How many bytes of a response may wait to be taken; beyond that no more is read."""

SILENCE_MS: Final = 10_000
"""How long the machine at the other end may acknowledge nothing."""


class ConnectionLost(Exception):
    """The connection ended before the response was whole, or brought something other than the response awaited."""


class PeerConnection(asyncio.Protocol):
    """A connection.

    To use it, write a request, await `head`, then `take` until the response is whole, and `begin` again.
    """

    def __init__(self) -> None:
        self.is_lost = self._is_broken = False
        self._transport: asyncio.Transport | None = None
        self._news, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self.begin()

    def begin(self) -> None:
        """Get ready for the next response."""
        self._parser = httptools.HttpResponseParser(self)
        self._headers: RawHeaders = []
        self._parts: list[bytes] = []
        self._waiting_bytes, self._has_head = 0, False
        self.is_whole = self.is_kept_alive = False

    @property
    def is_reusable(self) -> bool:
        """Tell whether its response is whole and another request may follow: nothing waits, nothing came besides."""
        return self.is_whole and self.is_kept_alive and self._writable.is_set() and not self.is_lost

    # The request

    def write(self, data: bytes) -> None:
        """Send data, now or as soon as the other end takes it."""
        if self._transport is not None and not self.is_lost:
            self._transport.write(data)

    async def drained(self) -> None:
        """Wait until what was written has mostly left."""
        await self._writable.wait()

    # The response

    async def head(self) -> tuple[int, RawHeaders]:
        """Status and headers. Raises ConnectionLost."""
        while not self._has_head or self._is_broken:
            await self._notice()
        return self._parser.get_status_code(), self._headers

    async def take(self) -> tuple[bytes, bool]:
        """The next part of the body, and whether it is the last. Raises ConnectionLost."""
        while self._is_broken or not (self._parts or self.is_whole):
            await self._notice()
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        if self._waiting_bytes > BUFFERED_BYTES_MAX and self._transport is not None:
            self._transport.resume_reading()
        self._waiting_bytes = 0
        return data, self.is_whole

    def close(self) -> None:
        """End the connection at once; to the other end its client leaves."""
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()
        self._news.set()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the connection is open."""
        self._transport = cast(asyncio.Transport, transport)
        wire: socket.socket = transport.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_MS // 2000)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_MS)

    def data_received(self, data: bytes) -> None:
        """Read part of the response. Bytes when no response is awaited, or a second response, break the connection."""
        self._is_broken |= self.is_whole
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._is_broken = True
        if self._is_broken:
            self.close()
            return
        if self._waiting_bytes > BUFFERED_BYTES_MAX and self._transport is not None:
            self._transport.pause_reading()
        self._news.set()

    def connection_lost(self, _error: Exception | None) -> None:
        """Note that the connection is over, for whatever reason."""
        self.is_lost = True
        self._writable.set()
        self._news.set()

    def pause_writing(self) -> None:
        """The other end takes less than it is sent."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It takes again."""
        self._writable.set()

    # Called by the parser

    def on_message_begin(self) -> None:
        """Note that a response begins; only one may."""
        self._is_broken |= self.is_whole

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one more header."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Note that the head is whole, and the body begins."""
        self._has_head = True

    def on_body(self, data: bytes) -> None:
        """Keep part of the body."""
        self._parts.append(data)
        self._waiting_bytes += len(data)

    def on_message_complete(self) -> None:
        """Note that the response is whole."""
        self.is_whole, self.is_kept_alive = True, self._parser.should_keep_alive()

    # Within

    async def _notice(self) -> None:
        if self.is_lost:
            raise ConnectionLost
        self._news.clear()
        await self._news.wait()
