"""The protocol against h11, a strict parser: a request that both read differently could hide another from a proxy."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

import h11
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from service.api.middleware.request_limits import REFUSED_AS
from service.ledger.ports.telemetry import NULL_TELEMETRY
from service.run.http_bounds import HttpBounds
from service.run.http_protocol import BoundedConfig, BoundedProtocol
from tests.rotation import times

Read = tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]
"""Method, target, fields and body of a whole request."""

TARGETS = [b"/", b"/a?b=c", b"/%00", b"*", b"http://sparing/a", b"//a", b"/a b", b"/\xc3\xa9", b"/a\tb"]
VERSIONS = [b" HTTP/1.1", b" HTTP/1.0", b" HTTP/0.9", b" HTTP/1.2", b" HTTP/2.0", b"", b" http/1.1", b"  HTTP/1.1"]
FIELDS = [
    *(b"Host: sparing", b"Host: a", b"Host:", b"Host: a/b", b"host: sparing ", b"Host : a"),
    *(b"Content-Length: 3", b"Content-Length: 03", b"Content-Length: +3", b"Content-Length: 3, 3"),
    *(b"Content-Length: 0", b"Content-Length: 99999999999999999999", b"content-length:\t3"),
    *(b"Transfer-Encoding: chunked", b"transfer-encoding: Chunked", b"Transfer-Encoding: gzip, chunked"),
    *(b"Transfer-Encoding: identity", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked;q=1"),
    *(b"X: a\x00b", b"X: a\rb", b"X:", b": a", b"X: \xff", b" folded", b"X", b"X\x00: a", b"X: \x7f"),
    *(b"Connection: close", b"Connection: Upgrade\r\nUpgrade: h2c", b"Upgrade: h2c", b"Expect: 100-continue"),
]
BODIES = [
    *(b"", b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n", b"03\r\nabc\r\n0\r\n\r\n"),
    *(b"3\nabc\n0\n\n", b"0x3\r\nabc\r\n0\r\n\r\n", b"3 \r\nabc\r\n0\r\n\r\n", b"-3\r\nabc\r\n0\r\n\r\n"),
    *(b"3\r\nabcd\r\n0\r\n\r\n", b"ffffffffffffffffff\r\nabc", b"0\r\n\r\n", b"3\r\nabc\r\n0\r\nX : 1\r\n\r\n"),
]
FRAMINGS = [
    ([], b""),
    ([b"Content-Length: 3"], b"abc"),
    ([b"Transfer-Encoding: chunked"], b"3\r\nabc\r\n0\r\n\r\n"),
    ([b"Connection: Upgrade", b"Upgrade: h2c", b"Content-Length: 3"], b"abc"),
    ([b"Connection: upgrade", b"Upgrade: websocket", b"Transfer-Encoding: chunked"], b"3\r\nabc\r\n0\r\n\r\n"),
]
ENDS = [b"\n", b"\r", b"\r\r\n"]
ODD = 6
"""One part in so many is not plain."""


@st.composite
def raw_requests(draw: st.DrawFn) -> bytes:
    """A request of plain and odd parts, most of them plain, sometimes with a byte that is not as it was."""

    def mostly(plain: bytes, odd: list[bytes]) -> bytes:
        return draw(st.sampled_from(odd)) if draw(st.integers(0, ODD)) == 0 else plain

    end, version = mostly(b"\r\n", ENDS), mostly(b" HTTP/1.1", VERSIONS)
    line = (
        mostly(b"POST", [b"GET", b"HEAD", b"get", b"FOO", b"CONNECT", b"G ET"])
        + b" "
        + mostly(b"/a", TARGETS)
        + version
    )
    framing, body = draw(st.sampled_from(FRAMINGS))
    more = draw(st.lists(st.sampled_from(FIELDS), max_size=2)) if draw(st.booleans()) else []
    fields = [mostly(b"Host: sparing", FIELDS), *framing, *more]
    raw = bytearray(end.join([line, *fields, b"", b""]) + mostly(body, BODIES))
    if draw(st.integers(0, ODD)) == 0:
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


@dataclass
class Wire:
    """A transport that goes nowhere."""

    is_closed: bool = False
    written: list[bytes] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True

    abort = write_eof = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nothing more comes."""

    resume_reading = pause_reading


async def read_by_us(raw: bytes, *, cut: int) -> list[Read]:
    """The requests that reach the application whole, before a refusal; the data comes in two packets."""
    read: list[Read] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, is_whole = b"", False
        while not is_whole and REFUSED_AS not in scope["state"]:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, is_whole = body + message["body"], not message["more_body"]
        if is_whole:
            query = b"?" + scope["query_string"] if scope["query_string"] else b""
            read.append((scope["method"].encode(), scope["raw_path"] + query, list(scope["headers"]), body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    config = BoundedConfig(app, bounds=HttpBounds(), telemetry=NULL_TELEMETRY, log_config=None, lifespan="off")
    state = ServerState()
    protocol = BoundedProtocol(config, state, {}, asyncio.get_running_loop())
    wire: Any = Wire()
    protocol.connection_made(wire)
    for part in (raw[:cut], raw[cut:]):
        protocol.data_received(part)
        for _ in range(6):
            await asyncio.sleep(0)
    protocol.connection_lost(None)
    await asyncio.gather(*state.tasks)
    return read


def read_by_h11(raw: bytes) -> tuple[list[Read], str]:
    """The whole requests in it, and the reason for which the rest is refused; empty where more would have to come."""
    read: list[Read] = []
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    try:
        connection.receive_data(raw)
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                read.append((request.method, request.target, [(bytes(n), bytes(v)) for n, v in request.headers], body))
                return read, ""
            else:
                return read, ""
    except h11.RemoteProtocolError as error:
        return read, str(error)


def as_we_tell_it(read: Read) -> Read:
    """A request that h11 has read, without what the application is not told: the host before a path."""
    method, target, fields, body = read
    return method, re.sub(rb"http://[^/]*", b"", target), fields, body


@settings(max_examples=times(200, 20_000))
@given(raw=raw_requests(), data=st.data())
def test_what_is_accepted_is_read_as_h11_reads_it(raw: bytes, data: st.DataObject) -> None:
    """To the byte; but for one request line that h11 refuses and that can be read in one way only."""
    ours = asyncio.run(read_by_us(raw, cut=data.draw(st.integers(0, len(raw)))))
    theirs, refusal = read_by_h11(raw)
    if ours and not (refusal.startswith("illegal request line") and not theirs):
        assert theirs, refusal
        assert ours[0] == as_we_tell_it(theirs[0])


def test_plain_requests_are_accepted() -> None:
    """The law above would hold of a server that refuses everything."""
    for framing, body in FRAMINGS:
        raw = b"\r\n".join([b"POST /a HTTP/1.1", b"Host: sparing", *framing, b"", b""]) + body
        theirs, _ = read_by_h11(raw)
        assert asyncio.run(read_by_us(raw, cut=9)) == [as_we_tell_it(theirs[0])]


def test_a_smuggled_request_is_none() -> None:
    """If two lengths disagree, the connection ends, and what follows is not read as a request."""
    hidden = b"GET /hidden HTTP/1.1\r\nHost: sparing\r\n\r\n"
    for framing in (
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 60",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding:\x0bchunked",
        b"Content-Length: 0\r\nContent-Length: 60",
    ):
        raw = b"POST / HTTP/1.1\r\nHost: sparing\r\n" + framing + b"\r\n\r\n0\r\n\r\n" + hidden
        assert all(target != b"/hidden" for _, target, _, _ in asyncio.run(read_by_us(raw, cut=len(raw)))), framing
