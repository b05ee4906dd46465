"""Requests as values. Nothing here sends: a sender does, or its asynchronous twin."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Final
from urllib.parse import quote

from sparing._constants import FILE_BYTES_MAX
from sparing._retry import Repeat
from sparing._wire import json_of

JSON: Final = "application/json"
Content = bytes | IO[bytes] | Iterable[bytes]
Progress = Callable[[int, int | None], None]
"""Takes the number of bytes sent so far, and of all, None where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A query or an upload that its idempotency key makes one, however often it is sent."""

    dataset: str
    idempotency_key: str
    document: Mapping[str, object]  # a query as it is sent; of an upload everything but the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. A callable `content` is called once per try, so that a file starts anew."""

    method: str
    path: str
    repeat: Repeat
    params: Mapping[str, str | int] | None = None
    content: bytes | Callable[[], Content] | None = None
    content_type: str | None = None
    idempotency_key: str | None = None
    accept: str | None = None  # the forms of the reply; None: JSON
    keyed: tuple[Keyed, ...] = ()  # the queries or the upload that it carries
    progress: Progress | None = None  # told of the bytes of `content`
    replies: int = 1  # the reply may be as long as so many
    is_for_file: bool = False  # the reply is a file, of any length, which takes its time

    def bytes_max(self, reply_bytes_max: int) -> int:
        """The most bytes that the reply may have, of which an ordinary one has `reply_bytes_max`."""
        return FILE_BYTES_MAX if self.is_for_file else reply_bytes_max * self.replies

    def headers(self, length: int | None) -> dict[str, str]:
        """The headers of this request alone; `length` is that of the content, None if unknown."""
        named = {
            "Content-Type": self.content_type,
            "Idempotency-Key": self.idempotency_key,
            "Accept": self.accept,
            "Accept-Encoding": "identity" if self.is_for_file else None,
            "Content-Length": None if length is None else str(length),
        }
        return {name: value for name, value in named.items() if value is not None}


def path(*parts: str) -> str:
    """`/v1/` and the parts, each escaped. Raises ValueError for a part that an address cannot hold.

    No escape keeps `.` and `..` from being resolved on their way: the address would be another resource's.
    """
    for part in parts:
        if part in {"", ".", ".."}:
            raise ValueError(f"no dataset, table, query or principal is called {part!r}")
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def get(where: str, **params: str | int) -> Request:
    """Read the resource at `where`."""
    return Request(method="GET", path=where, repeat=Repeat.READ, params=params)


def post(where: str, body: object = None, *, repeat: Repeat = Repeat.ONCE) -> Request:
    """Post the JSON document `body`, or nothing."""
    content, kind = (None, None) if body is None else (json_of(body), JSON)
    return Request(method="POST", path=where, repeat=repeat, content=content, content_type=kind)


def patch(where: str, body: object, *, method: str = "PATCH", **params: str) -> Request:
    """Change what is at `where`; a repeated change changes nothing more."""
    return dataclasses.replace(post(where, body, repeat=Repeat.READ), method=method, params=params)


def delete(where: str, *, repeat: Repeat = Repeat.READ, **params: str) -> Request:
    """Delete what is at `where`."""
    return Request(method="DELETE", path=where, repeat=repeat, params=params)
