"""A reference implementation of the schedule, slot by slot, with which the tests compare it.

At the beginning of every slot that is neither reserved nor left free, all that has arrived queues up, and the requests
whose turn it is begin together. Only the queue is kept between two slots.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from service.writer.admission.schedule import SlotRules


@dataclass(kw_only=True, eq=False)
class Asked:
    """A request by its public facts, and its outcome."""

    principal: Hashable
    cost_ns: int
    arrived_ns: int
    leave_before_ns: int
    dataset: Hashable | None
    cancelled_ns: int | None = None
    tag: int = 0
    slots: tuple[int, int] | None = None
    is_refused: bool = False


@dataclass(kw_only=True)
class Slotwise:
    """A queue and the slots of one server."""

    rules: SlotRules
    queue: list[Asked] = field(default_factory=list)
    accounts: dict[Hashable, int] = field(default_factory=dict)
    served_tag: int = 0

    def run(self, requests: Sequence[Asked], *, until_ns: int) -> None:
        """Decide on all requests, which are in order of arrival, in every slot up to an instant."""
        coming = list(requests)
        free_ns, busy, ended_ns = 0, 0, 0
        for begins_ns in range(0, until_ns, self.rules.slot_ns):
            if begins_ns < free_ns:
                continue
            self._leave(begins_ns)
            while coming and coming[0].arrived_ns < begins_ns:
                self._queue_up(coming.pop(0), begins_ns)
            together = self._together(begins_ns)
            if not together:
                continue
            slots = self._slots(together)
            busy = busy + slots if begins_ns == ended_ns else slots
            ended_ns = begins_ns + slots * self.rules.slot_ns
            free_ns = ended_ns
            if busy * self.rules.slot_ns >= self.rules.busy_ns:
                while free_ns < ended_ns + self.rules.free_ns:
                    free_ns += self.rules.slot_ns
            for request in together:
                request.slots = begins_ns, ended_ns
            for request in [
                each for each in self.queue if free_ns + self._slots([each]) * self.rules.slot_ns > each.leave_before_ns
            ]:
                self._refuse(request)

    def _leave(self, begins_ns: int) -> None:
        """Remove requests cancelled before the slot; their cost stays on the principal's account."""
        self.queue = [each for each in self.queue if not _is_gone(each, begins_ns)]
        self._close_accounts()

    def _queue_up(self, request: Asked, begins_ns: int) -> None:
        if _is_gone(request, begins_ns):
            return
        request.tag = max(self.served_tag, self.accounts.get(request.principal, 0))
        self.accounts[request.principal] = request.tag + request.cost_ns
        self.queue.append(request)

    def _close_accounts(self) -> None:
        if not self.queue:
            self.accounts, self.served_tag = {}, 0

    def _serve(self, request: Asked) -> None:
        self.queue.remove(request)
        self.served_tag = request.tag
        self._close_accounts()

    def _refuse(self, request: Asked) -> None:
        request.is_refused = True
        self.queue.remove(request)
        self._close_accounts()

    def _together(self, begins_ns: int) -> list[Asked]:
        """The requests that begin with this slot, in order; one that could not end in time is refused."""
        together: list[Asked] = []
        while self.queue:
            request = min(self.queue, key=lambda each: each.tag)  # the first of several in order of arrival
            slots = self._slots([*together, request])
            if together and slots > 1 and slots * self.rules.slot_ns > self.rules.shared_ns:
                break
            ends_ns = begins_ns + slots * self.rules.slot_ns
            if ends_ns > request.leave_before_ns:
                self._refuse(request)
            elif all(ends_ns <= each.leave_before_ns for each in together):
                self._serve(request)
                together.append(request)
            else:
                break
        return together

    def _slots(self, requests: Sequence[Asked]) -> int:
        """The number of slots for the requests' costs, their reserve, a commit for each dataset, and the margin."""
        commits = len({each.dataset for each in requests} - {None})
        work_ns = sum(each.cost_ns for each in requests)
        needed_ns = work_ns + int(Fraction(work_ns * self.rules.reserve_percent, 100))
        needed_ns += commits * self.rules.commit_ns + self.rules.margin_ns
        slots = 0
        while slots * self.rules.slot_ns < needed_ns:
            slots += 1
        return slots


def _is_gone(request: Asked, begins_ns: int) -> bool:
    return request.cancelled_ns is not None and request.cancelled_ns < begins_ns
