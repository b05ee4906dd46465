"""Reads and the schedule: an analyst's read has slots like a query, an individual's or auditor's begins in a free slot.

Without slots, an analyst could make queries late by many cheap reads, and the duration of a read would tell every
caller how long a query is worked on. A read in a free slot moves no analyst's slot.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.api.middleware.release_slots import declare_begun, declare_public_work
from service.api.middleware.request_limits import disconnected
from service.api.pagination import LIMIT_DEFAULT
from service.ledger.model.errors import Busy
from service.ledger.model.views import Principal
from service.numerals import is_digits
from service.writer.admission.admission import Admission
from service.writer.admission.schedule import Reservation, ScheduleFull

T = TypeVar("T")

READ_BYTES: Final = 2**16
ITEM_BYTES: Final = 2**10
"""The public cost of a read: READ_BYTES, and ITEM_BYTES more for each item of its `limit`."""

ITEMS_MAX: Final = 1000


async def turn_of(request: Request, caller: Principal, admission: Admission) -> None:
    """Wait for the caller's turn, once the request is whole. Raises Busy, InvalidRequest, ClientDisconnect."""
    await request.body()  # kept for the route that wants it; a wait that ends in the middle of it would lose a part
    cost = admission.read_cost(READ_BYTES + ITEM_BYTES * _items(request))
    turn = _Turn()
    ticket = admission.admit(caller.id, cost, turn)
    declare_public_work(request.scope, ticket)
    if admission.scheduler is not None and await turn.begun_ns(request) is None:
        ticket.cancel()
        raise ClientDisconnect


async def free_turn_of(request: Request, caller: Principal, admission: Admission) -> None:
    """Wait for a slot in which no query is worked on. The response is held from the slot's beginning on.

    Raises Busy, ClientDisconnect.
    """
    scheduler, turn = admission.scheduler, _Turn()
    if scheduler is None:
        return
    begin = turn.begin_free
    try:
        scheduler.when_free(begin, caller.id)
    except ScheduleFull as full:
        raise Busy(full.retry_after_s) from None
    begun_ns = await turn.begun_ns(request)
    if begun_ns is None:
        scheduler.forget(begin)
        raise ClientDisconnect
    declare_begun(request.scope, begun_ns)


class _Turn:
    """A job of the schedule that wakes the coroutine of a read."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begins_ns: asyncio.Future[int] = self._loop.create_future()

    def begin(self, reservation: Reservation) -> None:
        """Wake the coroutine in its reservation."""
        self.begin_free(reservation.begins_ns)

    def begin_free(self, begins_ns: int) -> None:
        """Wake the coroutine in a free slot."""
        self._settle(self._begins_ns.set_result, begins_ns)

    def refuse(self) -> None:
        """Wake the coroutine with Busy."""
        self._settle(self._begins_ns.set_exception, Busy())

    async def begun_ns(self, request: Request) -> int | None:
        """Wait for the beginning; None when the client has left before it. Raises Busy."""
        gone = asyncio.ensure_future(disconnected(request.receive))
        either: list[asyncio.Future[Any]] = [self._begins_ns, gone]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return await self._begins_ns if self._begins_ns.done() else None
        finally:
            gone.cancel()

    def _settle(self, settle: Callable[[T], None], outcome: T) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(lambda: None if self._begins_ns.done() else settle(outcome))


def _items(request: Request) -> int:
    """How many items the request asks for at most: its `limit` if that is in plain digits, else ITEMS_MAX."""
    limit = request.query_params.get("limit")
    if limit is None:
        return LIMIT_DEFAULT
    return min(int(limit), ITEMS_MAX) if is_digits(limit) else ITEMS_MAX
