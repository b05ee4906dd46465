"""Reads and the schedule: an analyst's has slots like a query, an individual's or auditor's begins in a free slot.

Reads without slots would let an analyst make queries late by many cheap ones, and would let every caller feel in the
duration of a read how long a query is worked on. A read in a free slot moves no analyst's slot.
"""

import asyncio
from contextlib import suppress
from typing import Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.api.middleware.release_slots import declare_begun, declare_public_work
from service.api.middleware.request_limits import disconnected
from service.api.pagination import LIMIT_DEFAULT
from service.workflows.admission.admission import Admission
from service.workflows.admission.schedule import Reservation, ScheduleFull
from service.workflows.model.errors import Busy
from service.workflows.model.views import Principal

READ_BYTES: Final = 2**16
ITEM_BYTES: Final = 2**10
"""The public cost of a read: so many bytes, and so many more for each item of the `limit` that it asks for."""

ITEMS_MAX: Final = 1000


async def turn_of(request: Request, caller: Principal, admission: Admission) -> None:
    """Wait for the caller's turn, once the request is whole. Raises Busy, InvalidRequest, ClientDisconnect."""
    await request.body()  # kept for the route that wants it; a wait that ends in the middle of it would lose a part
    cost = admission.read_cost(READ_BYTES + ITEM_BYTES * _items(request))
    turn = _Turn(asyncio.get_running_loop())
    ticket = admission.admit(caller.id, cost, turn)
    declare_public_work(request.scope, ticket)
    if admission.scheduler is not None and not await turn.has_come(request):
        ticket.cancel()
        raise ClientDisconnect


async def free_turn_of(request: Request, caller: Principal, admission: Admission) -> None:
    """Wait for a slot in which no query works; the response is held from its beginning on.

    Raises Busy, ClientDisconnect.
    """
    scheduler, turn = admission.scheduler, _Turn(asyncio.get_running_loop())
    if scheduler is None:
        return
    begin = turn.begin_free
    try:
        scheduler.when_free(begin, caller.id)
    except ScheduleFull as full:
        raise Busy(full.retry_after_s) from None
    if not await turn.has_come(request):
        scheduler.forget(begin)
        raise ClientDisconnect
    declare_begun(request.scope, turn.begins_ns)


class _Turn:
    """A job of the schedule that wakes a coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._come: asyncio.Future[None] = loop.create_future()
        self.begins_ns = 0

    def begin(self, reservation: Reservation) -> None:
        """Wake it in its reservation."""
        self.begin_free(reservation.begins_ns)

    def begin_free(self, begins_ns: int) -> None:
        """Wake it in a free slot."""
        self.begins_ns = begins_ns
        self._tell(None)

    def refuse(self) -> None:
        """Wake it with Busy."""
        self._tell(Busy())

    async def has_come(self, request: Request) -> bool:
        """Wait; False when the client has gone before. Raises Busy."""
        gone = asyncio.ensure_future(disconnected(request.receive))
        either: list[asyncio.Future[None]] = [self._come, gone]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._come.done():
                return False
            await self._come
            return True
        finally:
            gone.cancel()

    def _tell(self, refusal: Busy | None) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._settle, refusal)

    def _settle(self, refusal: Busy | None) -> None:
        if self._come.done():
            return
        if refusal is None:
            self._come.set_result(None)
        else:
            self._come.set_exception(refusal)


def _items(request: Request) -> int:
    """How many items the request asks for at most: its `limit` if that is plain, the most if it is spelled oddly."""
    limit = request.query_params.get("limit")
    if limit is None:
        return LIMIT_DEFAULT
    return min(int(limit), ITEMS_MAX) if limit.isascii() and limit.isdigit() else ITEMS_MAX
