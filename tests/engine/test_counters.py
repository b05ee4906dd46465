"""Counters of queries, by slot."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.engine.counters import Counters
from service.engine.memory import PAGE_SLOTS, DatasetMemory
from tests.engine.worlds import SCHEMA

SLOTS = 40
QUERIES = st.lists(st.tuples(st.sets(st.integers(0, SLOTS - 1)), st.sets(st.integers(0, SLOTS - 1))), max_size=12)


def row(slots: set[int]) -> NDArray[np.int64]:
    """Increasing."""
    return np.array(sorted(slots), dtype=np.int64)


@given(queries=QUERIES, runs=st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS)), max_size=4))
def test_each_slot_counts_the_queries_that_name_it(
    queries: list[tuple[set[int], set[int]]], runs: list[tuple[int, int]]
) -> None:
    """Of consecutive slots as of others; each counter by itself."""
    queries = [*queries, *((set(range(first, min(first + size, SLOTS))), {first}) for first, size in runs)]
    counters = Counters()
    counters.grow(SLOTS)
    for charged, left_out in queries:
        counters.count(row(charged), row(left_out))
    named = [Counter(slot for query in queries for slot in query[part]) for part in (0, 1)]
    assert counters.charged.tolist() == [named[0][slot] for slot in range(SLOTS)]
    assert counters.left_out.tolist() == [named[1][slot] for slot in range(SLOTS)]
    for charged, left_out in queries:
        counters.take_back(row(charged), row(left_out))
    assert not counters.charged.any()
    assert not counters.left_out.any()


@pytest.mark.parametrize("slots_max", [0, 3, 100])
def test_counters_grow_and_keep_what_they_have(slots_max: int) -> None:
    """Within the room that was reserved, and beyond it."""
    counters = Counters(slots_max)
    assert counters.charged.size == counters.left_out.size == 0
    counters.grow(2)
    counters.count(row({1}), row({0}))
    counters.grow(60)
    counters.count(row({1, 59}), row(set()))
    assert np.flatnonzero(counters.charged).tolist() == [1, 59]
    assert (counters.charged[1], counters.left_out[0], counters.charged.size) == (2, 1, 60)
    assert counters.charged.dtype == counters.left_out.dtype == np.dtype(np.uint32)


@pytest.mark.parametrize("slots", [{-1}, {2}, {1, 2}, {0, 7}])
def test_a_slot_beyond_the_counters_is_refused(slots: set[int]) -> None:
    """No other slot is counted in its place."""
    counters = Counters(50)
    counters.grow(2)
    with pytest.raises(IndexError):
        counters.count(row(slots), row(set()))
    with pytest.raises(IndexError):
        counters.count(row(set()), row(slots))
    counters.grow(50)
    assert not counters.charged.any()
    assert not counters.left_out.any()


def test_a_dataset_has_counters_for_the_slots_of_its_accounts() -> None:
    """Page by page, and room that was made ahead holds none."""
    memory = DatasetMemory(SCHEMA, slots_max=2 * PAGE_SLOTS)
    memory.grow(1)
    memory.counters.count(row({0}), row(set()))
    memory.make_room(PAGE_SLOTS + 5)
    memory.grow(3 * PAGE_SLOTS)
    assert memory.counters.charged.size == memory.accounts.spent.size == 3 * PAGE_SLOTS
    assert memory.counters.charged.sum() == 1
