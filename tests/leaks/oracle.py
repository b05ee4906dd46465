"""Which slots each request gets and when its answer leaves, computed from arrivals, disconnects and public costs alone.

Written from the rules of docs/load.md (Time slots), not from `admission.schedule`: lists that are searched, no
heap, and no state that is not rebuilt from the events. The rules:

- Slots begin at whole multiples of their length. A request may begin in the first slot after its arrival that is free.
- Turns go by public cost: a request's tag is the virtual time at which its principal's last request ends, or the
  current one if that is later; the smallest tag is first, then the earlier arrival. Virtual time is the tag of what was
  taken last, and begins anew when nothing waits.
- As many requests as fit share slots, and together they take what their costs with the reserve, one commit for each
  dataset among them and the margin need. More than `shared_ns` are for one request alone.
- A disconnect before the first slot removes a request. A request that could not leave before its deadline is refused.
- After `busy_ns` of slots in a row, `free_ns` stay free, rounded up to whole slots.

Whether a request is let in at all is decided before (`tests/writer/admission/test_schedule.py`); here all have been.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Lengths in ns."""

    slot_ns: int
    commit_ns: int
    margin_ns: int
    reserve_percent: int
    shared_ns: int
    busy_ns: int
    free_ns: int
    refusal_ns: int

    def slots(self, work_ns: int, commits: int) -> int:
        """How many slots work and commits take."""
        reserve_ns, _ = divmod(work_ns * self.reserve_percent, 100)
        return self.whole(work_ns + reserve_ns + commits * self.commit_ns + self.margin_ns)

    def whole(self, length_ns: int) -> int:
        """How many slots last so long."""
        whole, rest = divmod(length_ns, self.slot_ns)
        return whole + (rest > 0)


@dataclass(slots=True, kw_only=True)
class Foretold:
    """The outcome of one request: its slots, or neither when it is refused or gone."""

    begins_ns: int | None = None
    leaves_ns: int | None = None
    is_refused: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    number: int
    principal: int
    dataset: int | None
    cost_ns: int
    arrived_ns: int
    leave_before_ns: int
    tag: int | None = None  # None until its turn is counted


@dataclass(slots=True)
class Oracle:
    """Told of public events in their order."""

    rules: Rules
    foretold: dict[int, Foretold] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # requests as they begin
    _waiting: list[_Asked] = field(default_factory=list)  # in order of arrival
    _free_ns: int = 0
    _ended_ns: int = 0
    _busy_slots: int = 0
    _virtual: int = 0
    _ends: dict[int, int] = field(default_factory=dict)

    def hear(self, event: dict[str, Any]) -> None:
        """An arrival or a disconnect; everything that begins before it is worked out first."""
        if event["event"] == "arrived":
            self._pass(event["arrived_ns"])
            fields = {name: value for name, value in event.items() if name not in {"event", "request", "key"}}
            self.foretold[event["request"]] = Foretold()
            self._waiting.append(_Asked(number=event["request"], **fields))
        elif event["event"] == "cancelled":
            self._pass(event["cancelled_ns"])
            self._leave([asked for asked in self._waiting if asked.number == event["request"]])

    def end(self) -> None:
        """Nothing else comes: everything that waits begins in its turn."""
        self._pass(float("inf"))

    def _next_slot(self, instant_ns: int) -> int:
        return (instant_ns // self.rules.slot_ns + 1) * self.rules.slot_ns

    # Slots

    def _pass(self, until_ns: float) -> None:
        while self._waiting:
            begins_ns = self._free_ns
            if not self._turns():
                begins_ns = max(begins_ns, self._next_slot(self._waiting[0].arrived_ns))
            if begins_ns > until_ns:
                return
            self._fill(begins_ns)

    def _fill(self, begins_ns: int) -> None:
        for asked in self._waiting:
            if asked.tag is None and asked.arrived_ns < begins_ns:
                asked.tag = max(self._virtual, self._ends.get(asked.principal, 0))
                self._ends[asked.principal] = asked.tag + asked.cost_ns
        together, slots = self._together(begins_ns)
        if not together:
            return
        self._busy_slots = slots + (self._busy_slots if begins_ns == self._ended_ns else 0)
        self._ended_ns = begins_ns + slots * self.rules.slot_ns
        is_long = self._busy_slots * self.rules.slot_ns >= self.rules.busy_ns
        self._free_ns = self._ended_ns + (self.rules.whole(self.rules.free_ns) * self.rules.slot_ns if is_long else 0)
        self._refuse([asked for asked in self._turns() if self._alone_until(asked) > asked.leave_before_ns])
        for asked in together:
            fate = self.foretold[asked.number]
            fate.begins_ns, fate.leaves_ns = begins_ns, self._ended_ns
            self.order.append(asked.number)

    def _together(self, begins_ns: int) -> tuple[Sequence[_Asked], int]:
        together: list[_Asked] = []
        slots = 0
        while turns := self._turns():
            asked = min(turns, key=lambda each: each.tag or 0)  # of equal ones the first, which arrived earlier
            needed = self._slots_of([*together, asked])
            leaves_ns = begins_ns + needed * self.rules.slot_ns
            if together and needed > 1 and needed * self.rules.slot_ns > self.rules.shared_ns:
                break
            if leaves_ns > asked.leave_before_ns:
                self._refuse([asked])
                continue
            if any(leaves_ns > each.leave_before_ns for each in together):
                break
            self._virtual = asked.tag or 0
            self._leave([asked])
            together.append(asked)
            slots = needed
        return together, slots

    def _alone_until(self, asked: _Asked) -> int:
        """When it would leave if it were the next to begin."""
        return self._free_ns + self._slots_of([asked]) * self.rules.slot_ns

    def _turns(self) -> Sequence[_Asked]:
        """Those that wait for their turn, in order of arrival."""
        return [asked for asked in self._waiting if asked.tag is not None]

    def _refuse(self, refused: Sequence[_Asked]) -> None:
        for asked in refused:
            self.foretold[asked.number].is_refused = True
        self._leave(refused)

    def _leave(self, leaving: Sequence[_Asked]) -> None:
        self._waiting = [asked for asked in self._waiting if asked not in leaving]
        if any(asked.tag is not None for asked in leaving) and not self._turns():
            self._virtual, self._ends = 0, {}

    def _slots_of(self, together: Iterable[_Asked]) -> int:
        datasets = {asked.dataset for asked in together} - {None}
        return self.rules.slots(sum(asked.cost_ns for asked in together), len(datasets))
