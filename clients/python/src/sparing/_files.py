"""The sources of an upload: a path, bytes or an open file, plain or gzipped, in one of four formats."""

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, TextIO, cast

from sparing._bodies import chunks
from sparing._requests import Content

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | TextIO
Opened = Callable[[], IO[bytes]]

CSV = "text/csv"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"

_BY_SUFFIX = {".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON, ".parquet": PARQUET, ".arrows": ARROW}
_BY_MAGIC = {b"PAR1": PARQUET, b"\xff\xff\xff\xff": ARROW}
_GZIP_MAGIC = b"\x1f\x8b"


def content_of(source: Source) -> tuple[Callable[[], Content], str]:
    """A function that opens `source`, unpacked, from its start, for each try of an upload; and the content type.

    Raises OSError when a path cannot be read.
    """
    opened, content_type, is_packed = opened_of(source)
    # Chunks and not the file object: httpx would take the packed file's length for the body's.
    return (lambda: _parts(str(source), opened())) if is_packed else opened, content_type


def opened_of(source: Source) -> tuple[Opened, str, bool]:
    """A function that opens `source`, unpacked; its content type; and a flag that is true if it is gzipped.

    The type follows from a path's suffix, otherwise from the first bytes, and is CSV if neither decides. An open file
    is read into memory, as it may not be possible to rewind it. Raises OSError if a path cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return _opened_path(Path(source))
    content = _content(source)
    if content.startswith(_GZIP_MAGIC):
        with _unpacking("the data"):
            content = gzip.decompress(content)
    return lambda: io.BytesIO(content), _sniffed(content[:4]), False


def _content(source: bytes | bytearray | memoryview | BinaryIO | TextIO) -> bytes:
    """The bytes of an open file or of a source in memory; text becomes UTF-8."""
    read = getattr(source, "read", None)
    content = source if read is None else read()
    if isinstance(content, str):
        return content.encode()
    if not isinstance(content, bytes | bytearray | memoryview):
        raise TypeError(
            "rows are a data frame, a list of mappings from column to value, a mapping from column to values, a path,"
            f" bytes or an open file, not a {type(source).__name__}"
        )
    return bytes(content)


@contextlib.contextmanager
def _unpacking(what: object) -> Iterator[None]:
    """A context that turns errors of gzip into a ValueError that names the source."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{what} is gzipped and broken: {error}") from error


def _parts(where: str, content: IO[bytes]) -> Iterator[bytes]:
    with _unpacking(where):
        yield from chunks(content)


def _opened_path(where: Path) -> tuple[Opened, str, bool]:
    with where.open("rb") as file:
        head = file.read(4)
    if not head.startswith(_GZIP_MAGIC):
        return lambda: where.open("rb"), _BY_SUFFIX.get(where.suffix.lower(), _sniffed(head)), False
    with _unpacking(where), gzip.open(where) as unpacked:
        head = unpacked.read(4)
    return (
        lambda: cast("IO[bytes]", gzip.open(where)),
        _BY_SUFFIX.get(Path(where.stem).suffix.lower(), _sniffed(head)),
        True,
    )


def _sniffed(head: bytes) -> str:
    return _BY_MAGIC.get(head, NDJSON if head.startswith(b"{") else CSV)
