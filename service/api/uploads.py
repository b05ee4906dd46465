"""An upload on its way in: its type is checked, then it is spooled, to memory while small and to a nameless file after.

How much may come is counted by `service.api.middleware.request_limits.RequestLimits`; of a body in gzip, what it
unpacks to is counted here, so that a small body cannot become a large file.
"""

import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message
from gzip import BadGzipFile, GzipFile
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Literal, cast

from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from service.api.problems import Refusal
from service.api.query_requests import sent_key
from service.workflows.model.errors import InvalidRequest
from service.workflows.model.journal import RowsOverLimit

CONTENT_TYPES = (
    "text/csv",
    "application/x-ndjson",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
)
MEMORY_BYTES_MAX = 4 * 2**20  # beyond this the spool is a file
FLUSH_BYTES = 2**20  # one hop to a thread per so many bytes, so that no write blocks the event loop


Delimiter = Literal[",", ";", "\t", "|"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A whole body: its media type without parameters, its bytes, rewound, and its idempotency key, if it has one."""

    content_type: str
    source: BinaryIO
    key: str | None = None


async def spooled(request: Request) -> AsyncIterator[Upload]:
    """The request's body, spooled; gone when the request is over.

    Raises a 415 refusal of its type and a 400 refusal of its key before reading anything.
    """
    content_type, is_packed = _content_type(request), _is_packed(request)
    key = sent_key(request) if "idempotency-key" in request.headers else None
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
        if not is_packed:
            yield Upload(content_type=content_type, source=source, key=key)
            return
        with SpooledTemporaryFile(max_size=MEMORY_BYTES_MAX) as unpacked:
            target = cast(BinaryIO, unpacked)
            await run_in_threadpool(unpack, source, target, bytes_max=request.app.state.upload_bytes_max)
            yield Upload(content_type=content_type, source=target, key=key)


def unpack(source: BinaryIO, target: BinaryIO, *, bytes_max: int) -> None:
    """Unpack gzip, piece by piece, and rewind. Raises InvalidRequest, and a 413 above `bytes_max` unpacked bytes."""
    try:
        with GzipFile(fileobj=source, mode="rb") as packed:
            while piece := packed.read(FLUSH_BYTES):
                if target.tell() + len(piece) > bytes_max:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                target.write(piece)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidRequest.of("body", "is not whole gzip, as its Content-Encoding says") from error
    target.seek(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOptions:
    """The parameters in the address; rows that are kept are the first in the order of their own columns."""

    delimiter: Annotated[Delimiter, Query(description="The mark between fields of CSV.")] = ","
    dry_run: Annotated[bool, Query(description="Check everything and report, and store nothing.")] = False
    rows_over_limit: Annotated[
        RowsOverLimit,
        Query(
            description="For rows of an individual beyond `rows_per_individual`: refuse the upload, or keep of each"
            " individual as many as fit."
        ),
    ] = "refuse"


Options = Annotated[UploadOptions, Depends()]

REPEATED = "Idempotent-Replayed"
"""The response header of an upload that an earlier request has stored."""

UPLOAD_BODY: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "Names this upload for good: the same bytes get the same report, and are stored once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        }
    ],
    "requestBody": {
        "required": True,
        "content": {each: {"schema": {"type": "string", "format": "binary"}} for each in CONTENT_TYPES},
    },
}

Spooled = Annotated[Upload, Depends(spooled)]


def _is_packed(request: Request) -> bool:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip"}:
        raise Refusal("unsupported-media-type", headers={"Accept-Encoding": "gzip, identity"})
    return encoding != "identity"


def _content_type(request: Request) -> str:
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    charset = header.get_content_charset("utf-8")
    if header.get_content_type() not in CONTENT_TYPES or charset not in {"utf-8", "utf8", "us-ascii"}:
        accepted = ", ".join(CONTENT_TYPES)
        raise Refusal("unsupported-media-type", f"Send one of {accepted}, in UTF-8.", headers={"Accept": accepted})
    return header.get_content_type()
