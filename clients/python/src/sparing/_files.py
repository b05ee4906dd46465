"""The sources of an upload: a path, bytes or an open file, plain or gzipped; and which of the four formats it is."""

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from sparing._sender import Content

__all__ = ["Source", "content_of"]

Source = str | os.PathLike[str] | bytes | BinaryIO

CSV = "text/csv"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"

_BY_SUFFIX = {".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON, ".parquet": PARQUET, ".arrows": ARROW}
_BY_MAGIC = {b"PAR1": PARQUET, b"\xff\xff\xff\xff": ARROW}
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 65_536


def content_of(source: Source) -> tuple[Callable[[], Content], str]:
    """How to read `source` from its start, decompressed (each try of an upload does so anew), and its content type.

    The type follows from a path's suffix, otherwise from the first bytes, and is CSV when these say nothing. An open
    file is read into memory, because it may not be possible to rewind it. Raises OSError when a path cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return _content_of_path(Path(source))
    content = source if isinstance(source, bytes) else source.read()
    if content.startswith(_GZIP_MAGIC):
        content = gzip.decompress(content)
    return lambda: content, _sniffed(content[:4])


def _content_of_path(where: Path) -> tuple[Callable[[], Content], str]:
    with where.open("rb") as file:
        head = file.read(4)
    if not head.startswith(_GZIP_MAGIC):
        return lambda: where.open("rb"), _BY_SUFFIX.get(where.suffix.lower(), _sniffed(head))
    with gzip.open(where) as unpacked:
        head = unpacked.read(4)
    return lambda: _unpacked(where), _BY_SUFFIX.get(Path(where.stem).suffix.lower(), _sniffed(head))


def _unpacked(where: Path) -> Iterator[bytes]:
    # Chunks and not the file object: httpx would take the packed file's length for the body's.
    with gzip.open(where) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _sniffed(head: bytes) -> str:
    return _BY_MAGIC.get(head, NDJSON if head.startswith(b"{") else CSV)
