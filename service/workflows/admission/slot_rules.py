"""How work is fitted into slots: public lengths, in whole slots."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRules:
    """How work is fitted into slots. All in ns but `reserve_percent`; lengths are rounded to whole slots.

    `commit_ns` is kept free for each dataset that commits in a reservation, `margin_ns` once in every reservation: for
    the departure of the responses before it, and for what is not the work's own. `reserve_percent` of the work are kept
    free besides, since the errors of many queries' costs add up.

    Requests share a commit while they fit in `shared_ns` together; a larger request has its slots to itself. After
    `busy_ns` in a row with queries, `free_ns` are left free, in which acts can run. A refusal of what waits leaves
    `refusal_ns` after the slot that shows that it would be late.
    """

    slot_ns: int
    commit_ns: int
    margin_ns: int
    reserve_percent: int = 0
    shared_ns: int = 160_000_000
    busy_ns: int = 160_000_000
    free_ns: int = 10_000_000
    refusal_ns: int = 10_000_000

    def slots(self, work_ns: int, commits: int) -> int:
        """How many slots work of a public cost needs, with its commits."""
        booked_ns = self.booked_ns(work_ns) + commits * self.commit_ns + self.margin_ns
        return self._whole(booked_ns)

    def booked_ns(self, work_ns: int) -> int:
        """The public cost of some work with its reserve."""
        return work_ns + work_ns * self.reserve_percent // 100

    @property
    def shared_slots_max(self) -> int:
        """The most slots that requests sharing them may need."""
        return max(self.shared_ns // self.slot_ns, 1)

    @property
    def busy_slots_max(self) -> int:
        """So many slots in a row may be reserved before some are left free."""
        return self._whole(self.busy_ns)

    @property
    def rest_ns(self) -> int:
        """The length of the slots that are left free then."""
        return self._whole(self.free_ns) * self.slot_ns

    def refused_ns(self, shown_ns: int) -> int:
        """The instant at which a refusal leaves that the slot from `shown_ns` on shows to be due."""
        return shown_ns + self._whole(self.refusal_ns) * self.slot_ns

    def delay_ns(self, work_ns: int) -> int:
        """How long the slots of one request last that shares them with no other."""
        return self.slots(work_ns, 1) * self.slot_ns

    def _whole(self, length_ns: int) -> int:
        """The least number of slots that last so long."""
        return -(-length_ns // self.slot_ns)
