"""Replies of a server that lies: each is an APIReplyError, before it takes more than its bound."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from sparing import APIReplyError, APIStatusError, Client, InvalidRequestError, SparingError
from sparing._constants import REPLY_BYTES_MAX, REPLY_CONTAINERS_MAX

MEGABYTE = b" " * 2**20


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Sends the same bytes again and again, and counts how often they are taken."""

    def __init__(self, *first: bytes, again: bytes, times: int) -> None:
        self.first, self.again, self.times, self.taken = first, again, times, 0

    def __iter__(self) -> Iterator[bytes]:
        yield from self.first
        while self.taken < self.times:
            self.taken += 1
            yield self.again

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def reply(body: Body | bytes, status: int = 200, **headers: str) -> httpx.Response:
    """A reply with such a body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, bytes):
        body = Body(again=body, times=1)
    return httpx.Response(status, stream=body, headers=named)


def bomb() -> Body:
    """A text of 4 GB in gzip, a megabyte in each kilobyte."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b'"') + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    return Body(head, again=block, times=4096)


@pytest.mark.parametrize("status", [200, 422])
def test_a_small_packet_is_unpacked_up_to_the_bound(client: Client, script: Any, status: int) -> None:
    """The rest of it is not even fetched, and a refusal is no exception."""
    body = bomb()
    script.steps = [reply(body, status, Content_Encoding="gzip")]
    with pytest.raises(APIReplyError, match="longer than 32 MB"):
        client.queries.get(query="q")
    assert body.taken <= REPLY_BYTES_MAX // 2**20 + 1


def test_a_reply_without_end_is_fetched_up_to_the_bound(client: Client, script: Any) -> None:
    """It need not be packed."""
    body = Body(again=MEGABYTE, times=4096)
    script.steps = [reply(body)]
    with pytest.raises(APIReplyError, match="longer than 32 MB"):
        client.allowances.list()
    assert body.taken <= REPLY_BYTES_MAX // 2**20 + 1


def test_a_reply_that_announces_its_length_is_not_fetched(client: Client, script: Any) -> None:
    """Nor is one whose packing was not asked for, of which one byte may stand for a million."""
    long, strange = Body(again=MEGABYTE, times=4096), Body(again=MEGABYTE, times=4096)
    script.steps = [reply(long, Content_Length=str(2**40)), reply(strange, Content_Encoding="gzip, gzip")]
    with pytest.raises(APIReplyError, match="longer than"):
        client.allowances.list()
    with pytest.raises(APIReplyError, match="was not asked for"):
        client.allowances.list()
    assert (long.taken, strange.taken) == (0, 0)
    assert {request.headers["Accept-Encoding"] for request in script.requests} == {"gzip"}


def test_the_bound_is_an_option(connect: Any, script: Any) -> None:
    """A batch may be some times as long, and a file of accounts is not bounded by it, but comes unpacked."""
    script.steps = [
        reply(b"[" + b" " * 98 + b"]"),
        reply(b" " * 101),
        reply(b" " * 801),
        reply(b"k" * 1000, Content_Type="text/csv"),
        reply(gzip.compress(b"k"), Content_Type="text/csv", Content_Encoding="gzip"),
    ]
    with connect(reply_bytes_max=100) as client:
        assert client.allowances.list() == ()
        with pytest.raises(APIReplyError, match="larger reply_bytes_max"):
            client.allowances.list()
        with pytest.raises(APIReplyError, match="ask for less at once"):
            list(client.queries.batch([{"dataset": "d", "sigma": 1}] * 9))
        assert len(client.datasets.export_budgets(dataset="d")) == 1000
        assert client.datasets.export_budgets(dataset="d") == b"k"
    assert script.requests[3].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_bound_that_is_none_is_refused(connect: Any, wrong: int) -> None:
    """When the client is made."""
    with pytest.raises(ValueError, match="reply_bytes_max must be at least 1"), connect(reply_bytes_max=wrong):
        pass


LIES: dict[str, dict[str, Any]] = {
    "cut short": {"body": gzip.compress(b"[]")[:-9], "Content_Encoding": "gzip"},
    "not packed": {"body": b"[]", "Content_Encoding": "gzip"},
    "deep": {"body": b"[" * 200_000 + b"]" * 200_000},
    "many": {"body": b"[" + b"{}," * REPLY_CONTAINERS_MAX + b"{}]"},
    "another text": {"body": "[]".encode("utf-16")},
    "a byte order mark": {"body": b"\xef\xbb\xbf[]"},
    "half a letter": {"body": b'["\xff"]'},
    "NaN": {"body": b'[{"dataset": "d", "spent_rho": NaN}]'},
    "infinity": {"body": b'[{"dataset": "d", "spent_rho": 1e999}]'},
    "a number of 5,000 digits": {"body": b'[{"dataset": "d", "spent_rho": 1%b}]' % (b"0" * 5000)},
    "a charge that is a text": {"body": '[{"dataset": "d", "spent_rho": "١٢"}]'.encode()},
    "a charge without end": {"body": b'[{"dataset": "d", "spent_rho": "1e999999999"}]'},
    "a list for an item": {"body": b"[[]]"},
    "an item without members": {"body": b"[{}]"},
    "a page": {"body": b"<html>", "Content_Type": "text/html"},
    "a text": {"body": b'"x"'},
    "a file": {"body": b"a,b", "Content_Type": "text/csv"},
    "an npz": {"body": b"PK", "Content_Type": "application/x-npz"},
    "an empty body": {"body": b""},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_each_lie_is_one_kind_of_error(client: Client, script: Any, lie: dict[str, Any]) -> None:
    """Its text is clean, and nothing is asked twice."""
    script.steps = [reply(**lie)]
    with pytest.raises(APIReplyError) as told:
        client.allowances.list()
    assert str(told.value).isprintable()
    assert len(script.requests) == 1


PROBLEM = {"type": "urn:sparing:problem:x", "title": "\x1b]0;pwn\x07", "status": 403, "detail": "\x1b[2J\u202e\x9b31m"}
REFUSALS: list[Any] = [
    PROBLEM | {"request_id": "\r\nx", "errors": [{"field": "\x1b", "message": "\ud800"}]},
    PROBLEM | {"errors": 7, "rows": []},
    PROBLEM | {"errors": ["x", None], "rows": {"wrong": "\x1b"}},
    {"type": ["x"], "title": {}, "detail": None, "request_id": []},
    {"detail": "x" * 10**6, "errors": [{"message": "\x00"}] * 10**5},
    [],
    "\x1b",
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=range(len(REFUSALS)))
def test_a_refusal_steers_no_terminal(client: Client, script: Any, refusal: Any) -> None:
    """Its text has lines, and characters that are printed, and is not very long."""
    script.steps = [httpx.Response(403, content=json.dumps(refusal).encode())]
    with pytest.raises(APIStatusError) as told:
        client.allowances.list()
    error = told.value
    texts = [error.type, error.title, error.detail, error.request_id or "", *(each.message for each in error.errors)]
    assert all(text.isprintable() for text in (*texts, *str(error).split("\n"), repr(error)))
    assert len(str(error)) < 20_000


def test_an_outcome_of_a_batch_may_lie_about_its_status(client: Client, script: Any) -> None:
    """It is a refusal all the same."""
    outcomes = [{"type": "urn:x", "status": status} for status in ("x", None, -1, 10**30, 422)]
    script.steps = [httpx.Response(200, json={"answers": outcomes})]
    found = list(client.queries.batch([{"dataset": "d", "sigma": 1}] * len(outcomes)))
    assert [type(each) for each in found] == [APIStatusError] * 4 + [InvalidRequestError]


def test_no_cookie_is_kept_and_no_redirect_followed(client: Client, script: Any) -> None:
    """A key goes to the address that it was given for, and to no other."""
    away = {"Location": "http://elsewhere.test/", "Set-Cookie": "a=b"}
    script.steps = [httpx.Response(status, headers=away) for status in (302, 200, 307)]
    for kind in (APIStatusError, APIReplyError, APIStatusError):
        with pytest.raises(kind):
            client.allowances.list()
    assert {request.url.host for request in script.requests} == {"sparing.test"}
    assert not any("Cookie" in request.headers for request in script.requests)


@pytest.mark.parametrize(
    "address", ["ftp://x", "http://", "sparing.test", "http://x:99999999", f"http://{70 * 'x'}.test"]
)
def test_an_address_that_is_none_is_refused(connect: Any, address: str) -> None:
    """When the client is made, as a ValueError."""
    with pytest.raises(ValueError, match="base_url"), connect(base_url=address):
        pass


def test_a_name_that_no_address_holds_is_an_error_of_this_library(client: Client) -> None:
    """Nothing is sent."""
    with pytest.raises(SparingError, match="Nothing was sent"):
        client.datasets.get(dataset="x" * 100_000)
