"""Uvicorn's protocol of HTTP/1.1 with bounds on time and bytes before a request reaches the application.

The application answers even a request that is not HTTP or comes too slowly: it gets a request without a path, whose
state names the problem. So the response is a problem document with a request id, is counted, and leaves in a release
slot like every other.

Little time is spent on each request: one look at the headers, and no timer. A connection has one timer, which is set
anew only when it has rung.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from service.api.auth import RECOGNISED
from service.api.body_length import LENGTH_DIGITS_MAX
from service.api.forwarding.hop import CONNECTION, ConnectionState
from service.api.middleware.request_context import COUNTED_AS, DELIVERY_S
from service.api.middleware.request_limits import REFUSED_AS
from service.ledger.ports.telemetry import Telemetry
from service.run.http_bounds import ConnectionTable, End, HttpBounds, Rank

HEAD_BYTES_MAX: Final = 64 * 1024
"""Headers with more bytes than this are not read to their end. The application's own bounds are lower."""
BODY_BYTES_PER_S: Final = 500
FRAMING_BYTES_MAX: Final = 64 * 1024
FRAMING_BYTES_PER_BYTE: Final = 8
"""How many bytes of chunk sizes, chunk extensions and trailers each byte of a body allows, beside FRAMING_BYTES_MAX."""
REFUSED: Final = "refused"
"""The route under which refusals of this layer are counted."""

_BETWEEN, _HEAD, _BODY = range(3)
_HOST: Final = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)


class _Objection(Exception):
    """Raised in a callback of the parser to stop it; the text is the problem of the request."""


class BoundedConfig(uvicorn.Config):
    """Uvicorn's configuration, with the bounds of its connections."""

    def __init__(self, app: Any, *, bounds: HttpBounds, telemetry: Telemetry, **options: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(app, http=BoundedProtocol, ws="none", backlog=bounds.backlog, **options)
        self.bounds, self.table = bounds, ConnectionTable(telemetry)


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: ConnectionState()}, _loop)
        self._bounds, self._table = config.bounds, config.table
        self.timeout_keep_alive: float = self._bounds.idle_s  # type: ignore[assignment]
        self._phase, self._since_s = _HEAD, 0.0
        self._head_bytes = self._body_bytes = self._framing_bytes = self._span_bytes = 0
        self._is_span_excused = self._is_refused = self._is_known = self._is_upgrade = self._is_last_look = False
        self._timer: asyncio.TimerHandle | None = None
        self._last: RequestResponseCycle | None = None  # of the request that came last; uvicorn's own is said to be one

    # Called by the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the connection in, in place of another if there are too many, and wait for its first request."""
        super().connection_made(transport)
        self._since_s = self.loop.time()
        self._timer = self.loop.call_later(self._bounds.head_s, self._look)
        excess = len(self.connections) - self._bounds.connections_max
        if excess <= 0 or self._table.make_room(self, cast("set[BoundedProtocol]", self.connections)):
            return
        self._table.count("refused")
        if excess > self._bounds.backlog:
            transport.abort()
        else:
            self._refuse("too-many-connections")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the client."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and refuse the request if it goes beyond a bound."""
        if self._is_refused:
            return
        self._unset_keepalive_if_required()
        if self._phase == _BETWEEN:
            self._phase, self._since_s, self._head_bytes = _HEAD, self.loop.time(), 0
        last = self._last
        had_bytes = 0 if last is None else len(last.body)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as end:
            if not self._read_without_upgrade(data[end.args[0] :]):
                return
        except httptools.HttpParserError as error:
            self._refuse_for(error)
            return
        if self._phase == _BODY:
            self._count_body(len(data), had_bytes, is_new=self._last is not last)
        elif self._phase == _HEAD:
            self._head_bytes += len(data) if self._last is last else 1  # the rest belongs to requests before it
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse("headers-too-large" if self.headers else "uri-too-long")

    # Called by the parser

    def on_headers_complete(self) -> None:
        """Begin the request, or raise _Objection."""
        hosts, coding = 0, None
        for name, value in self.headers:
            if name == b"host":
                hosts += 1 if _HOST.fullmatch(value) else 2
            elif name == b"transfer-encoding":
                coding = value
            elif name == b"content-length" and len(value) > LENGTH_DIGITS_MAX:
                raise _Objection("malformed-request")
        if hosts != 1 or coding is not None or self.parser.get_http_version() != "1.1":
            _check_head(self.parser.get_http_version(), hosts, coding)
        if self._last is not None and self._last.scope["state"].get(RECOGNISED) is not None:
            self._is_known = True
        self._is_upgrade = self.parser.should_upgrade()
        if self._is_upgrade and self.parser.get_method() == b"CONNECT":
            raise _Objection("not-implemented")
        super().on_headers_complete()
        self.cycle.transport = cast(asyncio.Transport, Outgoing(self.transport))
        self._last = self.cycle
        self.headers = []  # fields after the body are no headers of the request
        self._phase, self._since_s = _BODY, self.loop.time()
        self._body_bytes = self._framing_bytes = self._span_bytes = 0
        self._is_span_excused = False

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        if self._is_upgrade:
            return
        super().on_message_complete()
        self._phase, self._since_s = _BETWEEN, self.loop.time()
        if self.cycle.response_complete:  # which was refused before its body had come
            self.timeout_keep_alive_task = self.loop.call_later(self._bounds.idle_s, self.timeout_keep_alive_handler)

    # Called by the table of connections

    @property
    def rank(self) -> Rank | None:
        """The rank of this connection: strangers' first, then the longest in its state.

        None if a known principal uses it.
        """
        last = self._last
        is_known = self._is_known or (last is not None and last.scope["state"].get(RECOGNISED) is not None)
        is_busy = last is not None and not last.response_complete
        return None if is_known and is_busy else (is_known, is_busy, self._since_s)

    def evict(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    # Called by timers

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection. A response that the client still takes slowly gets more time."""
        if self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size() == 0:
            self.transport.close()
        elif self.loop.time() < self._since_s + DELIVERY_S:
            self.timeout_keep_alive_task = self.loop.call_later(self._bounds.idle_s, self.timeout_keep_alive_handler)
        else:
            self._end("unread")

    def _look(self) -> None:
        """See whether the connection has passed a bound, and when to look again."""
        bounds, now_s = self._bounds, self.loop.time()
        if self.transport.is_closing():
            if self._is_last_look:
                self._end("unread")
                return
            self._is_last_look, wait_s = True, DELIVERY_S
        elif self._phase == _BETWEEN and not self._is_refused:
            wait_s = bounds.head_s
        else:
            allowed_s = bounds.body_s if self._phase == _BODY and not self._is_refused else bounds.head_s
            wait_s = self._since_s + allowed_s - now_s
            if wait_s <= 0:
                wait_s = self._judged(now_s)
        if wait_s > 0:
            self._timer = self.loop.call_later(wait_s, self._look)

    def _judged(self, now_s: float) -> float:
        """Act on a phase that has lasted its time; return when to look again (s), or 0 if the connection is ended."""
        if self._is_refused or (self._phase == _BODY and self.cycle.response_complete):
            self.transport.abort()
            return 0
        if self._phase == _HEAD:
            if self._head_bytes == 0:
                self._end("silent")
                return 0
        elif self._is_span_excused or self._is_excused or self._span_bytes >= self._bounds.body_s * BODY_BYTES_PER_S:
            self._since_s, self._span_bytes, self._is_span_excused = now_s, 0, self._is_excused
            return self._bounds.body_s
        self._table.count("slow")
        self._refuse("request-timeout")
        return self._bounds.head_s

    @property
    def _is_excused(self) -> bool:
        """Tell whether the service, and not the client, holds up the body."""
        return self.flow.read_paused or self.cycle.waiting_for_100_continue

    # Within

    def _count_body(self, data_bytes: int, had_bytes: int, *, is_new: bool) -> None:
        """Count received data, before which the body had `had_bytes`.

        With a new request (`is_new`), count its body alone.
        """
        body_bytes = len(self.cycle.body) - (0 if is_new else had_bytes)
        self._span_bytes += data_bytes
        self._body_bytes += body_bytes
        self._framing_bytes += 0 if is_new else data_bytes - body_bytes
        allowed_bytes = FRAMING_BYTES_MAX + FRAMING_BYTES_PER_BYTE * self._body_bytes
        if self._framing_bytes > allowed_bytes and not self.cycle.response_complete:
            self._refuse("malformed-request")

    def _read_without_upgrade(self, rest: bytes) -> bool:
        """Read on after the head of a request that asks for another protocol.

        False where the data after it was refused. The parser leaves the body of such a request to the other protocol.
        So a second parser reads the body, after a head that holds only the framing of the request.
        """
        while True:
            data = _framing_of(self.cycle.scope["headers"]) + rest
            self._is_upgrade, self.parser = False, httptools.HttpRequestParser(_BodyFirst(self))
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as end:
                rest = data[end.args[0] :]
            except httptools.HttpParserError as error:
                self._refuse_for(error)
                return False
            else:
                return True

    def _end(self, end: End) -> None:
        self._table.count(end)
        self.transport.abort()

    def _refuse_for(self, error: httptools.HttpParserError) -> None:
        objection = error.__context__
        self._refuse(str(objection) if isinstance(objection, _Objection) else "malformed-request")

    def _refuse(self, slug: str) -> None:
        """Answer with this problem after the responses under way, and then close. Whatever else comes is dropped."""
        self._is_refused, self._since_s = True, self.loop.time()
        self._table.count_refusal(slug)
        self._unset_keepalive_if_required()
        last, waits = self._last, self._last is not None and not self._last.response_complete
        if last is not None and waits and self._phase == _BODY:
            if last.response_started:
                self.transport.abort()
                return
            waits = bool(self.pipeline)
            if waits:
                self.pipeline.popleft()  # it has not begun, and never will
            last.disconnected = True
            last.message_event.set()
        self.cycle = self._last = self._refusal_cycle(slug)
        if waits:
            self.pipeline.appendleft((self.cycle, self.app))
        else:
            self._start_asgi_task(self.cycle, self.app)
        self.flow.resume_reading()

    def _refusal_cycle(self, slug: str) -> RequestResponseCycle:
        self.on_message_begin()
        state = {**self.app_state, REFUSED_AS: slug, COUNTED_AS: REFUSED}
        cast(dict[str, Any], self.scope).update(method="GET", path="/", raw_path=b"/", query_string=b"", state=state)
        cycle = RequestResponseCycle(
            scope=self.scope,
            transport=cast(asyncio.Transport, _HalfClosing(self.transport)),
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=False,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        return cycle


class _BodyFirst:
    """The callbacks of a connection for a second parser. They skip its first head, as that request has begun."""

    def __init__(self, protocol: BoundedProtocol) -> None:
        self._protocol, self._is_begun = protocol, False
        self.on_body: Callable[[bytes], None] = protocol.on_body
        self.on_message_complete: Callable[[], None] = protocol.on_message_complete

    def on_message_begin(self) -> None:
        """Pass on that the next request begins."""
        if self._is_begun:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Pass a part of the next request's target on."""
        if self._is_begun:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Pass a header of the next request on."""
        if self._is_begun:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass on that the next request's head is whole."""
        if self._is_begun:
            self._protocol.on_headers_complete()
        self._is_begun = True


class Outgoing:
    """A transport for responses. Writing to a client that has hung up does nothing, as this is no error of the service.

    The event loop closes the transport when it finds the reset, and tells the protocol in its next round. A write in
    between raises RuntimeError.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self.is_closing = transport, transport.is_closing

    def write(self, data: bytes) -> None:
        """Write, unless the client has hung up."""
        try:
            self._transport.write(data)
        except RuntimeError:
            if not self._transport.is_closing():
                raise

    def close(self) -> None:
        """Close it."""
        self._transport.close()


class _HalfClosing(Outgoing):
    """A transport that is closed in one direction, so that a client which still sends can read the response.

    A socket that is closed with unread data resets the connection, and the client then loses what it has not read.
    """

    def close(self) -> None:
        """Send the end after what was written. The rest is closed by the client's own end, or by the timer."""
        if not self._transport.is_closing():
            self._transport.write_eof()


def _framing_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A new head whose body is framed as that of a request with these headers."""
    fields = dict(headers)
    is_chunked, length = b"transfer-encoding" in fields, fields.get(b"content-length", b"0")
    framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % int(length)
    return b"POST / HTTP/1.1\r\n%b\r\n\r\n" % framing


def _check_head(version: str, hosts: int, coding: bytes | None) -> None:
    """Raise _Objection for what RFC 9112 refuses in a version, in a number of valid hosts or in a transfer coding."""
    if version not in {"1.0", "1.1"}:
        raise _Objection("malformed-request" if version == "0.9" else "http-version-unsupported")
    if hosts != 1:
        raise _Objection("malformed-request")
    if coding is not None and version == "1.0":
        raise _Objection("malformed-request")
    if coding is not None and coding.lower() != b"chunked":
        raise _Objection("not-implemented")
