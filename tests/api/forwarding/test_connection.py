"""One connection to another process: responses in any pieces, and what is no response."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from service.api.forwarding.connection import BUFFERED_BYTES_MAX, ConnectionLost, PeerConnection
from tests.api.neighbours import bound
from tests.waiting import settled, until_async

RESPONSE = b"HTTP/1.1 201 Created\r\nX-Own: 1\r\nContent-Length: 10\r\n\r\n0123456789"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@asynccontextmanager
async def wired() -> AsyncIterator[tuple[PeerConnection, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A wire, and its other end."""
    ends: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ends.put((reader, writer))

    with bound() as listener:
        server = await asyncio.start_server(accept, sock=listener)
        _, wire = await asyncio.get_running_loop().create_connection(PeerConnection, *listener.getsockname())
        reader, writer = await ends.get()
        try:
            async with asyncio.timeout(30):
                yield wire, reader, writer
        finally:
            wire.close()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            server.close()


async def body_of(wire: PeerConnection) -> bytes:
    """All that is taken."""
    data, is_last = b"", False
    while not is_last:
        part, is_last = await wire.take()
        data += part
    return data


async def response_of(wire: PeerConnection) -> bytes:
    """The whole of one, and its body."""
    await wire.head()
    return await body_of(wire)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_response_is_the_same_in_any_pieces(size: int) -> None:
    """Status, headers by their lower-case names, body; with a length and in chunks, one after the other."""
    async with wired() as (wire, _, writer):
        for number, (raw, status, body) in enumerate([(RESPONSE, 201, b"0123456789"), (CHUNKED, 200, b"abcdefg")]):
            if number:
                wire.begin()
            for start in range(0, len(raw), size):
                writer.write(raw[start : start + size])
                await writer.drain()
            found, headers = await wire.head()
            assert (found, await body_of(wire)) == (status, body)
            assert ((b"x-own", b"1") in headers) == (status == 201)
            assert (wire.is_whole, wire.is_kept_alive, wire.is_lost) == (True, True, False)


async def test_a_response_can_be_the_last() -> None:
    """The other end says that it will close."""
    async with wired() as (wire, _, writer):
        writer.write(LAST)
        assert (await wire.head())[0] == 200
        assert (await wire.take(), wire.is_kept_alive) == ((b"", True), False)


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", RESPONSE[:-1], b"SSH-2.0-server\r\n"])
async def test_what_ends_early_or_is_no_response_is_lost(raw: bytes) -> None:
    """Waiting callers are told, and later ones too."""
    async with wired() as (wire, _, writer):
        writer.write(raw)
        writer.close()
        with pytest.raises(ConnectionLost):
            await response_of(wire)
        assert wire.is_lost
        wire.write(b"nobody hears this")
        wire.begin()
        with pytest.raises(ConnectionLost):
            await wire.head()


async def test_a_line_end_that_nobody_awaits_breaks_the_connection() -> None:
    """A parser passes over it as over blank lines before a response."""
    async with wired() as (wire, _, writer):
        writer.write(RESPONSE)
        assert await response_of(wire) == b"0123456789"
        writer.write(b"\r\n")
        await until_async(lambda: wire.is_lost)


@pytest.mark.parametrize("is_together", [True, False])
@pytest.mark.parametrize("surplus", [RESPONSE, b"H", b"x", SWITCHED])
async def test_what_comes_after_the_response_breaks_the_connection(surplus: bytes, *, is_together: bool) -> None:
    """A reply too many, or a byte: whether it comes with the response or once that was taken."""
    async with wired() as (wire, _, writer):
        writer.write(RESPONSE + surplus if is_together else RESPONSE)
        if is_together:
            with pytest.raises(ConnectionLost):
                await response_of(wire)
        else:
            assert await response_of(wire) == b"0123456789"
            assert wire.is_reusable
            writer.write(surplus)
            await until_async(lambda: wire.is_lost)
        assert not wire.is_reusable


async def test_another_protocol_is_no_response() -> None:
    """The client asked for no other protocol."""
    async with wired() as (wire, _, writer):
        writer.write(SWITCHED)
        with pytest.raises(ConnectionLost):
            await response_of(wire)


async def test_a_caller_that_is_cancelled_leaves_the_wait_to_the_next() -> None:
    """The end of the wait is the connection's, and no caller's."""
    async with wired() as (wire, _, _):
        wire.pause_writing()
        first, second = asyncio.ensure_future(wire.drained()), asyncio.ensure_future(wire.drained())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        wire.resume_writing()
        await asyncio.wait([first, second])
        assert [each.cancelled() for each in (first, second)] == [True, False]


async def test_closing_wakes_waiting_callers_and_the_other_end() -> None:
    """From another task."""
    async with wired() as (wire, reader, _):
        waiting = asyncio.ensure_future(wire.head())
        await asyncio.sleep(0)
        wire.close()
        with pytest.raises(ConnectionLost):
            await waiting
        with suppress(ConnectionResetError):
            assert await reader.read() == b""


async def test_no_more_is_read_than_the_reader_takes() -> None:
    """Buffered data are bounded; reading goes on when they are taken."""
    size = 64 * BUFFERED_BYTES_MAX
    async with wired() as (wire, _, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        await wire.head()
        await until_async(lambda: wire._waiting_bytes > BUFFERED_BYTES_MAX)
        await settled()
        assert wire._waiting_bytes < 4 * BUFFERED_BYTES_MAX
        assert len(await body_of(wire)) == size
