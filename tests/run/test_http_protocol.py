"""HTTP/1.1 by raw sockets on a real server: refusals, times, bytes, connections."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from service.run.http_protocol import Outgoing
from tests.run.raw_server import LARGE_BYTES, RawServer, answered, paced, raw_server, received, trickled, unsent_bytes
from tests.waiting import until

HOST = b"Host: sparing\r\n"
MB = 10**6
SHORT = {"SPARING_HEAD_TIMEOUT_MS": "300", "SPARING_IDLE_TIMEOUT_MS": "300", "SPARING_BODY_TIMEOUT_MS": "400"}


@pytest.fixture(scope="module")
def hasty() -> Iterator[RawServer]:
    """A server with short times."""
    with raw_server(**SHORT) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    """A server that waits for heads, also of a machine that has much else to do."""
    with raw_server(**SHORT | {"SPARING_HEAD_TIMEOUT_MS": "60000"}) as running:
        yield running


def problem_of(answer: bytes) -> tuple[int, str]:
    """Status and slug of the last response, a problem document that ends its connection."""
    head, _, body = answer[answer.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"content-type: application/problem+json" in lines
    assert b"connection: close" in lines
    document = json.loads(body)
    assert f"x-request-id: {document['request_id']}".encode() in lines
    assert document["status"] == int(head.split()[1])
    return document["status"], document["type"].removeprefix("urn:sparing:problem:")


def posted(server: RawServer, *fields: bytes, body: bytes = b"", path: bytes = b"/v1/datasets") -> bytes:
    """A request of the curator."""
    key = b"Authorization: Bearer " + server.curator_key.encode()
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n".join([key, *fields, b"", b""]) + body


MALFORMED, NOT_IMPLEMENTED = (400, "malformed-request"), (501, "not-implemented")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"GET /livez\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/1.1\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/1.0\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/1.1\r\n" + HOST + HOST + b"\r\n", MALFORMED),
        (b"GET /livez HTTP/1.1\r\nHost: a/b@c\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/2.0\r\n" + HOST + b"\r\n", (505, "http-version-unsupported")),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", NOT_IMPLEMENTED),
        (b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"0" * 5000 + b"\r\n\r\n", MALFORMED),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", MALFORMED),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/1.1\r\n" + HOST + b"X : 1\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/1.1\r\n" + HOST + b"X: 1\r\n folded\r\n\r\n", MALFORMED),
        (b"GET /livez HTTP/1.1\n" + HOST + b"\n", MALFORMED),
        (b"\x16\x03\x01\x02\x00\x01\x00", MALFORMED),
        (b"CONNECT sparing:80 HTTP/1.1\r\n" + HOST + b"\r\n", NOT_IMPLEMENTED),
    ],
)
def test_what_is_not_http_is_refused(server: RawServer, raw: bytes, problem: tuple[int, str]) -> None:
    """By a problem document with a request id, and the connection ends."""
    assert problem_of(server.answer(raw)) == problem


@pytest.mark.parametrize("role", ["stranger", "curator"])
@pytest.mark.parametrize(
    "path",
    [
        *(b"/assets/../shell.html", b"/assets/..%2f..%2fetc%2fpasswd", b"//v1/datasets"),
        *(b"/assets/%00", b"/v1/datasets/%2e%2e/x", b"/v1/datasets/%ff", b"/v1/datasets/a%0d%0aX:1", b"/%"),
    ],
)
def test_tricks_with_paths_lead_nowhere(server: RawServer, path: bytes, role: str) -> None:
    """Neither to a file nor to an error of the service."""
    request = b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n"
    key = b"Authorization: Bearer " + server.curator_key.encode() + b"\r\n" if role == "curator" else b""
    answer = server.answer(request + key + b"\r\n")
    assert answer[9:12] in {b"400", b"401", b"404"}
    assert b"application/problem+json" in answer


def test_a_refusal_comes_after_the_answers_before_it(server: RawServer) -> None:
    """Requests in one packet are answered in their order."""
    good = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = server.answer(good + good + b"GET /livez HTTP/1.1\r\n\r\n" + good)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"400"]
    assert problem_of(answer) == MALFORMED


def test_a_body_that_turns_out_malformed_is_refused(server: RawServer) -> None:
    """Also while the application waits for the rest of it, which the interim response tells."""
    with server.connected() as wire:
        wire.sendall(posted(server, b"Expect: 100-continue", b"Transfer-Encoding: chunked"))
        assert wire.recv(12) == b"HTTP/1.1 100"
        wire.sendall(b"1\r\n{\r\n")
        wire.sendall(b"no length\r\n")
        assert problem_of(received(wire)) == MALFORMED


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_upgrade_is_ignored_and_the_body_read(server: RawServer, protocol: bytes, is_chunked: bool) -> None:
    """The request after it too."""
    framed = (b"Transfer-Encoding: chunked", b"2\r\n[]\r\n0\r\n\r\n") if is_chunked else (b"Content-Length: 2", b"[]")
    upgrade = b"Connection: Upgrade\r\nUpgrade: " + protocol
    answer = server.answer(2 * posted(server, upgrade, framed[0], body=framed[1]))
    assert answer.count(b"HTTP/1.1 422 ") == 2
    assert answer.count(b'"field": "body"') == 2, "an empty body is refused in other words"


def test_fields_after_the_body_are_no_headers(server: RawServer) -> None:
    """A key is not given there."""
    raw = b"POST /v1/session HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n"
    answer = server.answer(raw + b"Authorization: Bearer " + server.curator_key.encode() + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 401 ")


class TestTimes:
    """The limits of a connection and of its requests, all of them tenths of a second here."""

    def test_half_a_head_is_given_up(self, hasty: RawServer) -> None:
        """408."""
        assert problem_of(hasty.answer(b"GET /livez HTTP/1.1\r\nHost:")) == (408, "request-timeout")

    def test_a_head_that_trickles_is_given_up(self, hasty: RawServer) -> None:
        """A byte now and then is no progress."""
        with hasty.connected() as wire:
            wire.sendall(b"GET /livez HTTP/1.1\r\nX: ")
            answer = trickled(wire)
        assert problem_of(answer) == (408, "request-timeout")

    def test_a_connection_without_a_request_is_closed(self, hasty: RawServer) -> None:
        """Without a word, whether or not there was a request before."""
        assert hasty.answer(b"") == b""
        answer = hasty.answer(b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n")
        assert answer.count(b"HTTP/1.1") == 1

    def test_a_body_that_trickles_is_given_up(self, hasty: RawServer) -> None:
        """At less than 500 bytes a second."""
        with hasty.connected() as wire:
            wire.sendall(posted(hasty, b"Content-Length: 1000"))
            assert problem_of(trickled(wire)) == (408, "request-timeout")

    def test_a_body_at_a_fair_rate_is_read(self, hasty: RawServer) -> None:
        """It may take longer than the time, in which it has to move."""
        with hasty.connected() as wire:
            wire.sendall(posted(hasty, b"Content-Length: 3000", b"Connection: close"))
            paced(wire, [b" " * 300] * 10)
            assert received(wire).startswith(b"HTTP/1.1 422 ")

    def test_the_body_of_a_refused_request_is_not_waited_for(self, hasty: RawServer) -> None:
        """A stranger has its 401 at once; the connection ends though more of the body trickles in."""
        with hasty.connected() as wire:
            wire.sendall(b"POST /v1/datasets HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n")
            assert trickled(wire).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("before", "filler", "problem"),
    [
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: ", b"a" * 10 * MB, (431, "headers-too-large")),
        (b"GET /", b"a" * 10 * MB, (414, "uri-too-long")),
        (b"GET / HTTP/1.1\r\n" + HOST, b"X: a\r\n" * MB, (431, "headers-too-large")),
        (b"", b"\r\n" * 5 * MB, (414, "uri-too-long")),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 10 * MB, None),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 10 * MB, None),
    ],
)
def test_bytes_before_a_request_are_bounded(
    server: RawServer, before: bytes, filler: bytes, problem: tuple[int, str] | None
) -> None:
    """Headers, addresses, empty lines, extensions of chunks and trailers are not kept, however many come."""
    server.answer(b"GET /livez HTTP/1.1\r\n\r\n")
    resident = server.memory_bytes("VmRSS")
    answer = server.answer(before + filler)
    if problem is not None:
        assert problem_of(answer) == problem
    else:
        assert answer[9:12] in {b"400", b"404", b"405"}, "the path may be refused before its body is read"
    assert server.memory_bytes("VmHWM") < max(resident, server.memory_bytes("VmRSS")) + 4 * MB


def test_extensions_of_chunks_are_bounded_where_the_body_is_read(server: RawServer) -> None:
    """400 once they are longer than a body could excuse."""
    raw = posted(server, b"Transfer-Encoding: chunked", body=b"1;a=" + b"x" * 10 * MB)
    assert problem_of(server.answer(raw)) == MALFORMED


@pytest.fixture(scope="module")
def small() -> Iterator[RawServer]:
    """A server that may open 256 files, and has patience."""
    patient = {"SPARING_HEAD_TIMEOUT_MS": "60000", "SPARING_IDLE_TIMEOUT_MS": "60000"}
    with raw_server(FILES_MAX="256", **patient) as running:
        yield running


def test_strangers_errors_are_counted_and_one_line_of_the_log(small: RawServer) -> None:
    """However many there are."""
    for _ in range(50):
        small.answer(b"GET /livez\r\n\r\n")

    def told() -> list[str]:
        return [line for line in small.log_text.splitlines() if "requests refused" in line]

    metrics = httpx.get(small.metrics_url).text
    assert 'sparing_other_requests_total{route="refused",status="400"} 50.0' in metrics
    until(told)
    assert len(told()) == 1


class ClosedTransport(asyncio.Transport):
    """A transport like uvloop's between a client's reset and its notice: nothing can be written."""

    def __init__(self, *, is_closing: bool) -> None:
        super().__init__()
        self._is_closing = is_closing

    def is_closing(self) -> bool:
        return self._is_closing

    def write(self, _data: object) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")


def test_a_client_that_has_hung_up_takes_no_response_and_makes_no_error() -> None:
    """Any other error of a write is one."""
    Outgoing(ClosedTransport(is_closing=True)).write(b"late")
    with pytest.raises(RuntimeError):
        Outgoing(ClosedTransport(is_closing=False)).write(b"late")


class TestConnections:
    """Their number."""

    def test_idle_connections_lock_nobody_out(self, small: RawServer) -> None:
        """There are more of them than files: a stranger, a known connection and the metrics are answered."""
        listing = posted(small).replace(b"POST", b"GET")
        with ExitStack() as stack:
            known = stack.enter_context(small.connected())
            known.sendall(listing)
            assert answered(known).startswith(b"HTTP/1.1 200 ")
            for _ in range(400):
                stack.enter_context(small.connected())
            assert b"200 OK" in small.answer(b"GET /livez HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            evicted = re.findall(r'closed_connections_total{kind="evicted"} (\S+)', httpx.get(small.metrics_url).text)
            assert float(evicted[0]) > 200
            known.sendall(listing)
            assert answered(known).startswith(b"HTTP/1.1 200 ")
            assert len([*Path(f"/proc/{small.process.pid}/fd").iterdir()]) < 256

    def test_known_principals_at_work_keep_their_connections(self) -> None:
        """A newcomer is told to come later."""
        with raw_server(SPARING_HTTP_CONNECTIONS_MAX="2") as full, ExitStack() as stack:
            for _ in range(2):
                wire = stack.enter_context(full.connected())
                wire.sendall(posted(full, path=b"/v1/datasets/survey/events").replace(b"POST", b"GET"))
                assert wire.recv(12) == b"HTTP/1.1 200"
            answer = full.answer(b"")
            assert problem_of(answer) == (503, "too-many-connections")
            assert b"retry-after: 1\r\nx-not-started: 1\r\n" in answer.lower()


def test_slow_readers_of_one_file_share_it(server: RawServer) -> None:
    """Neither the process nor the kernel keeps a copy for each reader that takes nothing."""
    readers = 50
    request = b"GET /assets/large.js HTTP/1.1\r\n" + HOST + b"\r\n"
    server.answer(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    before = server.memory_bytes("VmRSS")
    with ExitStack() as stack:
        for _ in range(readers):
            wire = stack.enter_context(socket.socket())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.connect(server.address)
            wire.sendall(request)
        until(lambda: len(unsent_bytes(server.address[1])) == readers)
        assert server.memory_bytes("VmRSS") - before < readers * LARGE_BYTES / 20
        assert sum(unsent_bytes(server.address[1])) < readers * LARGE_BYTES / 10
