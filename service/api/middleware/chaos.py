"""The last part of a query's way, in drills only: an answer that goes out in pieces, with a failpoint after each."""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.failpoints import reach

_FLUSH_S: Final = 0.002


class ChaosMiddleware:
    """Hands the answer to a query over as headers and two halves; each is on the wire before its point is reached."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; cut up what is sent in answer to a query."""
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
