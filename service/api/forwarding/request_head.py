"""The head of a request as one process sends it to another: made anew from what this process has understood.

Headers that the service does not read are left out, and `Connection` names none of those that it does read. So nothing
that a client writes decides where a request ends.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from starlette.types import Scope

from service.api.body_length import length_of
from service.api.problems import Refusal, request_id_of

HEADERS_READ: Final = frozenset(
    b"accept accept-encoding authorization content-encoding content-type cookie host idempotency-key if-none-match"
    b" sec-fetch-site x-sparing-request".split()
)
"""The request headers that the service reads, beside those of `HEADERS_MADE`. No other place lists them."""

REPLY_TO: Final = b"sparing-reply-to"
"""The header of a word by which a client recognises the reply to its request. The process that it asked repeats it."""

HEADERS_MADE: Final = frozenset({b"content-length", REPLY_TO, b"transfer-encoding", b"x-request-id"})
"""The headers that each process writes by itself: the framing of the body, the request's id, and the client's word."""

HOP_HEADER: Final = b"x-sparing-hop"
"""The header by which one process proves to another that it sends this request (`service.api.forwarding.hop`)."""

RawHeaders = list[tuple[bytes, bytes]]

_TARGET: Final = re.compile(rb"/[!-~]*")
_VALUES: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """A request line, the headers to pass on, and the length of the body, which is None if it comes in chunks.

    `dropped` is the number of headers that are not passed on.
    """

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body_bytes: int | None
    dropped: int

    def encoded(self) -> bytes:
        """The head on the wire, without the empty line that ends it."""
        lines = [b"%b %b HTTP/1.1" % (self.method, self.target)]
        lines += [b"%b: %b" % header for header in self.headers]
        lines.append(
            b"transfer-encoding: chunked" if self.body_bytes is None else b"content-length: %d" % self.body_bytes
        )
        return b"\r\n".join([*lines, b""])


def head_of(scope: Scope) -> RequestHead:
    """The head of a request that this process has received.

    Raises a `malformed-request` refusal for a target, a value or a length that no head may hold.
    """
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    target = path + b"?" + scope["query_string"] if scope["query_string"] else path
    passed: RawHeaders = []
    body_bytes: int | None = 0
    dropped, is_sound = 0, True
    for name, value in scope["headers"]:
        if name in HEADERS_READ:
            passed.append((name, value))
        elif name == b"transfer-encoding":
            body_bytes = None
        elif name == b"content-length":
            body_bytes = length_of(value)
            is_sound = body_bytes is not None
        elif name not in HEADERS_MADE and name != HOP_HEADER:
            dropped += 1
    values = b"".join([value for _, value in passed])
    if not (is_sound and _TARGET.fullmatch(target) and _VALUES.fullmatch(values)):
        raise Refusal("malformed-request")
    return RequestHead(
        method=scope["method"].encode(),
        target=target,
        headers=(*passed, (b"x-request-id", request_id_of(scope).encode())),
        body_bytes=body_bytes,
        dropped=dropped,
    )
