"""Turns by public cost: waiting requests of several principals, each served in proportion to what it asks for.

Start-time fair queueing (Goyal, Vin and Cheng 1996): a request is tagged with the virtual time at which its principal's
previous request would end, or with the current virtual time if that is later, and the smallest tag is served first.
The order is a function of arrivals and public costs alone.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Waiting items; not thread-safe."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, T]] = []  # tag, order of arrival, cost, item
        self._ends: dict[Hashable, int] = {}  # the virtual time at which a principal's last request ends
        self._now = 0  # virtual time: the tag of what was served last
        self._arrivals = count()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """The items in no particular order."""
        return (item for _, _, _, item in self._heap)

    def put(self, principal: Hashable, cost: int, item: T) -> None:
        """Let an item wait for its turn; `cost` is not negative."""
        tag = max(self._now, self._ends.get(principal, 0))
        self._ends[principal] = tag + cost
        heapq.heappush(self._heap, (tag, next(self._arrivals), cost, item))

    def peek(self) -> T:
        """The item whose turn is next. Raises IndexError when there is none."""
        return self._heap[0][3]

    def take(self) -> T:
        """Remove and return the item whose turn is next. Raises IndexError when there is none."""
        self._now, _, _, item = heapq.heappop(self._heap)
        self._forget_if_empty()
        return item

    def remove(self, gone: Callable[[T], bool]) -> list[T]:
        """Remove items before their turn, and return them; their costs stay on their principals' accounts."""
        removed = [item for _, _, _, item in self._heap if gone(item)]
        if removed:
            self._heap = [waiting for waiting in self._heap if not gone(waiting[3])]
            heapq.heapify(self._heap)
            self._forget_if_empty()
        return removed

    def before(self, principal: Hashable, cost: int = 0) -> list[T]:
        """The items that would be served before a further one of this principal, after some that cost `cost`."""
        tag = max(self._now, self._ends.get(principal, 0)) + cost
        return [item for other, _, _, item in self._heap if other <= tag]

    def _forget_if_empty(self) -> None:
        if not self._heap:
            self._ends.clear()  # with nothing waiting, no principal has a turn to wait for
            self._now = 0
