"""The curator's overview: the budgets now, over time and as a file, a forecast, the alarm, a verification, events."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, Final

import orjson
from fastapi import Body, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.routing import compile_path

from service.api.auth import Caller, CurrentReplica, guarded_router
from service.api.middleware.request_context import DrainState
from service.api.query_requests import QUERY_BODY, sent_query
from service.query.schema import doc
from service.workflows.curator import Curators
from service.workflows.model.views import BudgetRow, BudgetSummary
from service.workflows.overview import SummaryHistory, Verification
from service.workflows.ports.store import BudgetAlarm
from service.workflows.reads.forecast import Forecast

CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
EXPORTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {each: {"schema": {"type": "string", "format": "binary"}} for each in (CSV, PARQUET)}}
}
_PAGE: Final = 1000
_MEMORY_BYTES_MAX: Final = 2**22
_CHUNK: Final = 2**16
_COLUMNS: Final = tuple(each.name for each in fields(BudgetRow))


_EVENTS = "/datasets/{dataset}/events"
EVENTS_PATH = compile_path(f"/v1{_EVENTS}")[0]
_EXPORT = "/datasets/{dataset}/budgets/export"
EXPORT_PATH = compile_path(f"/v1{_EXPORT}")[0]
EVENTS_LAST_S: Final = 600
"""A stream ends after so long, and the browser asks again: by then its key or session may be gone."""
EVENTS_EVERY_S: Final = 0.5
EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
BEAT_EVERY: Final = 30
"""A comment is sent after so many looks without news, so that a connection that is gone is noticed."""
EVENTS_MAX: Final = 32
"""So many streams are open in a process at most."""
_open: Final[set[object]] = set()

router = guarded_router("curator")


class AlarmRequest(BaseModel):
    """The alarm to set, or to remove."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        doc("The share of individuals at which it rings; null removes the alarm."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmView:
    """The alarm, and whether it has rung."""

    share: Annotated[float | None, doc("The share of individuals at which it rings; null where none is set.")]
    rang_at_sequence: Annotated[int | None, doc("The ledger's sequence at which it rang; null until it has.")]

    @classmethod
    def of(cls, alarm: BudgetAlarm | None) -> "AlarmView":
        """As it is sent."""
        return cls(
            share=None if alarm is None else alarm.share, rang_at_sequence=None if alarm is None else alarm.rang_seq
        )


@router.get("/datasets/{dataset}/budgets/summary", summary="Summarise the budgets")
def read_budget_summary(replica: CurrentReplica, dataset: str) -> BudgetSummary:
    """How much budget is left, over all individuals."""
    return replica.overview.summary(dataset)


@router.get("/datasets/{dataset}/budgets/history", summary="Read the summary over time")
def read_budget_history(replica: CurrentReplica, dataset: str) -> SummaryHistory:
    """The summary over time: a point every few seconds while queries come, thinned out as it grows."""
    return replica.overview.history(dataset)


@router.get(
    _EXPORT,
    summary="Export the accounts",
    response_description="The file: Parquet where `Accept` names it, else CSV.",
    responses=EXPORTED,
    response_class=Response,
)
def export_budgets(request: Request, replica: CurrentReplica, dataset: str) -> Response:
    """The account of every individual as one CSV or Parquet file."""
    replica.curators.dataset(dataset)
    pages = _pages(dataset, replica.curators)
    first = next(pages, [])  # a refusal comes before the response begins
    wants_parquet = PARQUET in request.headers.get("accept", "")
    name, media_type, encode = ("parquet", PARQUET, _parquet) if wants_parquet else ("csv", CSV, _csv)
    headers = {"Content-Disposition": f'attachment; filename="{dataset}-budgets.{name}"'}
    return StreamingResponse(encode(first, pages), media_type=media_type, headers=headers)


@router.post("/datasets/{dataset}/forecast", summary="Forecast more queries of one kind", openapi_extra=QUERY_BODY)
async def make_forecast(request: Request, replica: CurrentReplica, dataset: str) -> Forecast:
    """How many more queries like this one the people it touches can pay for. Charges nothing and answers nothing."""
    query = await sent_query(request)
    return await run_in_threadpool(replica.overview.forecast, dataset, query)


@router.get("/datasets/{dataset}/alarm", summary="Read the alarm")
def read_alarm(replica: CurrentReplica, dataset: str) -> AlarmView:
    """The alarm that is set."""
    return AlarmView.of(replica.overview.alarm(dataset))


@router.put("/datasets/{dataset}/alarm", summary="Set or remove the alarm")
def set_alarm(replica: CurrentReplica, dataset: str, wish: Annotated[AlarmRequest, Body()]) -> AlarmView:
    """Ring, by a line in the log, when so large a share cannot pay for another query like the last."""
    return AlarmView.of(replica.overview.set_alarm(dataset, wish.share))


@router.post("/datasets/{dataset}/verification", status_code=202, summary="Begin to verify the ledger")
def verify_ledger(replica: CurrentReplica, dataset: str) -> Verification:
    """Begin to verify the dataset's ledger, unless that is under way."""
    return replica.overview.verify(dataset)


@router.get("/datasets/{dataset}/verification", summary="Read the last verification")
def read_verification(replica: CurrentReplica, dataset: str) -> Verification:
    """The last verification in this process, or the one under way."""
    return replica.overview.verification(dataset)


@router.get(
    _EVENTS,
    summary="Watch the ledger grow",
    response_description="The events, as they come: `sequence`, with the ledger's sequence as JSON.",
    responses=EVENTS,
    response_class=StreamingResponse,
)
async def watch_ledger(
    request: Request,
    replica: CurrentReplica,
    caller: Caller,
    dataset: str,
    seconds: Annotated[
        int, Query(ge=0, le=EVENTS_LAST_S, description="For how long the stream lasts.")
    ] = EVENTS_LAST_S,
) -> Response:
    """Server-sent events: `sequence` at once, and when entries were added to the ledger; for so many `seconds`."""
    # Both may read the database, and must not fail once the response has begun.
    sequence = await run_in_threadpool(replica.overview.sequence, dataset)
    watching = await run_in_threadpool(replica.overview.watching, dataset)
    headers = {"X-Accel-Buffering": "no"}
    drain_state: DrainState = request.app.state.drain_state

    async def news(sequence: int) -> AsyncIterator[bytes]:
        """The events; ends with a drain, and with the caller's key."""
        yield _event(sequence)
        for look in range(1, int(seconds / EVENTS_EVERY_S) + 1):
            await asyncio.sleep(EVENTS_EVERY_S)
            if drain_state.draining:
                return
            now = await run_in_threadpool(replica.overview.sequence, dataset)
            if now != sequence:
                sequence = now
                yield _event(sequence)
            elif look % BEAT_EVERY == 0:
                if not await run_in_threadpool(replica.principals.is_active, caller.id):
                    return
                yield b": still here\n\n"

    return StreamingResponse(_one_of_few(watching, news(sequence)), media_type="text/event-stream", headers=headers)


async def _one_of_few(watching: AbstractContextManager[None], news: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A stream, while it is watched for; beyond EVENTS_MAX of them, only when to ask again."""
    if len(_open) >= EVENTS_MAX:
        yield b"retry: 10000\n\n"
        return
    place = object()
    _open.add(place)
    try:
        with watching:
            async for each in news:
                yield each
    finally:
        _open.discard(place)


def _event(sequence: int) -> bytes:
    return b"event: sequence\ndata: " + orjson.dumps({"sequence": sequence}) + b"\n\n"


def _pages(dataset: str, curators: Curators) -> Iterator[list[BudgetRow]]:
    """The accounts of a dataset, page by page while they are sent: a million rows take little memory."""
    cursor = None
    while True:
        page = curators.budgets(dataset, cursor=cursor, limit=_PAGE)
        yield list(page.items)
        cursor = page.next
        if cursor is None:
            return


def _csv(first: list[BudgetRow], pages: Iterator[list[BudgetRow]]) -> Iterator[bytes]:
    yield _lines([_COLUMNS])
    yield _lines([_safe(row) for row in first])
    for rows in pages:
        yield _lines([_safe(row) for row in rows])


def _safe(row: BudgetRow) -> list[object]:
    """The row's values; a key that a spreadsheet would take for a formula begins with an apostrophe."""
    key = f"'{row.key}" if row.key[:1] in {"=", "+", "-", "@", "\t", "\r"} else row.key
    return [key, *(getattr(row, name) for name in _COLUMNS[1:])]


def _lines(rows: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _parquet(first: list[BudgetRow], pages: Iterator[list[BudgetRow]]) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415 - a start does not need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = {"spent_units": pa.int64(), "budget_units": pa.int64(), "paused": pa.bool_()}
    counts = dict.fromkeys(["queries_charged", "queries_left_out"], pa.int64())
    schema = pa.schema([(name, (types | counts).get(name, pa.string())) for name in _COLUMNS])
    with SpooledTemporaryFile(max_size=_MEMORY_BYTES_MAX) as spool:
        with pq.ParquetWriter(spool, schema, compression="zstd") as writer:
            for rows in (first, *pages):
                columns = {name: [getattr(row, name) for row in rows] for name in _COLUMNS}
                writer.write_table(pa.table(columns, schema=schema))
        spool.seek(0)
        while chunk := spool.read(_CHUNK):
            yield chunk
