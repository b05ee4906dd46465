"""Large bodies leave in pieces, each when the client has taken the one before, and within a bounded time.

A server that is given a body whole keeps what the client does not read in a buffer of its own, for as long as the
connection lasts, and what the request was admitted for no longer counts it. Piece by piece the body stays with the
request, whose memory is counted until the last piece has left (`service.workflows.admission.memory_bound`).
"""

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Message, Send

PIECE_BYTES: Final = 2**16
DELIVERY_S: Final = 30.0
DELIVERED_BYTES_PER_S: Final = 2**20
"""A client has `DELIVERY_S` to take a response, and a second more for so many bytes."""


class DeliveryFailed(ClientDisconnect):
    """The client has not taken its response in time. A response that is not completed makes the server disconnect."""


async def deliver(message: Message, send: Send, *, within_s: float = DELIVERY_S) -> None:
    """Send a message. Raises DeliveryFailed when a large body is not taken in time."""
    body = message.get("body", b"")
    if len(body) <= PIECE_BYTES:
        await send(message)
        return
    try:
        async with asyncio.timeout(within_s + len(body) / DELIVERED_BYTES_PER_S):
            await _in_pieces(message, memoryview(body), send)
    except TimeoutError:
        raise DeliveryFailed from None


async def _in_pieces(message: Message, body: memoryview, send: Send) -> None:
    for start in range(0, len(body), PIECE_BYTES):
        await send({**message, "body": bytes(body[start : start + PIECE_BYTES]), "more_body": True})
    await send({**message, "body": b""})  # waits for the last piece
