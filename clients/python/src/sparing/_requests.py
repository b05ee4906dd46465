"""Requests as values. `Sender` and `AsyncSender` send them; nothing here does."""

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
"""A function that is called with the number of bytes sent so far and of all bytes, None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A query or an upload with its idempotency key, by which it is carried out once even if it is sent again."""

    dataset: str
    idempotency_key: str
    document: Mapping[str, object]  # a query as it is sent; of an upload everything but the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. A callable `content` is called for each try, so that a file is read from its start."""

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
        """The most bytes of this request's reply: `reply_bytes_max`, or more for a batch or a file."""
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
    """The address `/v1/` with the parts, each escaped. Raises ValueError for an empty part, `.` and `..`.

    These would lead to another resource, as escaping does not stop clients and proxies from resolving dots.
    """
    for part in parts:
        if part in {"", ".", ".."}:
            raise ValueError(f"no dataset, table, query or principal is called {part!r}")
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def get(where: str, **params: str | int) -> Request:
    """The request that reads the resource at `where`."""
    return Request(method="GET", path=where, repeat=Repeat.READ, params=params)


def post(where: str, body: object = None, *, repeat: Repeat = Repeat.ONCE) -> Request:
    """The request that posts the JSON document `body`, or an empty body."""
    content, kind = (None, None) if body is None else (json_of(body), JSON)
    return Request(method="POST", path=where, repeat=repeat, content=content, content_type=kind)


def patch(where: str, body: object, *, method: str = "PATCH", **params: str) -> Request:
    """The request that changes the resource at `where`; repeating it has no further effect."""
    return dataclasses.replace(post(where, body, repeat=Repeat.READ), method=method, params=params)


def delete(where: str, *, repeat: Repeat = Repeat.READ, **params: str) -> Request:
    """The request that deletes the resource at `where`."""
    return Request(method="DELETE", path=where, repeat=repeat, params=params)
