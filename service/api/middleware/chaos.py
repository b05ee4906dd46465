"""The last step of a query in drills: its answer goes out in pieces, with a failpoint after each piece."""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.failpoints import reach

_FLUSH_S: Final = 0.002


class ChaosMiddleware:
    """Sends the answer to a query as headers and two halves. Each is on the wire before its failpoint is reached."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and cut the answer to a query into pieces."""
        if scope["type"] != "http" or not scope["path"].endswith("/queries") or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return

        async def send_in_pieces(message: Message) -> None:
            if message["type"] == "http.response.start":
                await _send_now(send, message, "headers-sent")
                return
            body = message.get("body", b"")
            half = len(body) // 2
            await _send_now(send, {**message, "body": body[:half], "more_body": True}, "half-sent")
            await _send_now(send, {**message, "body": body[half:]}, "sent")

        await self.app(scope, receive, send_in_pieces)
        reach("done")


async def _send_now(send: Send, message: Message, point: str) -> None:
    await send(message)
    await asyncio.sleep(_FLUSH_S)  # the event loop writes when it comes round, not when it is told
    reach(point)
