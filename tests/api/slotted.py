"""A world on slots of 10 ms whose time a test sets, and requests to it that come in pieces and may go away."""

import asyncio
import json
from typing import Any

from starlette.types import Message

from service.api.app import HttpOptions
from service.api.middleware.release_slots import Slots
from service.api.place import Place, PlacesByName
from service.query.cost import Speed
from service.workflows.replica import ReplicaOptions
from service.writer.admission.admission import Admission
from service.writer.admission.scheduler import Dispatcher, slot_rules
from tests.api.clocks import FakeTime
from tests.api.world import World, build_world
from tests.waiting import settled, until_async

MS = 1_000_000
SLOT = 10 * MS


class Client:
    """One request on a connection that sends its body in pieces and may go away."""

    def __init__(
        self, world: World, method: str, path: str, *, query: str = "", key: str = "k", role: str = "analyst"
    ) -> None:
        self.sent: list[Message] = []
        self.inbox: asyncio.Queue[Message] = asyncio.Queue()
        headers = [(b"authorization", f"Bearer {world.keys[role]}".encode()), (b"idempotency-key", key.encode())]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "state": {},
        }
        self.task = asyncio.ensure_future(world.app(scope, self.inbox.get, self._send))

    def body(self, piece: bytes = b"", *, more: bool = False) -> None:
        """A piece of the body has come."""
        self.inbox.put_nowait({"type": "http.request", "body": piece, "more_body": more})

    def go(self) -> None:
        """The connection is closed."""
        self.inbox.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int | None:
        """The status, once it has been sent."""
        return next((message["status"] for message in self.sent if message["type"] == "http.response.start"), None)

    @property
    def document(self) -> Any:
        """The body of the response."""
        return json.loads(b"".join(message.get("body", b"") for message in self.sent))

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


class Slotted:
    """A world on slots of 10 ms whose time is set by the test, and what happened in its schedule."""

    def __init__(self) -> None:
        self.time, self.events = FakeTime(), list[str]()
        self.dispatcher = Dispatcher(
            slot_rules(SLOT, Speed()),
            deadline_ns=30_000 * MS,
            observe=lambda _, event: self.events.append(event),
            now_ns=self.time.now,
        )
        self.admission = Admission()
        edge = HttpOptions(slots=Slots(length_ns=SLOT), clock=self.time.clock())
        options = ReplicaOptions(admission=self.admission)  # without slots, so that nothing waits for a step
        self.world = build_world(edge=edge, options=options)
        self.admission.scheduler = self.dispatcher
        self.zero = self.time.ns

    async def arrived(self, count: int) -> None:
        """Wait until so many requests have come to the schedule."""
        await until_async(lambda: self.events.count("arrived") == count)

    async def at(self, after_ms: float) -> None:
        """Let it become so late, and everything happen that happens by then."""
        self.time.pass_to(self.zero + int(after_ms * MS))
        self.dispatcher.step()
        await self.settled()

    async def settled(self) -> None:
        """Let every task and thread do what it can now: no request is in a thread, and none waits for a writer."""
        await settled()
        for _ in range(5):  # what a thread has done reaches the loop, which may give another thread work
            await asyncio.sleep(0.004)
            await until_async(self._is_idle)

    def _is_idle(self) -> bool:
        places = vars(self.world.app.state.places.here()).values()
        own = [each for each in places if isinstance(each, Place)]
        by_name = [each for named in places if isinstance(named, PlacesByName) for each in named._places.values()]
        return all(each.is_empty for each in (*own, *by_name)) and self.world.replica.waiting() == 0
