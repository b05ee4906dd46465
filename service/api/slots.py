"""When a response may leave: at instants made of public numbers, and at no other.

A response is held until a whole number of slots after its request's arrival. How many is a function of what the
request asks for in public: how many queries, and how many numbers in all their answers. Work that is not finished by
then leaves at the next multiple of the slot, never at "a little late": what anybody can see of an evaluation's duration
is at most into which slot it fell.

Instants are whole nanoseconds of the monotonic clock. The measurements behind this stand in
docs/decisions/0015-release-slots-and-metrics.md.
"""

from dataclasses import dataclass
from typing import Final

QUERY_NS: Final = 2_000_000
"""What each query of a batch after the first is given, in ns."""

COORDINATE_NS: Final = 250
"""What each number of an answer is given, in ns: for noise, JSON, the chain's hash, the insert and the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicWork:
    """What a request asks for in public numbers: its queries, and the numbers in all their answers."""

    queries: int = 1
    coordinates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The grid of instants that begins at each request's arrival, `length_ns` apart."""

    length_ns: int

    def count(self, work: PublicWork) -> int:
        """After how many slots the response to such work is due: one, and more for many queries or coordinates."""
        allowed_ns = (work.queries - 1) * QUERY_NS + work.coordinates * COORDINATE_NS
        return 1 + allowed_ns // self.length_ns

    def due(self, work: PublicWork, *, arrived_ns: int, whole_ns: int) -> int:
        """The instant at which the response is to leave.

        The request began to arrive at `arrived_ns` and was whole at `whole_ns`: a body that takes longer than a slot
        to arrive is the caller's own time, and moves the instant by as many slots as it took.
        """
        return arrived_ns + ((whole_ns - arrived_ns) // self.length_ns + self.count(work)) * self.length_ns

    def next(self, *, arrived_ns: int, now_ns: int) -> int:
        """The first instant of the grid after `now_ns`."""
        return arrived_ns + ((now_ns - arrived_ns) // self.length_ns + 1) * self.length_ns
