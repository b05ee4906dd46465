"""Replies whose bodies are unpacked piece by piece, up to a bound.

A server may lie: a reply never takes more memory than its bound, even if it is tiny before it is unpacked.
"""

import zlib
from dataclasses import dataclass
from typing import Final, Protocol

import httpx

from sparing._errors import APIReplyError

GZIP: Final = "gzip"
"""The only compression that is asked for. It is unpacked here, as httpx does not bound the result."""
_GZIP_WINDOW: Final = 31  # of zlib: the header of gzip
_NOT_PACKED: Final = frozenset({"", "identity"})


class Reply(Protocol):
    """A reply with its whole body; a response of httpx is one too."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> httpx.Headers:
        """The headers; those on the length and compression of the body are as received."""

    @property
    def content(self) -> bytes:
        """The body, unpacked."""

    @property
    def request(self) -> httpx.Request:
        """The request that this reply answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeReply:
    """A reply that was received within its bounds."""

    status_code: int
    headers: httpx.Headers
    content: bytes
    request: httpx.Request


class ReplyBody:
    """The body of one reply, of at most `bytes_max`. Methods raise APIReplyError if it is too long or malformed."""

    def __init__(self, response: httpx.Response, bytes_max: int) -> None:
        """Begin a reply. Its headers state the compression, and perhaps that the body is too long."""
        self._response, self._bytes_max = response, bytes_max
        self._parts: list[bytes] = []
        self._size = 0
        packing = response.headers.get("Content-Encoding", "").strip().lower()
        self._unpacker = zlib.decompressobj(_GZIP_WINDOW) if packing in {GZIP, "x-gzip"} else None
        if self._unpacker is None and packing not in _NOT_PACKED:
            raise self._error("is packed in a way that was not asked for")
        told = response.headers.get("Content-Length", "")
        if told.isascii() and told.isdigit() and float(told) > bytes_max:
            raise self._too_long()

    def add(self, chunk: bytes) -> None:
        """Add the next bytes of the body."""
        if self._unpacker is not None:
            chunk = self._unpacked(self._unpacker, chunk)
        self._size += len(chunk)
        if self._size > self._bytes_max:
            raise self._too_long()
        self._parts.append(chunk)

    def reply(self) -> Reply:
        """The whole reply, unpacked."""
        if self._unpacker is not None and self._size and not self._unpacker.eof:
            raise self._error("is packed and cut short")
        found = self._response
        return WholeReply(
            status_code=found.status_code,
            headers=found.headers,
            content=self._parts[0] if len(self._parts) == 1 else b"".join(self._parts),
            request=found.request,
        )

    def _unpacked(self, unpacker: "zlib._Decompress", chunk: bytes) -> bytes:
        try:
            return unpacker.decompress(chunk, self._bytes_max - self._size + 1)
        except zlib.error:
            raise self._error("is not packed as it says") from None

    def _too_long(self) -> APIReplyError:
        megabytes = self._bytes_max / 2**20
        return self._error(
            f"is longer than {megabytes:.4g} MB; ask for less at once, or give the client a larger reply_bytes_max"
        )

    def _error(self, told: str) -> APIReplyError:
        return APIReplyError(f"{address_of(self._response.request)} answered with something that {told}")


def address_of(request: httpx.Request) -> str:
    """The address of a request for error messages, without its query and credentials."""
    return str(request.url.copy_with(query=None, username=None, password=None))
