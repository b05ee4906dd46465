"""A request is forwarded unchanged, and so is its response; a process is trusted only after its proof."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.api.forwarding.exchange import KEPT_BYTES_MAX
from service.api.forwarding.idle import IDLE_S
from service.api.forwarding.request_head import HOP_HEADER
from service.api.middleware.request_context import DeliveryFailed
from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import ReplicaAddress
from tests.api.neighbours import Clock, bound, url_of
from tests.api.relays import Owner, answered, carried, connected, echo
from tests.waiting import settled, until_async

MEBIBYTE = 2**20


async def test_a_body_of_a_known_length_goes_through() -> None:
    """Megabytes, byte for byte, with its length."""
    data = bytes(range(256)) * 4096 * 3
    async with carried(echo) as (relay, _), connected(relay) as client:
        status, _, answer = await client.ask(f"POST /x HTTP/1.1\nhost: a\ncontent-length: {len(data)}", data)
        assert (status, answer.split()) == (200, [b"%d" % len(data), hashlib.sha256(data).hexdigest().encode(), b"0"])
        assert relay.outcomes == [True]


async def test_a_body_of_unknown_length_is_passed_on_while_it_comes() -> None:
    """The owner has the first part before the client sends the last."""
    came = asyncio.Queue[bytes]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        is_last = False
        while not is_last:
            message = await receive()
            is_last = not message["more_body"]
            await came.put(message["body"])
        await answered(send, b"done")

    async with carried(app) as (relay, owner), connected(relay) as client:
        await client.send(b"POST /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        data = b""
        while data != b"first":
            data += await came.get()
        await client.send(b"6\r\nsecond\r\n0\r\n\r\n")
        assert (await client.answer())[2] == b"done"
        while data != b"firstsecond":
            data += await came.get()
        assert (b"transfer-encoding", b"chunked") in owner.scopes[0]["headers"]


async def test_a_response_is_passed_on_while_it_comes() -> None:
    """The client has the first part before the owner sends the last; status and headers are the owner's."""
    go_on = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"8"), (b"x-own", b"1"), (b"connection", b"x-own")]
        await send({"type": "http.response.start", "status": 418, "headers": headers})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"half"})

    async with carried(app) as (relay, _), connected(relay) as client:
        await client.send(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        status, headers = await client.head()
        assert (status, headers["x-own"], "x-sparing-hop" in headers) == (418, "1", False)
        assert await client.reader.readexactly(4) == b"half"
        go_on.set()
        assert await client.reader.readexactly(4) == b"half"


async def test_the_head_is_made_anew_from_what_the_service_reads() -> None:
    """Method, path as it was written, query, the headers on the list, a length of its own, the request's id, a seal."""
    async with carried(echo) as (relay, owner), connected(relay) as client:
        await client.ask(
            "DELETE /a%2Fb%20c?d=%41&e HTTP/1.1\nhost: a.example\nauthorization: Bearer k\n"
            "connection: keep-alive, authorization, host\nte: trailers\nx-other: v\nx-request-id: mine"
        )
        (scope,) = owner.scopes
        assert (scope["method"], scope["raw_path"], scope["query_string"]) == ("DELETE", b"/a%2Fb%20c", b"d=%41&e")
        headers = dict(scope["headers"])
        assert re.fullmatch(rb"[0-9a-f]{32}\.[0-9a-f]{64}", headers.pop(HOP_HEADER))
        assert headers == {
            b"host": b"a.example",
            b"authorization": b"Bearer k",
            b"x-request-id": b"mine",
            b"content-length": b"0",
        }


@pytest.mark.parametrize("nominated", ["content-length", "host", "authorization", "content-type", "x-sparing-hop"])
async def test_connection_nominates_nothing(nominated: str) -> None:
    """A body stays the body of its request, whatever `Connection` names; the next request is answered by itself."""
    hidden = b"DELETE /hidden HTTP/1.1\r\nhost: a\r\n\r\n"
    head = f"POST /x HTTP/1.1\nhost: a\nconnection: keep-alive, {nominated}\ncontent-length: {len(hidden)}"
    async with carried(echo) as (relay, owner), connected(relay) as client:
        assert (await client.ask(head, hidden))[2].startswith(b"%d " % len(hidden))
        assert (await client.ask("GET /y HTTP/1.1\nhost: a"))[2].startswith(b"0 ")
        assert [scope["path"] for scope in owner.scopes] == ["/x", "/y"]


async def test_a_connection_carries_one_principal() -> None:
    """Two that take turns have a connection each, and each keeps its own."""
    async with carried(echo) as (relay, owner), connected(relay) as client:
        principals = [uuid4(), uuid4()]
        for number in range(6):
            relay.principal = principals[number % 2]
            assert (await client.ask("GET /x HTTP/1.1\nhost: a"))[0] == 200
        assert owner.greetings == 2


async def test_a_reply_without_the_id_of_its_request_is_passed_on_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """503, the connection ends, and the operator is told."""
    async with carried(echo) as (relay, owner), connected(relay) as client:
        owner.repeats_ids = False
        status, headers, _ = await client.ask("GET /x HTTP/1.1\nhost: a")
        assert (status, headers["retry-after"]) == (503, "1")
        owner.repeats_ids = True
        assert (await client.ask("GET /x HTTP/1.1\nhost: a"))[0] == 200
        assert (owner.greetings, isinstance(relay.outcomes[0], Unavailable)) == (2, True)
    assert "a reply that was not to the request before it" in caplog.text


async def test_a_connection_whose_writing_was_cut_short_is_not_kept() -> None:
    """The owner refuses while much of the body waits to be written."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answered(send, b"no", 413)

    async with carried(app) as (relay, owner), connected(relay) as client:
        for _ in range(2):
            head = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % MEBIBYTE
            await client.send(head + bytes(MEBIBYTE))
            assert (await client.answer())[0] == 413
        assert (owner.greetings, relay.outcomes) == (2, [True, True])


async def test_one_that_expects_to_be_told_is_told_here() -> None:
    """`100 Continue` is between the client and the process that it talks to."""
    async with carried(echo) as (relay, owner), connected(relay) as client:
        await client.send(b"POST /x HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert (await client.head())[0] == 100
        await client.send(b"ab")
        assert (await client.answer())[2].startswith(b"2 ")
        assert b"expect" not in dict(owner.scopes[0]["headers"])


async def test_a_client_that_leaves_takes_its_request_from_the_owner() -> None:
    """The owner hears of the disconnect, in the middle of the body and after it."""
    left = asyncio.Queue[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message: Message = {"type": ""}
        while message["type"] != "http.disconnect":
            message = await receive()
        await left.put(scope["path"])

    async with carried(app) as (relay, owner):
        for number, body in enumerate((b"12345", b"1234567890")):
            path = f"/{number}"
            async with connected(relay) as client:
                await client.send(b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n" % path.encode() + body)
                await until_async(partial(heard, owner, path))
            assert await left.get() == path
        await until_async(lambda: relay.outcomes == [True, True])


async def stalled(count: Callable[[], int]) -> None:
    """Let the event loop turn until a count stands still."""
    before = -1
    while count() != before:
        before = count()
        await settled()


def heard(owner: Owner, path: str) -> bool:
    """Tell whether a request for a path has come there."""
    return any(scope["path"] == path for scope in owner.scopes)


async def test_an_answer_that_comes_before_the_body_is_passed_on_at_once() -> None:
    """A refusal of an upload that the client has not sent yet."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answered(send, b"too large", 413)

    async with carried(app) as (relay, owner), connected(relay) as client:
        status, _, answer = await client.ask("POST /x HTTP/1.1\nhost: a\ncontent-length: 1000000000", b"x")
        assert (status, answer) == (413, b"too large")
        async with connected(relay) as second:
            assert (await second.ask("GET /x HTTP/1.1\nhost: a"))[0] == 413
        assert owner.greetings == 2  # the first connection ended in the middle of a body


async def test_connections_are_kept_and_not_for_long() -> None:
    """One greeting for many requests; one that has been idle for longer than the owner may keep it is not used."""
    clock = Clock()
    async with carried(echo, clock) as (relay, owner), connected(relay) as client:
        for _ in range(5):
            assert (await client.ask("GET /x HTTP/1.1\nhost: a"))[0] == 200
        assert owner.greetings == 1
        clock.now_s += IDLE_S
        assert (await client.ask("GET /x HTTP/1.1\nhost: a"))[0] == 200
        assert owner.greetings == 2


async def test_a_kept_connection_that_the_owner_has_ended_is_not_used() -> None:
    """It says `Connection: close`, as one does that leaves."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answered(send, b"bye", headers=[(b"connection", b"close")])

    async with carried(app) as (relay, owner), connected(relay) as client:
        for _ in range(2):
            status, headers, _ = await client.ask("GET /x HTTP/1.1\nhost: a")
            assert (status, "connection" in headers) == (200, False)
        assert (owner.greetings, relay.outcomes) == (2, [True, True])


async def test_an_owner_that_dies_in_the_middle_is_not_mistaken_for_one_that_has_finished() -> None:
    """The client's connection ends without the rest."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await asyncio.Event().wait()

    async with carried(app) as (relay, owner), connected(relay) as client:
        await client.send(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (await client.head())[0] == 200
        assert await client.reader.readexactly(4) == b"half"
        owner.die()
        assert await client.reader.read() == b""
        assert relay.outcomes == [True]


async def test_an_owner_that_dies_before_it_answers_may_have_worked() -> None:
    """503, and no second attempt."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async with carried(app) as (relay, owner), connected(relay) as client:
        await client.send(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        await until_async(lambda: owner.scopes)
        owner.die()
        status, headers, _ = await client.answer()
        assert (status, headers["retry-after"], len(owner.scopes)) == (503, "1", 1)
        assert isinstance(relay.outcomes[0], Unavailable)


@pytest.mark.parametrize("size", [0, 5, KEPT_BYTES_MAX, KEPT_BYTES_MAX + 1])
async def test_what_was_not_started_is_done_here_with_the_same_body(size: int) -> None:
    """This holds while all that was taken of the body is kept; else the owner's refusal is passed on."""
    data = b"x" * size

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await answered(send, b"not here", 503, [(b"x-not-started", b"1")])

    async with carried(app) as (relay, _), connected(relay) as client:
        status, headers, answer = await client.ask(f"POST /x HTTP/1.1\nhost: a\ncontent-length: {size}", data)
        if size <= KEPT_BYTES_MAX:
            assert (status, answer, relay.outcomes) == (200, b"here:" + data, [False])
        else:
            assert (status, headers["x-not-started"], relay.outcomes) == (503, "1", [True])


async def test_nothing_is_sent_to_a_process_without_a_proof(caplog: pytest.LogCaptureFixture) -> None:
    """A process with another pepper at the owner's address gets no key; the operator is told."""
    with caplog.at_level(logging.ERROR):
        async with carried(echo, pepper=Pepper(b"q" * 32)) as (relay, owner), connected(relay) as client:
            head = "POST /x HTTP/1.1\nhost: a\nauthorization: Bearer secret\ncontent-length: 3"
            assert (await client.ask(head, b"abc"))[2] == b"here:abc"
            assert (owner.greetings, owner.scopes, relay.outcomes) == (1, [], [False])
    assert "another process answers at a replica's address" in caplog.text


async def test_one_that_cannot_be_reached_has_not_started() -> None:
    """No process listens there, or the one that listens stays silent."""
    async with carried(echo) as (relay, _):
        relay.replica = ReplicaAddress(id=uuid4(), url="http://127.0.0.1:1")
        async with connected(relay) as client:
            assert (await client.ask("GET /x HTTP/1.1\nhost: a"))[2] == b"here:"
        with bound() as silent:
            silent.listen()
            relay.replica = ReplicaAddress(id=uuid4(), url=url_of(silent))
            async with connected(relay) as client:
                assert (await client.ask("GET /x HTTP/1.1\nhost: a"))[2] == b"here:"
    assert relay.outcomes == [False, False]


async def test_a_reader_that_does_not_read_is_waited_for() -> None:
    """An answer of a hundred megabytes is not gathered here: the owner is held back until the client reads."""
    size, sent = 100 * MEBIBYTE, 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        headers = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while sent < size:
            sent += MEBIBYTE
            await send({"type": "http.response.body", "body": bytes(MEBIBYTE), "more_body": sent < size})

    async with carried(app) as (relay, _), connected(relay) as client:
        await client.send(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        await client.head()
        await stalled(lambda: sent)
        assert sent < size / 2  # the rest is in the kernel's buffers
        assert len(await client.reader.readexactly(size)) == size


async def test_a_reader_that_never_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection ends, and the owner hears of it: nothing of the answer is kept for it."""
    monkeypatch.setattr("service.api.forwarding.exchange.DELIVERY_S", 0.2)
    left = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        leaving = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not leaving.done():
            await send({"type": "http.response.body", "body": bytes(2**15), "more_body": True})
        left.set()

    async with carried(app) as (relay, _), connected(relay) as client:
        await client.send(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        await client.head()
        await until_async(lambda: relay.outcomes)
        assert isinstance(relay.outcomes[0], DeliveryFailed)
        await left.wait()
        while await client.reader.read(MEBIBYTE):
            pass  # what was under way


async def test_an_owner_that_does_not_read_is_waited_for() -> None:
    """An upload of a hundred megabytes is not gathered here: the client is held back until the owner reads."""
    size, go_on = 100 * MEBIBYTE, asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await go_on.wait()
        await echo(scope, receive, send)

    async with carried(app) as (relay, _), connected(relay) as client:
        await client.send(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size)
        written = 0

        async def write() -> None:
            nonlocal written
            while written < size:
                await client.send(bytes(MEBIBYTE))
                written += MEBIBYTE

        writing = asyncio.ensure_future(write())
        await stalled(lambda: written)
        assert written < size / 2
        go_on.set()
        assert (await client.answer())[2].startswith(b"%d " % size)
        await writing
