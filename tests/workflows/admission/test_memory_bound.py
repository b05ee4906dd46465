"""The bound on memory: never exceeded, shared by principals, and given back exactly once."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.cost import PublicCost
from service.workflows.admission.admission import MemoryBound, MemoryFull, RequestTooLarge

MAX = 1000
costs = st.builds(PublicCost, time_ns=st.just(0), kept_bytes=st.integers(0, 300), working_bytes=st.integers(0, 300))
# A request (principal, writer, cost), or the index of a holder that releases its memory.
operations = st.lists(st.one_of(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), costs), st.integers(0, 100)))


def cost(kept_bytes: int = 0, working_bytes: int = 0) -> PublicCost:
    """A cost of this much memory and no time."""
    return PublicCost(time_ns=0, kept_bytes=kept_bytes, working_bytes=working_bytes)


@given(steps=operations)
def test_held_memory_stays_within_the_bound(steps: Sequence[tuple[str, str, PublicCost] | int]) -> None:
    """Kept memory plus the largest working memory of each worker; each principal always has its own share left."""
    bound, held = MemoryBound(MAX), list[tuple[str, str, PublicCost]]()
    for what in steps:
        if isinstance(what, int):
            if held:
                principal, worker, asked = held.pop(what % len(held))
                bound.release(principal, asked, worker)
            continue
        principal, worker, asked = what
        if asked.memory_bytes > MAX // 2:
            with pytest.raises(RequestTooLarge, match=f"{asked.memory_bytes} bytes of {MAX // 2}"):
                bound.admit(principal, asked, worker)
            continue
        try:
            bound.admit(principal, asked, worker)
        except MemoryFull:
            continue
        held.append((principal, worker, asked))
        working = sum(max((each.working_bytes for _, w, each in held if w == name), default=0) for name in "xy")
        used = sum(each.kept_bytes for _, _, each in held) + working
        own = sum(each.kept_bytes for name, _, each in held if name == principal) + asked.working_bytes
        assert used <= MAX
        assert own <= MAX - used
        assert bound.kept_bytes == used - working
    assert bound.requests == len(held)
    for principal, worker, asked in held:
        bound.release(principal, asked, worker)
    assert (bound.kept_bytes, bound.requests) == (0, 0)
    bound.admit("a", cost(kept_bytes=MAX // 2))


def test_a_permanent_refusal_differs_from_a_temporary_one() -> None:
    """One principal may hold half of all memory; the refusal names both numbers."""
    bound = MemoryBound(MAX)
    with pytest.raises(RequestTooLarge) as refused:
        bound.admit("a", cost(kept_bytes=301, working_bytes=200))
    assert (refused.value.needed_bytes, refused.value.allowed_bytes) == (501, 500)
    bound.admit("a", cost(kept_bytes=300, working_bytes=200))
    with pytest.raises(MemoryFull):
        bound.admit("a", cost(kept_bytes=110))
    bound.release("a", cost(kept_bytes=300, working_bytes=200))
    bound.admit("a", cost(kept_bytes=110))


def test_one_principal_cannot_keep_others_out() -> None:
    """One principal can take half, in any pieces; the next one can take half of the rest."""
    bound = MemoryBound(MAX)

    def greedy(principal: str) -> int:
        taken = 0
        for size in (500, 100, 10, 1):
            while True:
                try:
                    bound.admit(principal, cost(kept_bytes=size))
                except MemoryFull:
                    break
                taken += size
        return taken

    assert [greedy(name) for name in "abc"] == [500, 250, 125]


def test_queries_of_one_worker_share_their_working_memory_and_those_of_two_do_not() -> None:
    """A dataset's queries are worked on one after the other, two datasets' at the same time."""
    bound = MemoryBound(MAX)
    for _ in range(5):
        bound.admit("a", cost(working_bytes=400), "x")
    bound.admit("b", cost(working_bytes=200), "y")
    with pytest.raises(MemoryFull):
        bound.admit("c", cost(working_bytes=300), "z")


def test_a_refused_request_holds_no_memory() -> None:
    """A refused request leaves the free memory unchanged."""
    bound = MemoryBound(MAX)
    bound.admit("a", cost(kept_bytes=500))
    for _ in range(10):
        with pytest.raises(MemoryFull):
            bound.admit("b", cost(kept_bytes=300, working_bytes=100))
    bound.release("a", cost(kept_bytes=500))
    bound.admit("b", cost(kept_bytes=300, working_bytes=100))
