"""An upload on its way in: its type is checked, then it is spooled, to memory while small and else to a nameless file.

All uploads and exports share one bound of memory. An upload that must wait for memory before it is read waits without a
thread. `RequestLimits` counts how many bytes come. Of a body in gzip the unpacked bytes are counted here, so that a
small body cannot become a large file. All bytes are counted in `Spools` before they are written.
"""

import asyncio
import logging
import os
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from functools import partial
from gzip import BadGzipFile, GzipFile
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Final, Literal, cast
from uuid import UUID

from fastapi import Depends, Query, Request
from starlette.exceptions import HTTPException

from service.api.auth import Caller, refuse_ended
from service.api.body_length import declared_length
from service.api.places import at_once, current_places
from service.api.problems import Refusal
from service.api.query_requests import sent_key
from service.ledger.model.errors import Busy, InvalidRequest
from service.ledger.model.journal import DecimalMark, Duplicates, RowsOverLimit, UnknownIndividuals, UploadBounds
from service.ledger.model.views import Principal
from service.query.json_text import document_of
from service.query.problems import QueryProblem
from service.writer.admission.admission import MemoryFull
from service.writer.admission.spools import Spool, refusing_a_full_disk
from service.writer.admission.transfers import RECEIVING_BYTES, Transfers

log = logging.getLogger("sparing.uploads")

CONTENT_TYPES = (
    "text/csv",
    "application/x-ndjson",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
)
MEMORY_BYTES_MAX = 2**18  # beyond this the spool is a file
FLUSH_BYTES = 2**18  # one hop to a thread per so many bytes, so that no write blocks the event loop
PATIENCE_S: Final = 30.0
"""How long an upload waits for memory before it is refused."""
LOOK_EVERY_S: Final = 0.05
_IN_TEXT: Final = CONTENT_TYPES[:2]
_IN_COLUMNS: Final = CONTENT_TYPES[2:]


Delimiter = Literal[",", ";", "\t", "|"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A whole body: its media type without parameters, its bytes, rewound, and its idempotency key, if it has one.

    `bounds` are the bounds of reading it, for which memory is held.
    """

    content_type: str
    source: BinaryIO
    key: str | None = None
    bounds: UploadBounds


def spooling(
    content_types: Sequence[str], *, takes_key: bool = False
) -> Callable[[Request, Principal], AsyncIterator[Upload]]:
    """A dependency: the request's body, of one of these types, spooled, with room to read it until the request is over.

    It raises a 415 refusal of its type and a 400 refusal of its key before reading anything, InvalidRequest for a body
    that is not whole, Busy where uploads and exports leave no room in memory, and TooManyBytesSpooled and DiskFull
    where they leave none on disk.
    """

    async def spooled(request: Request, caller: Caller) -> AsyncIterator[Upload]:
        async with _spooled(request, caller, content_types, takes_key=takes_key) as upload:
            yield upload

    return spooled


@asynccontextmanager
async def _spooled(
    request: Request, caller: Principal, content_types: Sequence[str], *, takes_key: bool
) -> AsyncIterator[Upload]:
    content_type, is_packed = _content_type(request, content_types), _is_packed(request)
    key = sent_key(request) if takes_key and "idempotency-key" in request.headers else None
    transfers: Transfers = request.app.state.replica.transfers
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(held(transfers, caller.id, RECEIVING_BYTES, patience_s=0))
        spool = stack.enter_context(transfers.spools.spool(caller.id))
        source = stack.enter_context(_spool_file())
        await _receive(request, caller, source, spool)
        if is_packed:
            packed, source = source, stack.enter_context(_spool_file())
            unpacking = partial(unpack, packed, source, spool, bytes_max=request.app.state.upload_bytes_max)
            await _in_a_thread(request, caller, unpacking)
        body_bytes = source.seek(0, os.SEEK_END)
        source.seek(0)
        memory_bytes = transfers.reading_bytes(body_bytes=body_bytes, is_text=content_type in _IN_TEXT)
        await stack.enter_async_context(held(transfers, caller.id, memory_bytes, patience_s=PATIENCE_S))
        await refuse_ended(request, caller)  # the memory was waited for
        bounds = UploadBounds(decoded_bytes=request.app.state.upload_bytes_max, memory_bytes=memory_bytes)
        yield Upload(content_type=content_type, source=source, key=key, bounds=bounds)


@contextmanager
def _spool_file() -> Iterator[BinaryIO]:
    file = SpooledTemporaryFile(max_size=MEMORY_BYTES_MAX)  # noqa: SIM115 - closed below
    try:
        yield cast(BinaryIO, file)
    finally:
        with suppress(OSError):  # a full disk takes the buffered rest no better at the end
            file.close()


async def _receive(request: Request, caller: Principal, target: BinaryIO, spool: Spool) -> None:
    """Write the whole body to `target`, and rewind.

    Raises InvalidRequest for a wrong length, and what `spooled` raises.
    """
    waiting: list[bytes] = []
    size = taken = 0
    async for chunk in request.stream():
        spool.take(len(chunk))
        waiting.append(chunk)
        size += len(chunk)
        taken += len(chunk)
        if size >= FLUSH_BYTES:
            await _in_a_thread(request, caller, partial(_write, target, waiting, spool))
            waiting, size = [], 0
    with refusing_a_full_disk():
        target.writelines(waiting)
        target.seek(0)
    if "content-length" in request.headers and declared_length(request.scope["headers"]) != taken:
        raise InvalidRequest.of("body", "is not as long as the request says")


def _write(target: BinaryIO, pieces: list[bytes], spool: Spool) -> None:
    with refusing_a_full_disk():
        target.writelines(pieces)
    spool.settle(target)


async def _in_a_thread(request: Request, caller: Principal, work: Callable[[], None]) -> None:
    await current_places(request).spools.run(caller.id, work)


@asynccontextmanager
async def held(transfers: Transfers, principal: UUID, held_bytes: int, *, patience_s: float) -> AsyncIterator[None]:
    """Hold so many bytes, once there is room. Raises Busy where none comes in time."""
    give_up_at = time.monotonic() + patience_s
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(transfers.holding(principal, held_bytes))
                break
            except MemoryFull:
                if time.monotonic() >= give_up_at:
                    raise Busy from None
            await asyncio.sleep(LOOK_EVERY_S)
        yield


def unpack(source: BinaryIO, target: BinaryIO, spool: Spool, *, bytes_max: int) -> None:
    """Unpack gzip, piece by piece, and rewind.

    Raises InvalidRequest, a 413 above `bytes_max` unpacked bytes, and what `spooled` raises for the disk.
    """
    try:
        with GzipFile(fileobj=source, mode="rb") as packed:
            while piece := packed.read(FLUSH_BYTES):
                if target.tell() + len(piece) > bytes_max:
                    log.warning("an upload of more than %d unpacked bytes was refused", bytes_max)
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                spool.take(len(piece))
                with refusing_a_full_disk():
                    target.write(piece)
                spool.settle(target)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidRequest.of("body", "is not whole gzip, as its Content-Encoding says") from error
    with refusing_a_full_disk():
        target.seek(0)


def names_in(text: str) -> dict[str, str | None]:
    """The columns' names by the upload's parameter `columns`. Raises InvalidRequest."""
    if not text:
        return {}
    try:
        named = document_of(text.encode(errors="surrogatepass"))
    except QueryProblem as problem:
        raise InvalidRequest.of("columns", problem.errors[0].message) from problem
    if not isinstance(named, dict) or not all(isinstance(each, str | None) for each in named.values()):
        raise InvalidRequest.of("columns", 'must be a JSON object such as {"Person No": "person_no", "note": null}')
    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOptions:
    """The parameters in the address of an upload."""

    delimiter: Annotated[Delimiter, Query(description="The mark between fields of CSV.")] = ","
    decimal: Annotated[DecimalMark, Query(description="The mark before the fraction of a number in CSV.")] = "."
    columns: Annotated[
        str,
        Query(
            description="A JSON object with the declared name of each column that has another one in the file, by its"
            " name there; null leaves a column out."
        ),
    ] = ""
    accept: Annotated[
        str,
        Query(
            description="Columns, with commas between them, that are stored though more than a twentieth of their"
            " values are outside their bounds or no declared category; others are refused."
        ),
    ] = ""
    dry_run: Annotated[bool, Query(description="Check everything and report, and store nothing.")] = False
    rows_over_limit: Annotated[
        RowsOverLimit,
        Query(
            description="For rows of an individual beyond `rows_per_individual`: refuse the upload, or keep of each"
            " individual as many as fit."
        ),
    ] = "refuse"
    unknown_individuals: Annotated[
        UnknownIndividuals,
        Query(
            description="For rows of events whose key is no individual's: what the table declares, or leave them out"
            " and count them."
        ),
    ] = "as_declared"
    duplicates: Annotated[
        Duplicates,
        Query(
            description="For rows with the key and the stored values of an earlier row: keep and count them, drop and"
            " count them, or refuse the upload."
        ),
    ] = "keep"


Options = Annotated[UploadOptions, Depends(at_once(UploadOptions))]

REPEATED = "Idempotent-Replayed"
"""The response header that says that an earlier request has stored the upload."""


def _body(content_types: Sequence[str]) -> dict[str, Any]:
    schema = {"type": "string", "format": "binary"}
    return {"required": True, "content": {each: {"schema": schema} for each in content_types}}


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
    "requestBody": _body(CONTENT_TYPES),
}
FILE_BODY: dict[str, Any] = {"requestBody": _body(_IN_COLUMNS)}

Spooled = Annotated[Upload, Depends(spooling(CONTENT_TYPES, takes_key=True))]
SpooledColumns = Annotated[Upload, Depends(spooling(_IN_COLUMNS))]


def _is_packed(request: Request) -> bool:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip"}:
        raise Refusal("unsupported-media-type", headers={"Accept-Encoding": "gzip, identity"})
    return encoding != "identity"


def _content_type(request: Request, content_types: Sequence[str]) -> str:
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    charset = header.get_content_charset("utf-8")
    if header.get_content_type() not in content_types or charset not in {"utf-8", "utf8", "us-ascii"}:
        accepted = ", ".join(content_types)
        raise Refusal("unsupported-media-type", f"Send one of {accepted}, in UTF-8.", headers={"Accept": accepted})
    return header.get_content_type()
