"""The layers that decide when a response leaves: on a release slot, and before the deadline.

Both stand outside everything that makes a response, so that no outcome can leave by another way: an answer, a refusal,
a replay and an incident pass here alike.
"""

import asyncio
import re
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.patience import Patience
from service.api.problems import request_id_of, response_of
from service.api.release_clock import ReleaseClock
from service.api.slots import PublicWork, Slots
from service.workflows.errors import Unavailable
from service.workflows.telemetry import Telemetry


def announce(scope: Scope, work: PublicWork) -> None:
    """Say what the request asks for in public, as soon as that is known; until then it counts as one small query."""
    scope["state"]["public_work"] = work


class ReleaseSlots:
    """Holds every response of the given paths until its instant (`service.api.slots`)."""

    def __init__(
        self, app: ASGIApp, *, slots: Slots, clock: ReleaseClock, paths: Sequence[re.Pattern[str]], telemetry: Telemetry
    ) -> None:
        self.app = app
        self.slots, self.clock, self.paths, self.telemetry = slots, clock, paths, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note when the request came, and let the response begin when it is due."""
        if scope["type"] != "http" or not any(path.fullmatch(scope["path"]) for path in self.paths):
            await self.app(scope, receive, send)
            return
        arrived_ns = whole_ns = self.clock.now_ns()

        async def receive_timed() -> Message:
            nonlocal whole_ns
            message = await receive()
            if message["type"] == "http.request":
                whole_ns = self.clock.now_ns()
            return message

        async def send_on_slot(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._leave(scope["state"].get("public_work", PublicWork()), arrived_ns, whole_ns)
            await send(message)

        await self.app(scope, receive_timed, send_on_slot)

    async def _leave(self, work: PublicWork, arrived_ns: int, whole_ns: int) -> None:
        instant_ns = self.slots.due(work, arrived_ns=arrived_ns, whole_ns=whole_ns)
        now_ns = self.clock.now_ns()
        if now_ns > instant_ns:
            self.telemetry.slot_overrun()
            instant_ns = self.slots.next(arrived_ns=arrived_ns, now_ns=now_ns)
        await self.clock.until(instant_ns)


class Deadline:
    """Answers 503 for what takes too long, and lets the work go on: an answer is then under its key for a retry.

    Nothing is cancelled. The work stays in the task it is in; when the deadline passes, another answers in its place,
    what the work still sends is dropped, and what it still wants to receive is a disconnect. Paths of `exempt` have
    all the time they need.
    """

    def __init__(self, app: ASGIApp, *, deadline_s: float, exempt: Sequence[re.Pattern[str]]) -> None:
        self.app = app
        self.exempt = exempt
        self._patience: Patience[_Exchange] = Patience(deadline_s, _Exchange.take_away)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, watch the time, and answer for what is late."""
        if scope["type"] != "http" or any(path.fullmatch(scope["path"]) for path in self.exempt):
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        self._patience.begin(exchange)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Exception:
            if exchange.refusal is None:
                raise  # else nobody is left to hear of it
        finally:
            self._patience.end(exchange)
        if exchange.refusal is not None:
            await exchange.refusal  # a server takes a request that has returned without an answer for a broken one


class _Exchange:
    """A request's two ends, which can be taken away from whoever works on it."""

    __slots__ = ("_receive", "_scope", "_send", "_started", "refusal")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._started = False
        self.refusal: asyncio.Task[None] | None = None  # answers in the work's place, from when it is late

    async def receive(self) -> Message:
        """What the client sends; a disconnect once the exchange is taken away."""
        if self.refusal is not None:
            return {"type": "http.disconnect"}
        return await self._receive()

    async def send(self, message: Message) -> None:
        """Send it, unless the exchange is taken away."""
        if self.refusal is None:
            self._started = True
            await self._send(message)

    def take_away(self) -> None:
        """Refuse instead of the work, unless it has begun to answer."""
        if not self._started:
            refusal = response_of(Unavailable(), request_id_of(self._scope))
            self.refusal = asyncio.ensure_future(refusal(self._scope, self._receive, self._send))
