"""Places of streams of events, by principal, so that one who opens many streams takes no place from another."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from service.api.auth import Caller
from service.ledger.model.errors import TooManyAtOnce


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
