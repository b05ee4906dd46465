"""An upload on its way in: its type is checked, then it is spooled, to memory while small and to a nameless file after.

How much may come is counted by `service.api.middleware.request_limits.RequestLimits`.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, cast

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from service.api.problems import Refusal

CONTENT_TYPES = (
    "text/csv",
    "application/x-ndjson",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
)
MEMORY_BYTES_MAX = 4 * 2**20  # beyond this the spool is a file
FLUSH_BYTES = 2**20  # one hop to a thread per so many bytes, so that no write blocks the event loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A whole body: its media type without parameters, and its bytes, rewound."""

    content_type: str
    source: BinaryIO


async def spooled(request: Request) -> AsyncIterator[Upload]:
    """The request's body, spooled; gone when the request is over. Raises a 415 refusal before reading anything."""
    content_type = _content_type(request)
    with SpooledTemporaryFile(max_size=MEMORY_BYTES_MAX) as spool:
        source = cast(BinaryIO, spool)
        waiting: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            waiting.append(chunk)
            size += len(chunk)
            if size >= FLUSH_BYTES:
                await run_in_threadpool(source.writelines, waiting)
                waiting, size = [], 0
        source.writelines(waiting)
        source.seek(0)
        yield Upload(content_type=content_type, source=source)


UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {each: {"schema": {"type": "string", "format": "binary"}} for each in CONTENT_TYPES},
    }
}

Spooled = Annotated[Upload, Depends(spooled)]


def _content_type(request: Request) -> str:
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    charset = header.get_content_charset("utf-8")
    if header.get_content_type() not in CONTENT_TYPES or charset not in {"utf-8", "utf8", "us-ascii"}:
        accepted = ", ".join(CONTENT_TYPES)
        raise Refusal(415, "unsupported-media-type", f"Send one of {accepted}, in UTF-8.", headers={"Accept": accepted})
    return header.get_content_type()
