"""Reads of analysts in the schedule: like a query, a read begins in its slots and leaves when they end.

Otherwise an analyst could make queries late by many cheap reads, and could feel in a read's own duration what the
server is working on.
"""

import asyncio
from contextlib import suppress
from typing import Any, Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.api.middleware.release_slots import declare_public_work
from service.api.pagination import LIMIT_DEFAULT
from service.workflows.admission.admission import Admission, Ticket
from service.workflows.admission.schedule import Reservation
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
    if admission.scheduler is not None and not await turn.has_come(request, ticket):
        raise ClientDisconnect


class _Turn:
    """A job of the schedule that wakes a coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._come: asyncio.Future[bool] = loop.create_future()

    def begin(self, reservation: Reservation) -> None:  # noqa: ARG002 - the schedule's port
        """Wake it."""
        self._tell(None)

    def refuse(self) -> None:
        """Wake it with Busy."""
        self._tell(Busy())

    async def has_come(self, request: Request, ticket: Ticket) -> bool:
        """Wait; False when the client has gone before. Raises Busy."""
        gone = asyncio.ensure_future(disconnected(request))
        either: list[asyncio.Future[Any]] = [self._come, gone]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._come.done():
                ticket.cancel()
                return False
            return await self._come
        finally:
            gone.cancel()

    def _tell(self, refusal: Busy | None) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._settle, refusal)

    def _settle(self, refusal: Busy | None) -> None:
        if self._come.done():
            return
        if refusal is None:
            self._come.set_result(True)
        else:
            self._come.set_exception(refusal)


async def disconnected(request: Request) -> None:
    """Return when the client has gone, whose request is whole."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _items(request: Request) -> int:
    """How many items the request asks for at most: its `limit` if that is plain, the most if it is spelled oddly."""
    limit = request.query_params.get("limit")
    if limit is None:
        return LIMIT_DEFAULT
    return min(int(limit), ITEMS_MAX) if limit.isascii() and limit.isdigit() else ITEMS_MAX
