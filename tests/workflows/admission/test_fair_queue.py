"""Turns by public cost: a law for the order, and edge cases of the queue."""

from collections.abc import Sequence
from functools import partial
from operator import eq
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.workflows.admission.schedule import FairQueue

T = TypeVar("T")


def so_many(one: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    """Lists that are long as often as short."""
    return st.integers(0, 40).flatmap(lambda count: st.lists(one, min_size=count, max_size=count))


asked_for = st.tuples(st.sampled_from("abc"), st.integers(0, 20))
arrivals = so_many(asked_for)
# An operation on a queue: a request of a given cost, the next turn, or the removal of a waiting item.
operations = so_many(st.one_of(asked_for, asked_for, asked_for, st.none(), st.integers(0, 100)))


class Plain:
    """Start-time fair queueing as in the original paper, over a list."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int]] = []  # start tag, item
        self.finish: dict[str, int] = {}
        self.virtual = 0

    def put(self, principal: str, cost: int, item: int) -> None:
        start = max(self.virtual, self.finish.get(principal, 0))
        self.finish[principal] = start + cost
        self.waiting.append((start, item))

    def take(self) -> int:
        start, item = min(self.waiting)
        self.waiting.remove((start, item))
        self.virtual = start
        self.forget()
        return item

    def remove(self, item: int) -> None:
        self.waiting = [each for each in self.waiting if each[1] != item]
        self.forget()

    def forget(self) -> None:
        if not self.waiting:
            self.finish, self.virtual = {}, 0


@given(steps=operations)
def test_the_order_is_that_of_start_time_fair_queueing(steps: Sequence[tuple[str, int] | int | None]) -> None:
    """For any sequence of pushes, turns and removals; equal tags in the order of arrival."""
    queue, plain = FairQueue[int](), Plain()
    for item, what in enumerate(steps):
        if isinstance(what, tuple):
            queue.put(*what, item)
            plain.put(*what, item)
        elif isinstance(what, int) and plain.waiting:
            gone = sorted(plain.waiting)[what % len(plain.waiting)][1]
            assert queue.remove(partial(eq, gone)) == [gone]
            plain.remove(gone)
        elif plain.waiting:
            assert queue.peek() == min(plain.waiting)[1]
            assert queue.take() == plain.take()
        assert len(queue) == len(plain.waiting)
        assert sorted(queue) == sorted(item for _, item in plain.waiting)


@given(first=arrivals, second=arrivals)
def test_a_principal_is_served_after_less_of_anothers_work_than_it_asked_for_itself(
    first: Sequence[tuple[str, int]], second: Sequence[tuple[str, int]]
) -> None:
    """Of two principals with requests always waiting, neither gets ahead by more than one request of each."""
    queue = FairQueue[tuple[str, int]]()
    for principal, costs in (("one", first), ("other", second)):
        for _, cost in costs:
            queue.put(principal, cost, (principal, cost))
    served = {"one": 0, "other": 0}
    left = {"one": len(first), "other": len(second)}
    largest = max((cost for _, cost in [*first, *second]), default=0)
    while all(left.values()):
        principal, cost = queue.take()
        served[principal] += cost
        left[principal] -= 1
        assert abs(served["one"] - served["other"]) <= 2 * largest


@given(asked=arrivals, taken=st.integers(0, 40), cost=st.integers(0, 30))
def test_the_predicted_work_before_a_request_is_served_before_it(
    asked: Sequence[tuple[str, int]], taken: int, cost: int
) -> None:
    """Also after further requests of the principal's own, which are told by their cost."""
    queue = FairQueue[int]()
    for item, (principal, asked_for) in enumerate(asked):
        queue.put(principal, asked_for, item)
    for _ in range(min(taken, len(queue))):
        queue.take()
    before = set(queue.before("a", cost))
    if cost:
        queue.put("a", cost, -2)
    queue.put("a", 1, -1)
    served = set[int]()
    while (item := queue.take()) != -1:
        served.add(item)
    assert served - {-2} == before


def test_an_empty_queue_clears_a_principals_account() -> None:
    """Served and removed requests do not count against the next request."""
    queue = FairQueue[str]()
    queue.put("a", 100, "served")
    assert queue.take() == "served"
    queue.put("a", 100, "removed")
    assert queue.remove(lambda _: True) == ["removed"]
    queue.put("a", 1, "first")
    queue.put("b", 1, "second")
    assert [queue.take(), queue.take()] == ["first", "second"]


def test_a_removed_request_stays_on_its_principals_account_while_others_wait() -> None:
    """A client cannot push others back by asking and leaving."""
    queue = FairQueue[str]()
    queue.put("a", 100, "removed")
    queue.put("b", 1, "waits")
    assert queue.remove(lambda item: item == "removed") == ["removed"]
    assert queue.remove(lambda item: item == "removed") == []
    queue.put("a", 1, "asked again")
    queue.put("b", 1, "waits too")
    assert [queue.take() for _ in range(3)] == ["waits", "waits too", "asked again"]


def test_an_empty_queue_has_no_next() -> None:
    """Asking an empty queue for its next item raises an error."""
    queue = FairQueue[str]()
    for ask in (queue.peek, queue.take):
        with pytest.raises(IndexError):
            ask()
