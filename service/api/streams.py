"""Places of streams of events, by principal: one that opens many of them takes none from another."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from service.api.auth import Caller
from service.ledger.model.errors import TooManyAtOnce


class Streams:
    """Counts the streams that are open in one application. Belongs to one event loop at a time."""

    def __init__(self, streams_max: int) -> None:
        """Each principal has `streams_max` places."""
        self.streams_max = streams_max
        self._open: Counter[UUID] = Counter()

    @contextmanager
    def one_of(self, principal: UUID) -> Iterator[None]:
        """A place of the principal's. Raises TooManyAtOnce where all are taken."""
        if self._open[principal] >= self.streams_max:
            raise TooManyAtOnce("the events of datasets", self.streams_max)
        self._open[principal] += 1
        try:
            yield
        finally:
            self._open[principal] -= 1
            if self._open[principal] == 0:
                del self._open[principal]


async def stream_place(request: Request, caller: Caller) -> AsyncIterator[None]:
    """A place for one stream, until its response has left or its client has. Raises TooManyAtOnce."""
    streams: Streams = request.app.state.streams
    with streams.one_of(caller.id):
        yield


StreamPlace = Annotated[None, Depends(stream_place)]
