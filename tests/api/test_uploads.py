"""An upload on its way in."""

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.types import Message

from service.api.problems import Refusal
from service.api.uploads import CONTENT_TYPES, FLUSH_BYTES, MEMORY_BYTES_MAX, spooled


def request(content_type: str | None, chunks: list[bytes]) -> Request:
    """A request whose body comes in chunks."""
    messages: Iterator[Message] = iter(
        [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        + [{"type": "http.request", "body": b"", "more_body": False}]
    )

    async def receive() -> Message:
        return next(messages)

    headers = [] if content_type is None else [(b"content-type", content_type.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


@pytest.mark.parametrize("size", [0, 1, FLUSH_BYTES - 1, FLUSH_BYTES, MEMORY_BYTES_MAX + FLUSH_BYTES + 3])
async def test_the_bytes_arrive_in_order_and_rewound(size: int) -> None:
    """Whether they stay in memory or go through a file."""
    body = bytes(index * 31 % 251 for index in range(1000)) * (size // 1000) + b"x" * (size % 1000)
    chunks = [body[start : start + 65_537] for start in range(0, len(body), 65_537)]
    upload = spooled(request("text/csv", chunks))
    taken = await anext(upload)
    assert (taken.content_type, taken.source.read()) == ("text/csv", body)
    with pytest.raises(StopAsyncIteration):
        await anext(upload)
    assert taken.source.closed


@pytest.mark.parametrize("given", [*CONTENT_TYPES, "Text/CSV", "text/csv; charset=UTF-8", "text/csv;charset=us-ascii"])
async def test_the_type_is_told_without_its_parameters(given: str) -> None:
    """As the engine knows it."""
    upload = spooled(request(given, []))
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
        await anext(spooled(asked))
    assert (refused.value.status, refused.value.headers["Accept"]) == (415, ", ".join(CONTENT_TYPES))
