"""A release clock and a dispatcher whose time passes only when a test says so, or when it is waited for."""

import asyncio
from collections.abc import Callable, Hashable

from service.api.middleware.release_clock import ReleaseClock
from service.writer.admission.schedule import SlotRequest, SlotRules
from service.writer.admission.scheduler import Act, Dispatcher


class FakeTime:
    """A monotonic clock and its alarm. With `passing`, a set alarm makes time pass to it at once."""

    def __init__(self, *, passing: bool = False) -> None:
        self.ns = 1_000_000_000
        self.passing = passing
        self.set_to: int | None = None
        self.alarms: list[int] = []
        self._ring: Callable[[], None] | None = None

    def now(self) -> int:
        """The present instant."""
        return self.ns

    def set(self, instant_ns: int, ring: Callable[[], None]) -> None:
        """Remember; with `passing`, let the time come."""
        self.set_to, self._ring = instant_ns, ring
        self.alarms.append(instant_ns)
        if self.passing:
            asyncio.get_running_loop().call_soon(self.pass_to, instant_ns)

    def clear(self) -> None:
        """No alarm."""
        self.set_to = self._ring = None

    def pass_to(self, instant_ns: int) -> None:
        """Let it become `instant_ns`, and ring if that is late enough."""
        self.ns = max(self.ns, instant_ns)
        if self._ring is not None and self.set_to is not None and self.set_to <= self.ns:
            self._ring()

    def clock(self) -> ReleaseClock:
        """A release clock that goes by this time."""
        return ReleaseClock(self, self.now)


class PassingDispatcher(Dispatcher):
    """A dispatcher on a fake time that passes, at every reservation and act, until nothing waits for its slot."""

    def __init__(self, rules: SlotRules, time: FakeTime, *, deadline_ns: int = 30_000_000_000) -> None:
        super().__init__(rules, deadline_ns=deadline_ns, now_ns=time.now)
        self.time = time

    def reserve(self, request: SlotRequest) -> None:
        super().reserve(request)
        self._pass()

    def when_free(self, act: Act, principal: Hashable) -> None:
        super().when_free(act, principal)
        self._pass()

    def _pass(self) -> None:
        while (wake_ns := self.step()) is not None:
            self.time.pass_to(wake_ns)
