"""When a response leaves: the arithmetic of instants, and responses that wait for theirs whatever is still at work."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from service.api.middleware.release_slots import ReleaseSlots, Slots, declare_begun, declare_public_work
from service.ledger.model.views import Principal, Role
from service.ledger.ports.telemetry import Telemetry
from service.query.cost import PublicCost
from service.writer.admission.admission import Admission, MemoryBound, Ticket
from service.writer.admission.schedule import SlotRules
from tests.api.clocks import FakeTime, PassingDispatcher
from tests.api.receiving import nothing, received
from tests.logged import records_of

MS = 1_000_000
RULES = SlotRules(slot_ns=10 * MS, commit_ns=4 * MS, margin_ns=MS)


class Counted(Telemetry):
    """Counts overruns."""

    def __init__(self) -> None:
        self.overruns = 0

    def slot_overrun(self) -> None:
        self.overruns += 1


class Stage:
    """An application behind slots of 10 ms, on a time that passes when a task waits.

    It reserves slots for `cost_ms` if that is given, takes each of `steps_ms`, and answers with `status`: to a caller
    with `role`, if any. Its work is said to have begun `begun_ms` after the request came, if that is given. Slots are
    reserved for others from and up to `reserved_ms` after its making.
    """

    def __init__(
        self,
        *steps_ms: float,
        cost_ms: float | None = None,
        status: int = 200,
        role: Role | None = None,
        begun_ms: int | None = None,
        reserved_ms: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.time, self.telemetry = FakeTime(passing=True), Counted()
        self.steps_ms, self.cost_ms, self.status = steps_ms, cost_ms, status
        self.role, self.begun_ms = role, begun_ms
        clock, slots = self.time.clock(), Slots(length_ns=10 * MS)
        start_ns = self.time.ns
        reserved = [(start_ns + begins_ms * MS, start_ns + ends_ms * MS) for begins_ms, ends_ms in reserved_ms]
        self.app = received(
            ReleaseSlots(
                self.work,
                slots=slots,
                clock=clock,
                telemetry=self.telemetry,
                free_from_ns=lambda instant_ns: next(
                    (ends for begins, ends in reserved if begins < instant_ns < ends), instant_ns
                ),
            )
        )

    async def work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the whole request, the slots and the time."""
        body = await Request(scope, receive).body()
        if self.role is not None:
            scope["state"]["principal"] = Principal(
                id=uuid4(), role=self.role, name="p", dataset=None, individual=None, allowance_units=None
            )
        if self.begun_ms is not None:
            declare_begun(scope, self.time.ns + self.begun_ms * MS)
        if self.cost_ms is not None:
            declare_public_work(scope, self._reserved(self.cost_ms))
        for step_ms in self.steps_ms:
            self.time.ns += int(step_ms * MS)
        await PlainTextResponse(body or b"done", self.status)(scope, receive, send)

    async def left_after_ms(self, path: str = "/", **options: Any) -> float:
        """One request: how long after its arrival the response left."""
        arrived = self.time.ns
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://sparing") as client:
            await client.request("POST", path, **options)
        return (self.time.ns - arrived) / MS

    def _reserved(self, cost_ms: float) -> Ticket:
        cost = PublicCost(time_ns=int(cost_ms * MS), kept_bytes=7, working_bytes=0)
        admission = Admission(memory=MemoryBound(20), scheduler=PassingDispatcher(RULES, self.time))
        return admission.admit("ana", cost, Job())


class Job:
    """Nothing to do."""

    def begin(self, reservation: object) -> None:
        """Its slots have come."""

    def refuse(self) -> None:
        """There is no room."""


class TestReleaseSlots:
    """The hold."""

    @pytest.mark.parametrize("status", [200, 403, 422, 500, 503])
    @pytest.mark.parametrize("taken_ms", [0, 0.1, 5, 9.999, 10])
    async def test_responses_ready_in_time_leave_at_the_same_instant(self, taken_ms: float, status: int) -> None:
        """How long it took and what it is make no difference."""
        stage = Stage(taken_ms, status=status)
        assert await stage.left_after_ms() == 10
        assert stage.telemetry.overruns == 0

    @pytest.mark.parametrize("taken_ms", [0, 20, 28])
    async def test_a_response_with_a_reservation_leaves_when_that_ends(self, taken_ms: float) -> None:
        """Three slots for 25 ms of public cost, from the slot after its arrival on; the work has 0.5 ms less."""
        stage = Stage(taken_ms, cost_ms=25)
        assert await stage.left_after_ms() == 40
        assert stage.telemetry.overruns == 0

    @pytest.mark.parametrize(
        ("taken_ms", "left_ms"), [(10.001, 20), (19.9, 20), (20, 40), (39, 40), (40, 80), (99, 160)]
    )
    async def test_late_responses_leave_at_two_four_eight_times_their_delay(
        self, taken_ms: float, left_ms: float
    ) -> None:
        """Never at how late it was; the operator's count moves by one."""
        stage = Stage(taken_ms)
        assert await stage.left_after_ms() == left_ms
        assert stage.telemetry.overruns == 1

    async def test_a_hundred_late_responses_within_a_minute_are_one_line_in_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Fewer are none: a stalled disk makes some. In the next minute the count begins anew."""
        stage = Stage(11)
        for _ in range(99):
            await stage.left_after_ms()
        assert records_of(caplog, "sparing") == []
        for _ in range(30):
            await stage.left_after_ms()
        assert [record.name for record in records_of(caplog, "sparing")] == ["sparing.slots"]
        stage.time.ns += 60_000 * MS
        for _ in range(99):
            await stage.left_after_ms()
        assert len(records_of(caplog, "sparing")) == 1

    async def test_a_reservation_that_is_overrun_is_doubled_from_its_arrival(self) -> None:
        """A delay of 40 ms becomes 80 and then 160, whatever the slots were."""
        assert await Stage(30, cost_ms=25).left_after_ms() == 80
        assert await Stage(70, cost_ms=25).left_after_ms() == 160

    async def test_a_body_that_is_slow_to_come_moves_the_instant(self) -> None:
        """The delay counts from when the request is whole, which is the caller's own doing and no overrun."""
        stage = Stage(4)

        async def slowly() -> Any:
            yield b"a"
            stage.time.ns += 27 * MS
            yield b"b"

        assert await stage.left_after_ms(content=slowly()) == 40  # whole at 27, ready at 31
        assert stage.telemetry.overruns == 0

    async def test_every_response_but_a_curators_is_held(self) -> None:
        """Also one that needs no key: while a query is worked on, the least page takes longer."""
        roles: list[Role | None] = [None, "analyst", "individual", "auditor", "curator"]
        assert [await Stage(3, role=role).left_after_ms() for role in roles] == [10, 10, 50, 50, 3]

    @pytest.mark.parametrize(("path", "left_ms"), [("/", 90), ("/nowhere", 90), ("/livez", 10), ("/readyz", 10)])
    async def test_a_response_without_a_reservation_is_held_from_the_end_of_the_one_in_which_it_comes(
        self, path: str, left_ms: float
    ) -> None:
        """Else it would tell how late the busy process noticed it. An operator's probes wait for no reservation."""
        stage = Stage(3, reserved_ms=[(-20, 80)])
        assert await stage.left_after_ms(path) == left_ms
        assert stage.telemetry.overruns == 0

    async def test_a_response_leaves_within_no_reservation(self) -> None:
        """Neither within one that begins after its request, nor after it at once where the next one begins then."""
        assert await Stage(3, reserved_ms=[(0, 80)]).left_after_ms() == 80
        assert await Stage(3, reserved_ms=[(-20, 40), (40, 80)]).left_after_ms() == 80
        assert await Stage(3, reserved_ms=[(10, 80)]).left_after_ms() == 10
        assert await Stage(13, reserved_ms=[(0, 10), (10, 80)]).left_after_ms() == 80  # late, due at 20

    async def test_a_read_that_began_in_a_free_slot_is_held_from_then_on(self) -> None:
        """Its wait for the slot is public, and no overrun."""
        stage = Stage(72, role="individual", begun_ms=70)
        assert await stage.left_after_ms() == 120
        assert stage.telemetry.overruns == 0

    async def test_nothing_is_sent_before_the_instant(self) -> None:
        """Not even the status line; once it is out, the body follows at once."""
        time, sent = FakeTime(), list[tuple[str, int]]()
        layer = ReleaseSlots(
            PlainTextResponse("done"), slots=Slots(length_ns=10 * MS), clock=time.clock(), telemetry=Telemetry()
        )

        async def send(message: Message) -> None:
            sent.append((message["type"], time.ns))

        scope: Scope = {"type": "http", "path": "/", "method": "GET", "headers": [], "state": {}}
        start = time.ns
        task = asyncio.ensure_future(layer(scope, nothing, send))
        for _ in range(5):
            await asyncio.sleep(0)
        time.pass_to(start + 10 * MS - 1)
        await asyncio.sleep(0)
        assert sent == []
        time.pass_to(start + 10 * MS)
        await task
        assert sent == [("http.response.start", start + 10 * MS), ("http.response.body", start + 10 * MS)]


SLOTS = Slots(length_ns=10 * MS)
lengths = st.integers(1, 60_000).map(lambda ms: Slots(length_ns=ms * MS))
instants = st.integers(0, 2**62)
spans = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("whole_ms", "held_ms", "leaves_ms"),
    [(0, 10, 10), (0.1, 10, 10), (5, 10, 10), (5.1, 10, 20), (9.9, 10, 20), (10, 50, 60), (0, 2, 10), (5.1, 2, 20)],
)
def test_a_response_without_a_reservation_leaves_about_so_much_later(
    whole_ms: float, held_ms: float, leaves_ms: float
) -> None:
    """At the first beginning of a slot that leaves it at least half a slot less than that, or than a slot."""
    assert SLOTS.after(int(whole_ms * MS), int(held_ms * MS)) == leaves_ms * MS


def test_short_slots_hold_as_long_as_long_ones() -> None:
    """The time is what the work has, and no number of slots."""
    assert Slots(length_ns=2 * MS).after(4 * MS + 1, 50 * MS) == 54 * MS
    assert Slots(length_ns=2 * MS).after(5 * MS + 1, 50 * MS) == 56 * MS


@given(slots=lengths, whole=instants, held=spans)
def test_such_a_response_leaves_at_a_beginning_within_half_a_slot_of_its_delay(
    slots: Slots, whole: int, held: int
) -> None:
    """Never sooner than half a slot before its delay is over, and never half a slot after."""
    leaves = slots.after(whole, held)
    assert leaves % slots.length_ns == 0
    assert -1 <= 2 * (leaves - whole - max(held, slots.length_ns)) + slots.length_ns < 2 * slots.length_ns


@pytest.mark.parametrize(
    ("arrived_ms", "due_ms", "now_ms", "leaves_ms"),
    [
        (2, 30, 30.1, 60),  # twice 28 ms after 2 is 58
        (2, 30, 57.9, 60),
        (2, 30, 58, 120),  # four times 28 ms after 2 is 114
        (2, 30, 113.9, 120),
        (2, 30, 114, 230),  # eight times 28 ms after 2 is 226
        (9, 10, 10.1, 20),  # a delay below a slot counts as a slot
        (9, 10, 19, 30),
    ],
)
def test_what_is_late_leaves_at_two_four_eight_times_its_delay(
    arrived_ms: float, due_ms: float, now_ms: float, leaves_ms: float
) -> None:
    """Rounded up to the beginning of a slot."""
    arrived, due, now = (int(ms * MS) for ms in (arrived_ms, due_ms, now_ms))
    assert SLOTS.late(arrived_ns=arrived, due_ns=due, now_ns=now) == leaves_ms * MS


@given(slots=lengths, arrived=instants, delay=spans, late=spans)
def test_of_how_late_it_was_only_the_number_of_doublings_is_left(
    slots: Slots, arrived: int, delay: int, late: int
) -> None:
    """The instant is one of a few that arrival and due instant determine; it is never past."""
    due = arrived + delay
    leaves = slots.late(arrived_ns=arrived, due_ns=due, now_ns=due + late)
    counted = max(delay, slots.length_ns)
    possible = (-(-(arrived + counted * 2**doublings) // slots.length_ns) * slots.length_ns for doublings in range(64))
    assert leaves in possible
    assert due + late < leaves
