"""One request to an ASGI application, without a socket and without the work of a client."""

import asyncio
import json
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it is sent; `target` is the path and the query as they stand in the first line."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.target} {dict(self.headers)} {self.body[:2000]!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The whole of a response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        """The body, if it is JSON; else None."""
        is_json = self.headers.get("content-type", "").split(";")[0].endswith("json")
        return json.loads(self.body) if is_json and self.body else None


async def answer_of(app: ASGIApp, request: Request) -> Response:
    """Send it. What the application raises is raised here."""
    path, _, query = request.target.partition("?")
    sent = {"content-length": str(len(request.body))} if request.body else {}
    scope: MutableMapping[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (*sent.items(), *request.headers)],
        "client": ("127.0.0.1", 1),
        "server": ("sparing", 80),
        "state": {},
    }
    waiting = [{"type": "http.request", "body": request.body, "more_body": False}]
    began: MutableMapping[str, Any] = {}
    parts: list[bytes] = []

    is_whole = asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        if waiting:
            return waiting.pop()
        await is_whole.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            began.update(message)
        else:
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                is_whole.set()

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in began["headers"]}
    return Response(status=began["status"], headers=headers, body=b"".join(parts))
