"""Large bodies leave in pieces, as fast as the client takes them, and a client that takes nothing is given up."""

import asyncio

import pytest
from starlette.types import Message

from service.api.middleware.request_context import PIECE_BYTES, DeliveryFailed, deliver

LARGE = bytes(range(256)) * (5 * PIECE_BYTES // 256) + b"the end"


async def sent(message: Message) -> list[Message]:
    """The messages that reach the server."""
    seen: list[Message] = []

    async def send(piece: Message) -> None:
        seen.append(piece)

    await deliver(message, send)
    return seen


async def test_a_small_message_passes_unchanged() -> None:
    """A start, and a body of one piece."""
    for message in (
        {"type": "http.response.start", "status": 200, "headers": []},
        {"type": "http.response.body", "body": LARGE[:PIECE_BYTES], "more_body": True},
    ):
        assert await sent(message) == [message]


@pytest.mark.parametrize("more_body", [True, False])
async def test_a_large_body_is_the_same_in_pieces(more_body: bool) -> None:
    """The pieces together are the body; only after the last is there no more, if there is none."""
    pieces = await sent({"type": "http.response.body", "body": LARGE, "more_body": more_body})
    assert b"".join(piece["body"] for piece in pieces) == LARGE
    assert max(len(piece["body"]) for piece in pieces) == PIECE_BYTES
    assert [piece["more_body"] for piece in pieces] == [True] * 6 + [more_body]


async def test_a_client_that_takes_nothing_is_given_up() -> None:
    """After the time that it has for as many bytes, in the middle of a body."""
    seen: list[Message] = []

    async def send(piece: Message) -> None:
        seen.append(piece)
        await asyncio.sleep(0 if len(seen) < 3 else 3600)

    with pytest.raises(DeliveryFailed):
        await deliver({"type": "http.response.body", "body": LARGE}, send, within_s=0.05)
    assert len(seen) == 3
