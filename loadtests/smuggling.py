"""The known forms in which one request hides in another, as bytes for a raw socket.

All of them rely on two programs that read the same bytes and see the end of a request in different places (RFC 9112,
11.2). Each form carries a hidden request that no client has sent. Either it is one of the attacker's own, on a route of
no other request. Or it is the beginning of an act, whose last header swallows the head of the next request on the
connection, and so acts with that request's credential. The cut forms carry a query that is never whole.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

DATASET: Final = "d"
QUERIES: Final = f"/v1/datasets/{DATASET}/queries"
CUT_SIGMA: Final = 777.0
"""The noise of the query that is always cut before its end."""
HIDDEN_ROUTES: Final = (
    "GET /v1/allowances",
    "POST /v1/me/erasure/{dataset}",
    "POST /v1/datasets/{dataset}/verification",
)
"""The routes of the hidden requests; no other request goes to them."""

# What forwarding reads or copies, and what ends a message.
_NOMINATED: Final = (
    "content-length transfer-encoding host authorization cookie idempotency-key content-type accept content-encoding "
    "accept-encoding x-request-id x-sparing-hop x-sparing-challenge expect origin te trailer upgrade if-none-match "
    "last-event-id range user-agent content-length,transfer-encoding"
).split()
_CODINGS: Final = (
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding:chunked",
    b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: identity, chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding:\r\n chunked",
    b" Transfer-Encoding: chunked",
    b"X: y\r\n\tTransfer-Encoding: chunked",
    b"X: y\nTransfer-Encoding: chunked",
    b"X: y\rTransfer-Encoding: chunked",
    b"Transfer-Encoding: \x0bchunked",
    b"Transfer-Encoding: chunked\x0b",
    b"Transfer-Encoding: chunked\x00",
    b'Transfer-Encoding: "chunked"',
    b"Transfer-Encoding: chunked;q=1",
    b"Transfer-Encoding: CHUNKED",
    b"Transfer-Encoding\x00: chunked",
    b"Transfer-Encoding: chun\xc5\xbfed",
)
_LENGTHS: Final = (
    "+{n}", "-{n}", "0{n}", "0x{n:x}", "{n}, {n}", "{n}, 0", "0, {n}", "{n},", "{n};x", "{n}\x0b", "{n}\t", "{n}.0",
    "1_{n}", "{n}\x00", "{n} 0", "-1", "1e2", "18446744073709551616", "99999999999999999999", "4294967296", "\xb2", "",
)  # fmt: skip
_SIZES: Final = (
    b"-1", b"+5", b"0x5", b"5 ", b" 5", b"5;a=b", b'5;a="\r\n"', b"5;a\nb", b"5;" + b"a" * 9000, b"5\x00", b"5_0",
    b"FFFFFFFFFFFFFFFF", b"FFFFFFFFFFFFFFFFF", b"10000000000000005", b"80000000", b"7FFFFFFFFFFFFFFF", b"5\r", b"",
    b"g", b"00000000000000000000000005", b"5\t;x", b"5;\x0b",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Form:
    """Bytes to send, piece by piece, and how the connection ends."""

    family: str
    name: str
    pieces: tuple[bytes, ...]
    is_cut: bool = False
    """The connection ends right after the last piece, by a reset, instead of after a reply."""
    is_closed: bool = False
    """The connection ends right after the last piece, in the ordinary way."""


@dataclass(frozen=True, kw_only=True)
class Attacker:
    """An analyst with a key."""

    key: str

    def hidden(self) -> tuple[bytes, ...]:
        """The hidden requests."""
        own, *acts = (route.replace("{dataset}", DATASET).encode() for route in HIDDEN_ROUTES)
        whole = b"%b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n\r\n" % (own, self.key.encode())
        return (whole, *(b"%b HTTP/1.1\r\nX-Swallow: " % act for act in acts))

    def head(self, *lines: bytes, method: str = "POST", target: str = QUERIES, version: str = "HTTP/1.1") -> bytes:
        """A head with the attacker's credential. It has no length unless a line states one."""
        fixed = [
            f"{method} {target} {version}".encode(),
            b"Host: x",
            b"Authorization: Bearer " + self.key.encode(),
            b"Content-Type: application/json",
            b"Idempotency-Key: smuggled",
        ]
        return b"\r\n".join([*fixed, *lines, b"", b""])


def forms(attacker: Attacker) -> Iterator[Form]:
    """All forms."""
    for hidden in attacker.hidden():
        for family, made in (
            ("nominated headers", _nominations(attacker, hidden)),
            ("CL.TE, TE.CL, TE.TE", _codings(attacker, hidden)),
            ("CL.0 and early replies", _unread_bodies(attacker, hidden)),
            ("lengths", _lengths(attacker, hidden)),
            ("chunks and trailers", _chunks(attacker, hidden)),
            ("lines, NUL and folds", _lines(attacker, hidden)),
            ("expect and upgrade", _expectations(attacker, hidden)),
            ("targets and hosts", _targets(attacker, hidden)),
            ("versions", _versions(attacker, hidden)),
            ("pipelines", _pipelines(attacker, hidden)),
        ):
            for name, pieces in made:
                yield Form(family=family, name=name, pieces=(pieces,) if isinstance(pieces, bytes) else tuple(pieces))
        yield from _abandoned(attacker, hidden)
    yield from _cuts(attacker)


Made = Iterator[tuple[str, bytes | Iterable[bytes]]]


def _length(body: bytes) -> bytes:
    return b"Content-Length: %d" % len(body)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _nominations(attacker: Attacker, hidden: bytes) -> Made:
    chunked = _chunk(hidden) + b"0\r\n\r\n"
    for name in _NOMINATED:
        for pattern in ("keep-alive, {}", "{}, x", "close, {}", "{}\r\nConnection: keep-alive", "KEEP-ALIVE ,{} ,,"):
            connection = b"Connection: " + pattern.format(name).encode()
            yield f"{connection!r}, length", attacker.head(connection, _length(hidden)) + hidden
            yield f"{connection!r}, chunked", attacker.head(connection, b"Transfer-Encoding: chunked") + chunked
        connection = b"Connection: " + name.encode()
        yield f"{connection!r}, in two", (attacker.head(connection, _length(hidden)), hidden)
        for header in (b"Proxy-Connection", b"Keep-Alive", b"X-Sparing-Hop"):
            yield f"{header!r}: {name}", attacker.head(header + b": " + name.encode(), _length(hidden)) + hidden


def _codings(attacker: Attacker, hidden: bytes) -> Made:
    te_first, cl_first = b"0\r\n\r\n" + hidden, _chunk(hidden) + b"0\r\n\r\n"
    for coding in _CODINGS:
        yield f"CL.TE {coding!r}", attacker.head(_length(te_first), coding) + te_first
        yield f"TE.CL {coding!r}", attacker.head(coding, b"Content-Length: 4") + cl_first
        yield f"TE.0 {coding!r}", attacker.head(coding, b"Content-Length: 0") + cl_first
        yield f"TE alone {coding!r}", attacker.head(coding) + cl_first
        yield f"TE.TE {coding!r}", attacker.head(b"Transfer-Encoding: chunked", coding) + cl_first
        yield f"TE, length of all {coding!r}", attacker.head(coding, _length(cl_first)) + cl_first


def _unread_bodies(attacker: Attacker, hidden: bytes) -> Made:
    targets = ("/livez", "/sign-in", "/v1/session", f"/v1/datasets/{DATASET}/none", "/none", f"{QUERIES}/preview", "/")
    for target in targets:
        for method in ("GET", "HEAD", "OPTIONS", "DELETE", "PUT", "TRACE", "BREW"):
            yield f"{method} {target}", attacker.head(_length(hidden), method=method, target=target) + hidden
    rest = hidden * (300_000 // len(hidden))
    strange = Attacker(key="sparing_" + "0" * 32 + "_" + "x" * 43)
    for who, name in ((attacker, "too large"), (strange, "no such key")):
        for target in (QUERIES, "/v1/session", "/none", "/livez"):
            head = who.head(_length(hidden + rest), target=target)
            yield f"{name}: {target}", (head, hidden, rest[: len(rest) // 2], rest[len(rest) // 2 :])
            yield f"{name}, in one: {target}", head + hidden + rest
            yield (
                f"{name}, chunked: {target}",
                (who.head(b"Transfer-Encoding: chunked", target=target), _chunk(hidden), _chunk(rest) + b"0\r\n\r\n"),
            )


def _lengths(attacker: Attacker, hidden: bytes) -> Made:
    size = len(hidden)
    for text in _LENGTHS:
        line = b"Content-Length: " + text.format(n=size).encode("latin-1")
        yield f"{line!r}", attacker.head(line) + hidden
    for first, second in ((size, 0), (0, size), (size, size), (size, 5), (5, size)):
        lines = (b"Content-Length: %d" % first, b"Content-Length: %d" % second)
        yield f"two lengths: {first}, {second}", attacker.head(*lines) + hidden
    for name in (b"Content-Length ", b" Content-Length", b"Content-Length\x00", b"CONTENT-LENGTH"):
        yield f"{name!r}", attacker.head(name + b": %d" % size) + hidden
    for line in (b"Content_Length: 0", b"Transfer_Encoding: chunked", b"Content-Length_: 0", b"X-Content-Length: 0"):
        yield f"{line!r} beside a length", attacker.head(line, _length(hidden)) + hidden


def _chunks(attacker: Attacker, hidden: bytes) -> Made:
    head = attacker.head(b"Transfer-Encoding: chunked")
    for size in _SIZES:
        yield f"size {size[:30]!r}", head + size + b"\r\nabcde\r\n" + _chunk(hidden) + b"0\r\n\r\n"
    for end in (b"\n", b"\r", b"\r\r\n", b"\n\r\n", b""):
        yield f"size ended by {end!r}", head + b"5" + end + b"abcde" + end + _chunk(hidden) + b"0\r\n\r\n"
        yield f"chunk ended by {end!r}", head + b"5\r\nabcde" + end + b"0" + end + end + _chunk(hidden)
    for size in (b"%x" % (len(hidden) - 7), b"%x" % (len(hidden) + 7)):
        yield f"a wrong size: {size!r}", head + size + b"\r\n" + hidden + b"\r\n0\r\n\r\n"
    for trailer in (
        b"Content-Length: 5",
        b"Host: y",
        b"Transfer-Encoding: chunked",
        b"Authorization: Bearer x",
        b"X: y",
    ):
        yield f"trailer {trailer!r}", head + _chunk(hidden) + b"0\r\n" + trailer + b"\r\n\r\n"
        yield f"declared trailer {trailer!r}", (
            attacker.head(b"Transfer-Encoding: chunked", b"Trailer: " + trailer.split(b":")[0])
            + _chunk(hidden) + b"0\r\n" + trailer + b"\r\n\r\n"
        )  # fmt: skip
    yield "hidden in a folded trailer", head + b"0\r\nX: y\r\n " + hidden.replace(b"\r\n", b"\r\n ") + b"\r\n\r\n"


def _lines(attacker: Attacker, hidden: bytes) -> Made:
    length = _length(hidden)
    for line in (
        b"X: y\r\n folded",
        b"X: y\r\n\t" + length,
        b"X: y\r" + b"Content-Length: 0",
        b"X: y\n" + b"Content-Length: 0",
        b"X: y\r\r\n" + b"Content-Length: 0",
        b"X: \x00y",
        b"X\x00: y",
        b"X: y\x00\r\nContent-Length: 0",
        b": y",
        b"X",
        b"X Y: z",
        b"X: " + b"y" * 70_000,
        b"X\xff: y",
        b"Connection: keep-alive\r\n content-length",
    ):
        yield f"{line[:40]!r}", attacker.head(line, length) + hidden
        yield f"after: {line[:40]!r}", attacker.head(length, line) + hidden
    for end in (b"\n", b"\r", b"\n\r", b"\r\r\n"):
        yield f"lines ended by {end!r}", attacker.head(length).replace(b"\r\n", end) + hidden
    yield "a bare CR ends the head", attacker.head(length)[:-2] + b"\r" + hidden
    yield "empty lines before", b"\r\n\n\r\n" + attacker.head(length) + hidden
    yield "a space before", b" " + attacker.head(length) + hidden


def _expectations(attacker: Attacker, hidden: bytes) -> Made:
    for expect in (b"Expect: 100-continue", b"Expect: 100-Continue, x", b"Expect: x", b"Expect: \r\n 100-continue"):
        yield f"{expect!r}, waits", (attacker.head(expect, _length(hidden)), hidden)
        yield f"{expect!r}, at once", attacker.head(expect, _length(hidden)) + hidden
        yield f"{expect!r}, early", (attacker.head(expect, _length(hidden), target="/none"), hidden)
        yield f"{expect!r}, nominated", attacker.head(expect, b"Connection: expect", _length(hidden)) + hidden
    for upgrade in (b"h2c", b"websocket", b"TLS/1.0", b"h2c, websocket", b"x"):
        lines = (
            b"Upgrade: " + upgrade,
            b"Connection: Upgrade, HTTP2-Settings",
            b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
        )
        for method, target in (("POST", QUERIES), ("GET", "/v1/session"), ("GET", "/livez"), ("PUT", "/none")):
            carried = attacker.head(*lines, _length(hidden), method=method, target=target)
            yield f"{upgrade!r} {method} {target}", carried + hidden
            yield f"{upgrade!r} {method} {target}, in two", (carried, hidden)
            chunked = attacker.head(*lines, b"Transfer-Encoding: chunked", method=method, target=target)
            yield f"{upgrade!r} {method} {target}, chunked", chunked + _chunk(hidden) + b"0\r\n\r\n"
            # A head that is written anew from parsed headers must not make two lines of one.
            folded = attacker.head(*lines, b"X: y\r\n Content-Length: 0", _length(hidden), method=method, target=target)
            yield f"{upgrade!r} {method} {target}, folded", folded + hidden


def _targets(attacker: Attacker, hidden: bytes) -> Made:
    length = _length(hidden)
    for target in (
        "http://other/v1/session", "HTTP://x" + QUERIES, "//x" + QUERIES, "x:80", "*", "http://x:y@z" + QUERIES,
        QUERIES + "?a=%0d%0aContent-Length:%200", QUERIES + "%20HTTP/1.1%0d%0aX:%20y", QUERIES + "#a", QUERIES + " x",
        QUERIES + "/../queries", QUERIES + ";x", QUERIES + "\\..", "/v1/datasets/%64/queries", "/forwarding", "",
        QUERIES + "?\x7f", QUERIES + "\t", "/v1//datasets/d/queries",
    ):  # fmt: skip
        for method in ("POST", "GET", "CONNECT"):
            yield f"{method} {target}", attacker.head(length, method=method, target=target) + hidden
    for host in (b"Host: y", b"Host: y\r\nHost: x", b"Host : y", b" Host: y", b"Host:", b"Host: x/../y", b"Host: x y"):
        yield f"one more {host!r}", attacker.head(host, length) + hidden
        yield f"only {host!r}", attacker.head(length).replace(b"Host: x", host) + hidden
    yield "no host", attacker.head(length).replace(b"Host: x\r\n", b"") + hidden
    for line in (
        b"X-Sparing-Hop: 1",
        b"X-Sparing-Hop: " + b"0" * 64,
        b"X-Sparing-Challenge: 00",
        b"X-Forwarded-Host: y",
    ):
        yield f"{line!r}", attacker.head(line, length) + hidden


def _versions(attacker: Attacker, hidden: bytes) -> Made:
    length = _length(hidden)
    for version in (
        "HTTP/1.0",
        "HTTP/0.9",
        "HTTP/1.2",
        "HTTP/2.0",
        "HTTP/3",
        "http/1.1",
        "HTTP/1.1 x",
        "HTTP/11",
        "ICY",
    ):
        yield version, attacker.head(length, version=version) + hidden
        yield f"{version} kept", attacker.head(b"Connection: keep-alive", length, version=version) + hidden
        chunked = attacker.head(b"Transfer-Encoding: chunked", b"Connection: keep-alive", version=version)
        yield f"{version} chunked", chunked + _chunk(hidden) + b"0\r\n\r\n"
        hostless = attacker.head(b"Connection: keep-alive", length, version=version).replace(b"Host: x\r\n", b"")
        yield f"{version} without a host", hostless + hidden
    simple = HIDDEN_ROUTES[0].encode() + b"\r\n\r\n"
    yield "HTTP/0.9", attacker.head(_length(simple)) + simple
    yield "the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + attacker.head(length) + hidden
    yield (
        "the preface in a body",
        attacker.head(_length(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    )


def _pipelines(attacker: Attacker, hidden: bytes) -> Made:
    """Requests sent without a wait between them. Those for the session are the attacker's own, and count as sent."""
    own = attacker.head(method="GET", target="/v1/session")
    carried = attacker.head(b"Connection: keep-alive, content-length", _length(hidden)) + hidden
    for count in (2, 5, 20):
        yield f"{count} at once", own * count + carried + own
        yield f"{count} carriers", carried * count
    yield "after a refusal", attacker.head(_length(hidden), target="/none") + hidden + own + carried
    yield "in pieces", tuple(carried[at : at + 7] for at in range(0, len(carried), 7))
    yield "after an end", attacker.head(b"Connection: close", _length(hidden)) + hidden + carried


def _abandoned(attacker: Attacker, hidden: bytes) -> Iterator[Form]:
    """Carriers whose client leaves after the head, in the body, or after all of it but before a reply."""
    whole = attacker.head(_length(hidden + hidden)) + hidden
    chunked = attacker.head(b"Transfer-Encoding: chunked") + _chunk(hidden) + b"%x\r\n" % len(hidden) + hidden
    large = attacker.head(_length(hidden * 2000)) + hidden * 1000
    pipelined = attacker.head(method="GET", target="/v1/session") * 3 + whole
    for name, data in (("length", whole), ("chunked", chunked), ("large", large), ("pipelined", pipelined)):
        for is_cut in (False, True):
            form = Form(family="clients that leave", name=name, pieces=(data,), is_cut=is_cut, is_closed=not is_cut)
            yield form


def _cuts(attacker: Attacker) -> Iterator[Form]:
    """A valid query that is cut after each byte of its head and body."""
    query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": CUT_SIGMA}, "reuse": False}
    body = json.dumps(query).encode()
    for name, data in (
        ("length", attacker.head(_length(body)) + body),
        (
            "chunked",
            attacker.head(b"Transfer-Encoding: chunked") + _chunk(body[:40]) + _chunk(body[40:]) + b"0\r\n\r\n",
        ),
    ):
        for end in range(1, len(data)):
            is_cut = end % 2 == 0
            yield Form(
                family="cuts", name=f"{name} after {end}", pieces=(data[:end],), is_cut=is_cut, is_closed=not is_cut
            )
