"""The instants at which responses leave, and the layer that holds each response until its own.

The layer stands outside everything that makes a response, so that every outcome passes it: an answer, a refusal, a
replay and an incident alike.

Instants are whole multiples of the slot's length on the monotonic clock. A response whose request has a place in the
schedule leaves when its reservation ends (`admission.schedule`). Every other held response leaves a fixed time after
its request was whole: a refusal before anything was reserved, or a read by an individual. A response that is not ready
by then leaves after twice its delay, or four times, or eight. An observer thus sees only the number of doublings, not
how late the response was. All numbers are ns.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.middleware.release_clock import ReleaseClock
from service.ledger.model.views import Principal
from service.ledger.ports.telemetry import Telemetry
from service.writer.admission.admission import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Slots of `length_ns`, which begin at whole multiples of it."""

    length_ns: int

    def after(self, whole_ns: int, held_ns: int) -> int:
        """The beginning of a slot nearest to `held_ns` after `whole_ns`. The hold is at least one slot."""
        return self._at_or_after(whole_ns + max(held_ns, self.length_ns) - self.length_ns // 2)

    def late(self, *, arrived_ns: int, due_ns: int, now_ns: int) -> int:
        """The instant for a response that was due at `due_ns` and is ready only at `now_ns`."""
        delay_ns = max(due_ns - arrived_ns, self.length_ns)
        while arrived_ns + delay_ns <= now_ns:
            delay_ns *= 2
        return self._at_or_after(arrived_ns + delay_ns)

    def _at_or_after(self, instant_ns: int) -> int:
        return -(-instant_ns // self.length_ns) * self.length_ns


log = logging.getLogger("sparing.slots")

WINDOW_NS: Final = 60_000_000_000
WINDOW_LATE_MAX: Final = 100
"""How many late responses within a window are worth one line in the log."""


def declare_public_work(scope: Scope, *tickets: Ticket) -> None:
    """Attach the request's places in the schedule.

    Its response leaves when the last of them ends, and frees their memory.
    """
    scope["state"]["tickets"] = tickets


def tickets_of(scope: Scope) -> Sequence[Ticket]:
    """The tickets that were declared for a request."""
    tickets: Sequence[Ticket] = scope["state"].get("tickets", ())
    return tickets


def declare_begun(scope: Scope, begun_ns: int) -> None:
    """State when work on the request began in a free slot. Its response is held from that instant on."""
    scope["state"]["begun_ns"] = begun_ns


HELD_NS: Final = 10_000_000
"""How long the response to an analyst, a stranger or a probe is held if no slots were reserved for it."""

OWN_HELD_NS: Final = 50_000_000
"""How long the response to an individual or an auditor is held, which is in no analyst's schedule."""


PROBES: Final = frozenset({"/livez", "/readyz"})
"""The paths of an operator's probes, whose responses wait for no reservation."""


class ReleaseSlots:
    """Holds every response but a curator's until its instant.

    A response without a reservation is held from the end of the reservation in which its request came, and does not
    leave during another one. Pages that need no key are held too: while a query is worked on, the event loop is late
    for all.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        slots: Slots,
        clock: ReleaseClock,
        telemetry: Telemetry,
        free_from_ns: Callable[[int], int] = lambda instant_ns: instant_ns,
    ) -> None:
        """`free_from_ns` gives, for an instant, the end of the reservation that contains it, or the instant itself."""
        self.app = app
        self.slots, self.clock, self.telemetry = slots, clock, telemetry
        self._free_from_ns = free_from_ns
        self._window_ns, self._window_late = -WINDOW_NS, 0

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Note when the request came, and let the response begin when it is due."""
        if scope["type"] != "http":
            return self.app(scope, receive, send)
        arrived_ns = whole_ns = self.clock.now_ns()

        async def receive_timed() -> Message:
            nonlocal whole_ns
            message = await receive()
            if message["type"] == "http.request":
                whole_ns = self.clock.now_ns()
            return message

        async def send_at_instant(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._hold(scope, arrived_ns, whole_ns)
            await send(message)

        return self.app(scope, receive_timed, send_at_instant)

    async def _hold(self, scope: Scope, arrived_ns: int, whole_ns: int) -> None:
        """Wait until the response is due, or if that has passed until the instant of a late one.

        A curator's is not held.
        """
        principal: Principal | None = scope["state"].get("principal")
        if principal is not None and principal.role == "curator":
            return
        held_ns = HELD_NS if principal is None or principal.role == "analyst" else OWN_HELD_NS
        reserved_ns = [ns for ticket in tickets_of(scope) if (ns := ticket.leaves_ns) is not None]
        waits_for_others = not reserved_ns and scope["path"] not in PROBES
        if reserved_ns:
            due_ns = max(reserved_ns)
        elif waits_for_others:
            begun_ns = scope["state"].get("begun_ns") or self._free_from_ns(whole_ns)
            due_ns = self.slots.after(begun_ns, held_ns)
        else:
            due_ns = self.slots.after(whole_ns, held_ns)
        now_ns = self.clock.now_ns()
        if now_ns > due_ns:
            self.telemetry.slot_overrun()
            self._count_late(now_ns)
            due_ns = self.slots.late(arrived_ns=arrived_ns, due_ns=due_ns, now_ns=now_ns)
        await self.clock.until(due_ns)
        if waits_for_others and (free_ns := self._free_from_ns(due_ns)) > due_ns:
            await self.clock.until(free_ns)

    def _count_late(self, now_ns: int) -> None:
        """Count a late response, and log once in each window that many are late."""
        if now_ns - self._window_ns >= WINDOW_NS:
            self._window_ns, self._window_late = now_ns, 0
        self._window_late += 1
        if self._window_late == WINDOW_LATE_MAX:
            log.warning("%d responses were late within a minute; run `sparing calibrate`", WINDOW_LATE_MAX)
