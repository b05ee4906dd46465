"""The sources of an upload: a path, bytes or an open file, plain or gzipped; and which of the four formats it is."""

import gzip
import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from sparing._bodies import chunks
from sparing._requests import Content

Source = str | os.PathLike[str] | bytes | BinaryIO
Opened = Callable[[], IO[bytes]]

CSV = "text/csv"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"

_BY_SUFFIX = {".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON, ".parquet": PARQUET, ".arrows": ARROW}
_BY_MAGIC = {b"PAR1": PARQUET, b"\xff\xff\xff\xff": ARROW}
_GZIP_MAGIC = b"\x1f\x8b"


def content_of(source: Source) -> tuple[Callable[[], Content], str]:
    """How to read `source` from its start, unpacked (each try of an upload does so anew), and its content type.

    Raises OSError when a path cannot be read.
    """
    opened, content_type, is_packed = opened_of(source)
    # Chunks and not the file object: httpx would take the packed file's length for the body's.
    return (lambda: chunks(opened())) if is_packed else opened, content_type


def opened_of(source: Source) -> tuple[Opened, str, bool]:
    """How to open `source`, unpacked, as often as needed; its content type; and whether it is a packed file.

    The type follows from a path's suffix, otherwise from the first bytes, and is CSV when these say nothing. An open
    file is read into memory, because it may not be possible to rewind it. Raises OSError when a path cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return _opened_path(Path(source))
    content = source if isinstance(source, bytes) else source.read()
    if content.startswith(_GZIP_MAGIC):
        content = gzip.decompress(content)
    return lambda: io.BytesIO(content), _sniffed(content[:4]), False


def _opened_path(where: Path) -> tuple[Opened, str, bool]:
    with where.open("rb") as file:
        head = file.read(4)
    if not head.startswith(_GZIP_MAGIC):
        return lambda: where.open("rb"), _BY_SUFFIX.get(where.suffix.lower(), _sniffed(head)), False
    with gzip.open(where) as unpacked:
        head = unpacked.read(4)
    return partial(_unpacked, where), _BY_SUFFIX.get(Path(where.stem).suffix.lower(), _sniffed(head)), True


def _unpacked(where: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(where))


def _sniffed(head: bytes) -> str:
    return _BY_MAGIC.get(head, NDJSON if head.startswith(b"{") else CSV)
