"""The curator's overview: the budgets now, over time and as a file, a forecast, the alarm, a verification, events."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from fastapi import Body, Depends, Query, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse
from starlette.routing import compile_path

from service.api.auth import Caller, CurrentReplica, guarded_router, is_still_admitted, may_go_on
from service.api.middleware.request_context import DrainState
from service.api.middleware.request_limits import ResponseAborted
from service.api.places import current_places
from service.api.query_requests import QUERY_BODY, sent_query
from service.api.uploads import held
from service.ledger.model.errors import ClockImplausible, NotFound, TooManyAtOnce
from service.ledger.model.views import BudgetSummary
from service.ledger.ports.store import BudgetAlarm, StoreUnavailable
from service.numerals import INTEGER
from service.query.schema import ClosedModel, doc
from service.reads.account_files import AccountFile, FileForm
from service.reads.forecast import Forecast
from service.workflows.overview import BackupState, SummaryHistory, Verification
from service.writer.admission.transfers import Transfers

CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
EXPORTED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {each: {"schema": {"type": "string", "format": "binary"}} for each in (CSV, PARQUET)}}
}

_EVENTS = "/datasets/{dataset}/events"
EVENTS_PATH = compile_path(f"/v1{_EVENTS}")[0]
_EXPORT = "/datasets/{dataset}/budgets/export"
EXPORT_PATH = compile_path(f"/v1{_EXPORT}")[0]
EVENTS_LAST_S: Final = 600
"""How long a stream of events lasts; then the browser asks again."""
EVENTS_EVERY_S: Final = 0.5
EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
BEAT_EVERY: Final = 30
"""How many looks without news pass before a comment is sent, so that a lost connection is noticed."""
CHUNK_BYTES: Final = 2**16
"""How many bytes are handed to the connection at a time. It takes no more until its client has read them."""

router = guarded_router("curator")


async def room(request: Request, caller: Caller) -> AsyncIterator[None]:
    """Hold memory for one export until its response has left or its client has gone.

    Raises Busy where there is none.
    """
    transfers: Transfers = request.app.state.replica.transfers
    async with held(transfers, caller.id, transfers.export_bytes, patience_s=0):
        yield


Room = Annotated[None, Depends(room)]


async def stream_place(request: Request, caller: Caller) -> AsyncIterator[None]:
    """A place for one stream, until its response has left or its client has. Raises TooManyAtOnce."""
    state = request.app.state
    open_streams: Counter[UUID] = state.streams
    if open_streams[caller.id] >= state.places.bounds.streams_max:
        raise TooManyAtOnce("the events of datasets", state.places.bounds.streams_max)
    open_streams[caller.id] += 1
    try:
        yield
    finally:
        open_streams -= Counter([caller.id])  # which forgets a principal without any


StreamPlace = Annotated[None, Depends(stream_place)]


class AlarmRequest(ClosedModel):
    """The alarm to set, or to remove."""

    share: Annotated[
        Annotated[float, Field(strict=True, gt=0, le=1)] | None,
        doc("The share of individuals at which it rings; null removes the alarm."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmView:
    """The alarm, and whether it has rung."""

    share: Annotated[float | None, doc("The share of individuals at which it rings; null where none is set.")]
    rang_at_sequence: Annotated[int | None, doc("The ledger's sequence at which it rang; null until it has.")]

    @classmethod
    def of(cls, alarm: BudgetAlarm | None) -> "AlarmView":
        """The alarm in the form in which it is sent."""
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
async def export_budgets(
    request: Request, replica: CurrentReplica, caller: Caller, dataset: str, _room: Room
) -> Response:
    """The account of every individual as one CSV or Parquet file, sent as it is made; 429 where exports are many."""
    form: FileForm = "parquet" if PARQUET in request.headers.get("accept", "") else "csv"
    export = partial(replica.curators.export, dataset, form)
    file = await current_places(request).reads.run(caller.role, caller.id, export)
    first = await asyncio.wrap_future(file.next_piece())  # a refusal comes before the response begins
    headers = {"Content-Disposition": f'attachment; filename="{dataset}-budgets.{form}"'}
    media_type = PARQUET if form == "parquet" else CSV
    goes_on = partial(may_go_on, request, replica, caller)
    return StreamingResponse(_sent(first, file, goes_on=goes_on), media_type=media_type, headers=headers)


@router.post("/datasets/{dataset}/forecast", summary="Forecast more queries of one kind", openapi_extra=QUERY_BODY)
async def make_forecast(request: Request, replica: CurrentReplica, caller: Caller, dataset: str) -> Forecast:
    """How many more queries like this one the people it touches can pay for. Charges nothing and answers nothing."""
    forecast = partial(replica.overview.forecast, dataset, await sent_query(request))
    return await current_places(request).long_reads.run(dataset, caller.id, forecast)


@router.get("/datasets/{dataset}/alarm", summary="Read the alarm")
def read_alarm(replica: CurrentReplica, dataset: str) -> AlarmView:
    """The alarm that is set."""
    return AlarmView.of(replica.overview.alarm(dataset))


@router.put("/datasets/{dataset}/alarm", summary="Set or remove the alarm")
def set_alarm(replica: CurrentReplica, dataset: str, wish: Annotated[AlarmRequest, Body()]) -> AlarmView:
    """Ring, by a line in the log, when so large a share cannot pay for another typical query."""
    return AlarmView.of(replica.overview.set_alarm(dataset, wish.share))


@router.post("/datasets/{dataset}/verification", status_code=202, summary="Begin to verify the ledger")
def verify_ledger(replica: CurrentReplica, dataset: str) -> Verification:
    """Begin to verify the dataset's ledger, unless that is under way."""
    return replica.overview.verify(dataset)


@router.get("/datasets/{dataset}/backup", summary="Read whether a backup was put back")
def read_backup(replica: CurrentReplica, dataset: str) -> BackupState:
    """Tell whether the database holds all that was witnessed, and what a backup that was put back lacks."""
    return replica.overview.backup(dataset)


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
    _place: StreamPlace,
    seconds: Annotated[
        int, INTEGER, Query(ge=0, le=EVENTS_LAST_S, description="For how long the stream lasts.")
    ] = EVENTS_LAST_S,
) -> Response:
    """Server-sent events: `sequence` at once, and when entries were added to the ledger; for so many `seconds`."""
    # Both may read the database, and must not fail once the response has begun.
    streams = current_places(request).streams
    look_up = partial(replica.overview.sequence, dataset)
    sequence = await streams.run(caller.id, look_up)
    watching = await streams.run(caller.id, partial(replica.overview.watching, dataset))
    headers = {"X-Accel-Buffering": "no"}
    drain_state: DrainState = request.app.state.drain_state

    async def news(sequence: int) -> AsyncIterator[bytes]:
        """The events; ends with a drain, and before the next of them once the caller's credential or rights end."""
        yield _event(sequence)
        for look in range(1, int(seconds / EVENTS_EVERY_S) + 1):
            await asyncio.sleep(EVENTS_EVERY_S)
            if drain_state.draining:
                return
            now = await streams.run(caller.id, look_up)
            if now == sequence and look % BEAT_EVERY:
                continue
            if not await is_still_admitted(request, replica, caller):
                return
            yield b": still here\n\n" if now == sequence else _event(now)
            sequence = now

    return StreamingResponse(_watched(watching, news(sequence)), media_type="text/event-stream", headers=headers)


async def _sent(
    first: bytes | None, file: AccountFile, *, goes_on: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """The file from its first piece on, in chunks. Each further piece is made once the last one has been taken.

    Raises ResponseAborted if `goes_on` is False before a further piece: the file is cut off, which the client notices.
    """
    piece = first
    while piece is not None:
        for begin in range(0, len(piece), CHUNK_BYTES):
            yield piece[begin : begin + CHUNK_BYTES]
        if not await goes_on():
            raise ResponseAborted
        piece = await asyncio.wrap_future(file.next_piece())


async def _watched(watching: AbstractContextManager[None], news: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A stream during which the dataset is watched."""
    with watching, suppress(NotFound, StoreUnavailable, ClockImplausible):  # the browser asks again
        async for each in news:
            yield each


def _event(sequence: int) -> bytes:
    return b"event: sequence\ndata: " + orjson.dumps({"sequence": sequence}) + b"\n\n"
