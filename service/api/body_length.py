"""The length that a request declares for its body."""

import re
from collections.abc import Iterable
from typing import Final

LENGTH_DIGITS_MAX: Final = 18
_LENGTH: Final = re.compile(rb"[0-9]{1,%d}" % LENGTH_DIGITS_MAX)

SMALL_BODY_BYTES: Final = 4096
"""A body of at most this length is read in less time than handing it to another thread and back takes."""


def length_of(value: bytes) -> int | None:
    """The number of bytes that a Content-Length states; None where no body may have that length."""
    return int(value) if _LENGTH.fullmatch(value) else None


def declared_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The bytes that these headers declare; None where they declare no length."""
    stated = dict(headers).get(b"content-length")
    return None if stated is None else length_of(stated)


def is_small(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Tell whether these headers declare a small body."""
    length = declared_length(headers)
    return length is not None and length <= SMALL_BODY_BYTES
