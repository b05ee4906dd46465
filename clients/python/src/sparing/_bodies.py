"""The body of a request as one try sends it: opened anew, measured, read in chunks, and closed."""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparing._requests import Content, Progress

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes to send in one try; `length` is their number, None if it is unknown before they are read."""

    content: Content
    length: int | None

    def close(self) -> None:
        """Close the content, if it is a file."""
        getattr(self.content, "close", lambda: None)()


@dataclass(slots=True)
class Sent:
    """A counter of the bytes sent so far, which reports them and `total` to `progress`."""

    progress: Progress | None
    total: int | None
    sent: int = 0

    def add(self, chunk: bytes) -> None:
        """Count a chunk that was sent, and report; an empty chunk reports the beginning."""
        self.sent += len(chunk)
        if self.progress is not None:
            self.progress(self.sent, self.total)


def opened(content: bytes | Callable[[], Content]) -> Body:
    """The body of one try."""
    if isinstance(content, bytes):
        return Body(content, len(content))
    found = content()
    return Body(found, _size(found))


def chunks(content: Content) -> Iterator[bytes]:
    """The bytes of a content in parts; a file is closed at the end."""
    if isinstance(content, bytes):
        content = io.BytesIO(content)
    read = getattr(content, "read", None)
    if read is None:
        yield from content
        return
    try:
        while chunk := read(_CHUNK_BYTES):
            yield chunk
    finally:
        getattr(content, "close", lambda: None)()


def _size(content: Content) -> int | None:
    """The number of bytes, or None if it is unknown before they are read."""
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, io.BytesIO | io.BufferedReader) and content.seekable():
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        return size
    return None
