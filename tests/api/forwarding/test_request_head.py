"""A request's head is made anew from the one list of headers that the service reads."""

import re
from pathlib import Path

import pytest
from starlette.types import Scope

from service.api.forwarding.request_head import HEADERS_MADE, HEADERS_READ, HOP_HEADER, head_of
from service.api.problems import Refusal

API = Path(__file__).parents[3] / "service" / "api"
READING = [
    re.compile(r'request\.headers(?:\.get|\.getlist)?[\[(]\s*"([^"]+)"'),
    re.compile(r'"([^"]+)" (?:not )?in request\.headers(?![.\w])'),
    re.compile(r'\bname == b"([^"]+)"'),
]
"""The ways in which modules of the edge ask for a header."""
NAMED = {"REQUEST_HEADER": "x-sparing-request", "request.url.hostname": "host", "Header(include_in_schema": "accept"}
"""Those for which the source has another word."""


def scope_of(headers: list[tuple[bytes, bytes]], target: bytes = b"/v1/datasets/a?b=c") -> Scope:
    """A request for `target`."""
    path, _, query = target.partition(b"?")
    return {
        "method": "POST",
        "path": path.decode(errors="replace"),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "state": {"request_id": "mine"},
    }


def read_in(source: str) -> set[str]:
    """The names of the request headers that a module reads."""
    return {name.lower() for pattern in READING for name in pattern.findall(source)}


def test_the_list_is_what_the_service_reads() -> None:
    """Every header that a module of the edge asks a request for is on the list, and no other is."""
    sources = [path.read_text() for path in sorted(API.rglob("*.py")) if path.parent != API / "forwarding"]
    read = set().union(*map(read_in, sources))
    read |= {name for word, name in NAMED.items() if any(word in source for source in sources)}
    ours = {HOP_HEADER.decode(), *(name.decode() for name in HEADERS_MADE)}
    assert {name.decode() for name in HEADERS_READ} == read - ours


@pytest.mark.parametrize(
    ("framing", "line"),
    [
        ([], b"content-length: 0"),
        ([(b"content-length", b"0012")], b"content-length: 12"),
        ([(b"transfer-encoding", b"Chunked")], b"transfer-encoding: chunked"),
    ],
)
def test_the_framing_is_written_by_us(framing: list[tuple[bytes, bytes]], line: bytes) -> None:
    """In one way, however it came; what is not on the list is dropped and counted."""
    head = head_of(scope_of([(b"host", b"h"), (b"te", b"x"), (b"connection", b"host, te"), *framing]))
    expected = [b"POST /v1/datasets/a?b=c HTTP/1.1", b"host: h", b"x-request-id: mine", line, b""]
    assert (head.encoded().split(b"\r\n"), head.dropped) == (expected, 2)


@pytest.mark.parametrize(
    ("headers", "target"),
    [
        ([(b"host", b"a\r\nx: y")], b"/a"),
        ([(b"cookie", b"a\0")], b"/a"),
        ([(b"accept", b"a\nb")], b"/a"),
        ([(b"content-length", b"-1")], b"/a"),
        ([(b"content-length", b"1" * 19)], b"/a"),
        ([], b"/a b"),
        ([], b"/a\x00"),
        ([], b"*"),
    ],
)
def test_what_no_head_may_hold_is_refused(headers: list[tuple[bytes, bytes]], target: bytes) -> None:
    """A target, a value or a length that another reader could take for something else."""
    with pytest.raises(Refusal, match="not valid HTTP"):
        head_of(scope_of(headers, target))
