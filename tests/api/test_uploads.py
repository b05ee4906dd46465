"""An upload on its way in."""

import asyncio
import errno
import gzip
import io
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from starlette.requests import Request
from starlette.types import Message

from service.api import uploads
from service.api.places import PlacesOfLoops
from service.api.problems import Refusal
from service.api.uploads import CONTENT_TYPES, FLUSH_BYTES, MEMORY_BYTES_MAX, spooling
from service.ledger.model.errors import Busy, DiskFull, InvalidRequest, TooManyBytesSpooled
from service.ledger.model.views import Principal
from service.writer.admission.spools import SpoolBounds
from service.writer.admission.transfers import RECEIVING_BYTES, Transfers
from tests.waiting import settled, until_async

CURATOR = Principal(id=UUID(int=1), role="curator", name="c", dataset=None, individual=None, allowance_units=None)
spooled = spooling(CONTENT_TYPES, takes_key=True)


def request(
    content_type: str | None, chunks: list[bytes], *headers: tuple[bytes, bytes], transfers: Transfers | None = None
) -> Request:
    """A request whose body comes in chunks."""
    messages: Iterator[Message] = iter(
        [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        + [{"type": "http.request", "body": b"", "more_body": False}]
    )

    async def receive() -> Message:
        return next(messages)

    typed = [] if content_type is None else [(b"content-type", content_type.encode())]
    principals = SimpleNamespace(remembered=lambda _: CURATOR)
    replica = SimpleNamespace(transfers=transfers or Transfers(2**30), principals=principals)
    state = SimpleNamespace(replica=replica, upload_bytes_max=2**20, places=PlacesOfLoops())
    sent = [*typed, *headers, (b"authorization", b"Bearer key")]
    scope = {"type": "http", "method": "POST", "headers": sent, "app": SimpleNamespace(state=state)}
    return Request(scope, receive)


@pytest.mark.parametrize("size", [0, 1, FLUSH_BYTES - 1, FLUSH_BYTES, MEMORY_BYTES_MAX + FLUSH_BYTES + 3])
async def test_the_bytes_arrive_in_order_and_rewound(size: int) -> None:
    """They do so from memory and from a file."""
    body = bytes(index * 31 % 251 for index in range(1000)) * (size // 1000) + b"x" * (size % 1000)
    chunks = [body[start : start + 65_537] for start in range(0, len(body), 65_537)]
    upload = spooled(request("text/csv", chunks), CURATOR)
    taken = await anext(upload)
    assert (taken.content_type, taken.source.read()) == ("text/csv", body)
    with pytest.raises(StopAsyncIteration):
        await anext(upload)
    assert taken.source.closed


@pytest.mark.parametrize("given", [*CONTENT_TYPES, "Text/CSV", "text/csv; charset=UTF-8", "text/csv;charset=us-ascii"])
async def test_the_type_is_told_without_its_parameters(given: str) -> None:
    """The type is one that the engine knows."""
    upload = spooled(request(given, []), CURATOR)
    assert (await anext(upload)).content_type in CONTENT_TYPES
    await upload.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "text",
        "text/plain",
        "application/json",
        "multipart/form-data; boundary=x",
        "text/csv; charset=latin-1",
    ],
)
async def test_anything_else_is_refused_unread(given: str | None) -> None:
    """415, with what would be accepted."""

    async def never() -> Message:
        pytest.fail("the body was read")

    asked = request(given, [])
    asked._receive = never
    with pytest.raises(Refusal) as refused:
        await anext(spooled(asked, CURATOR))
    assert (refused.value.status, refused.value.headers["Accept"]) == (415, ", ".join(CONTENT_TYPES))


@pytest.mark.parametrize(
    "headers", [[(b"content-length", b"7")], [(b"content-length", b"3")], [(b"content-length", b"x")]]
)
async def test_a_body_that_is_not_as_long_as_declared_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    """It is another one than the client has sent."""
    with pytest.raises(InvalidRequest, match="not as long as the request says"):
        await anext(spooled(request("text/csv", [b"a,b\n"], *headers), CURATOR))


async def test_an_upload_waits_for_memory_and_is_refused_when_none_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both bodies are received; the second is read once the first has ended, and all memory is given back."""
    monkeypatch.setattr(uploads, "PATIENCE_S", 0.2)
    transfers = Transfers(2**30)
    one, two, three = (spooled(request(CONTENT_TYPES[2], [b"PAR1"], transfers=transfers), CURATOR) for _ in range(3))
    taken = await anext(one)
    assert transfers.kept_bytes == RECEIVING_BYTES + taken.bounds.memory_bytes
    assert taken.bounds.decoded_bytes == 2**20
    with pytest.raises(Busy):
        await anext(two)
    monkeypatch.setattr(uploads, "PATIENCE_S", 30)
    waiting = asyncio.ensure_future(anext(three))
    await until_async(lambda: transfers.kept_bytes == 2 * RECEIVING_BYTES + taken.bounds.memory_bytes)
    await settled()
    assert not waiting.done()
    await one.aclose()  # type: ignore[attr-defined]
    assert (await waiting).bounds == taken.bounds
    await three.aclose()  # type: ignore[attr-defined]
    assert transfers.kept_bytes == 0


async def test_bodies_under_way_are_bounded_too() -> None:
    """Beyond half of the memory a principal's uploads are refused before they are read."""
    transfers = Transfers(4 * RECEIVING_BYTES)
    with (
        transfers.holding(CURATOR.id, RECEIVING_BYTES),
        transfers.holding(CURATOR.id, RECEIVING_BYTES),
        pytest.raises(Busy),
    ):
        await anext(spooled(request("text/csv", [b"a"], transfers=transfers), CURATOR))


def _gzip(content: bytes) -> tuple[list[bytes], tuple[bytes, bytes]]:
    return [gzip.compress(content)], (b"content-encoding", b"gzip")


@pytest.mark.parametrize("is_packed", [False, True])
async def test_bytes_on_disk_are_counted_before_they_are_written(is_packed: bool) -> None:
    """The unpacked bytes of a gzip count too; beyond the bound nothing is left on disk or counted."""
    transfers = Transfers(2**30, SpoolBounds(principal_bytes_max=50_000, bytes_max=2**30))
    for size, is_taken in ((40_000, True), (60_000, False)):
        chunks, *headers = _gzip(bytes(size)) if is_packed else ([bytes(size)],)
        upload = spooled(request("text/csv", chunks, *headers, transfers=transfers), CURATOR)
        if is_taken:
            await anext(upload)
            assert transfers.spools.bytes_held == size + (len(chunks[0]) if is_packed else 0)
            await upload.aclose()  # type: ignore[attr-defined]
        else:
            with pytest.raises(TooManyBytesSpooled):
                await anext(upload)
        assert transfers.spools.bytes_held == 0


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
async def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, fault: int, is_packed: bool) -> None:
    """While the bytes come, when they are unpacked, or when the last of them leave a buffer."""

    class Full(io.BytesIO):
        def __init__(self, max_size: int) -> None:
            super().__init__()
            self.max_size = max_size

        def write(self, data: Any) -> int:
            if self.tell() + len(data) > self.max_size:
                raise OSError(fault, os.strerror(fault))
            return super().write(data)

        def writelines(self, lines: Any) -> None:
            for line in lines:
                self.write(line)

        def close(self) -> None:
            super().close()
            raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(uploads, "SpooledTemporaryFile", Full)
    transfers = Transfers(2**30)
    chunks, *headers = _gzip(bytes(2**19)) if is_packed else ([bytes(2**18), bytes(2**18)],)
    with pytest.raises(DiskFull, match="TMPDIR"):
        await anext(spooled(request("text/csv", chunks, *headers, transfers=transfers), CURATOR))
    assert (transfers.spools.bytes_held, transfers.kept_bytes) == (0, 0)
