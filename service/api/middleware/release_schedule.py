"""The instants at which responses may leave.

Instants are whole multiples of the slot's length on the monotonic clock. A response whose request has a place in the
schedule leaves when its reservation ends (`admission.schedule`). Every other held response, a refusal before
anything was reserved or a read by an individual, leaves a fixed time after its request was whole. A response
that is not ready by then leaves when twice its delay is over, or four times, or eight: of how late it was, an observer
sees the number of doublings. All numbers are ns.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Slots of `length_ns`, which begin at whole multiples of it."""

    length_ns: int

    def after(self, whole_ns: int, held_ns: int) -> int:
        """The beginning of a slot that is nearest to `held_ns` after `whole_ns`, or to a slot where that is longer."""
        return self._at_or_after(whole_ns + max(held_ns, self.length_ns) - self.length_ns // 2)

    def late(self, *, arrived_ns: int, due_ns: int, now_ns: int) -> int:
        """The instant for a response that was due at `due_ns` and is ready only at `now_ns`."""
        delay_ns = max(due_ns - arrived_ns, self.length_ns)
        while arrived_ns + delay_ns <= now_ns:
            delay_ns *= 2
        return self._at_or_after(arrived_ns + delay_ns)

    def _at_or_after(self, instant_ns: int) -> int:
        return -(-instant_ns // self.length_ns) * self.length_ns
