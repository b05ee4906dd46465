"""Slots, the pages that hold them, and counters of queries by slot."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.arrays import FEW
from service.core.renyi_filter import Touched
from service.engine.memory import DatasetMemory
from service.engine.pages import Counters, pages_of
from service.query.division import PAGE_SLOTS
from tests.engine.worlds import SCHEMA


@given(seed=st.integers(0, 2**32), count=st.sampled_from([0, 1, FEW, FEW + 1, 3 * FEW]))
def test_pages_are_told_once_and_in_order(seed: int, count: int) -> None:
    """Few slots and many give their pages, in any order and with repeats."""
    slots = np.random.default_rng(seed).integers(0, 30 * PAGE_SLOTS, count)
    pages = pages_of(slots)
    assert pages.dtype == np.int64
    assert pages.tolist() == sorted({slot // PAGE_SLOTS for slot in slots.tolist()})


@pytest.mark.parametrize("last", [0, PAGE_SLOTS - 1, PAGE_SLOTS, 3 * PAGE_SLOTS - 1])
def test_a_slot_is_on_its_page(last: int) -> None:
    """Up to the last slot of a page, and from the first of the next."""
    assert pages_of(np.array([last])).tolist() == [last // PAGE_SLOTS]


SLOTS = 40
QUERIES = st.lists(st.tuples(st.sets(st.integers(0, SLOTS - 1)), st.sets(st.integers(0, SLOTS - 1))), max_size=12)


def listed(charged: set[int], left_out: set[int]) -> tuple[Touched, NDArray[np.bool_]]:
    """A query that touches these slots, as a list of them."""
    slots = sorted(charged | left_out)
    return Touched(np.array(slots, dtype=np.int64)), np.array([slot in charged for slot in slots], dtype=np.bool_)


def stretched(charged: set[int], left_out: set[int]) -> tuple[Touched, NDArray[np.bool_]]:
    """The slots as marks of a stretch."""
    marks = np.array([slot in charged | left_out for slot in range(SLOTS)], dtype=np.bool_)
    active = np.array([slot in charged for slot in range(SLOTS)], dtype=np.bool_)
    return Touched(slice(0, SLOTS), marks), active


@pytest.mark.parametrize("repetitions", [1, 30])
@given(queries=QUERIES, forms=st.lists(st.booleans(), min_size=12, max_size=12))
def test_each_slot_counts_the_queries_that_name_it(
    repetitions: int, queries: list[tuple[set[int], set[int]]], forms: list[bool]
) -> None:
    """Lists and stretches come in any order, and more often than a byte holds; each counter counts by itself."""
    apart = [(charged, left_out - charged) for charged, left_out in queries]
    asked = [
        (stretched if is_stretch else listed)(*query) for query, is_stretch in zip(apart, forms, strict=False)
    ] * repetitions
    counters = Counters()
    counters.grow(SLOTS)
    for touched, active in asked:
        counters.count(touched, active)
    named = [Counter(slot for query in apart for slot in query[part]) for part in (0, 1)]
    assert counters.charged_of(slice(None)).tolist() == [repetitions * named[0][slot] for slot in range(SLOTS)]
    assert counters.left_out_of(slice(None)).tolist() == [repetitions * named[1][slot] for slot in range(SLOTS)]
    assert counters.charged_of(slice(3, 9)).tolist() == counters.charged_of(slice(None))[3:9].tolist()
    assert counters.left_out_of(np.array([7, 2])).tolist() == counters.left_out_of(slice(None))[[7, 2]].tolist()
    for touched, _ in asked:
        ever = counters.have_been_left_out(touched) > 0
        assert ever.tolist() == (counters.left_out_of(slice(None))[touched.index] > 0).tolist()
    everybody = stretched(set(range(SLOTS)), set())[0]
    for touched, active in asked:
        counters.take_back(touched, active)
        ever = counters.have_been_left_out(everybody) > 0
        assert ever.tolist() == (counters.left_out_of(slice(None)) > 0).tolist()
    assert not counters.charged_of(slice(None)).any()
    assert not counters.left_out_of(slice(None)).any()
    assert not counters.have_been_left_out(everybody).any()


def test_a_byte_never_overflows() -> None:
    """Six hundred queries in a row touch a whole stretch."""
    counters = Counters()
    counters.grow(SLOTS)
    for _ in range(600):
        counters.count(*stretched({1}, {2}))
    assert (counters.charged_of(slice(None)).sum(), counters.charged_of(slice(None))[1]) == (600, 600)
    assert (counters.left_out_of(slice(None)).sum(), counters.left_out_of(slice(None))[2]) == (600, 600)


@pytest.mark.parametrize("slots_max", [0, 3, 100])
def test_counters_grow_and_keep_what_they_have(slots_max: int) -> None:
    """Within the room that was reserved, and beyond it."""
    counters = Counters(slots_max)
    assert counters.charged_of(slice(None)).size == counters.left_out_of(slice(None)).size == counters.size == 0
    counters.grow(SLOTS)
    counters.count(*stretched({1}, {0}))
    counters.grow(60)
    counters.count(*listed({1, 59}, set()))
    assert np.flatnonzero(counters.charged_of(slice(None))).tolist() == [1, 59]
    assert (
        counters.charged_of(slice(None))[1],
        counters.left_out_of(slice(None))[0],
        counters.charged_of(slice(None)).size,
    ) == (2, 1, 60)
    assert counters.charged_of(slice(None)).dtype == counters.left_out_of(slice(None)).dtype == np.dtype(np.uint32)


def test_a_load_replaces_what_was_counted() -> None:
    """In totals and in bytes."""
    counters = Counters()
    counters.grow(SLOTS)
    counters.count(*stretched({1, 5}, {2}))
    counters.set(slice(0, 4), np.array([4, 3, 2, 1], dtype=np.uint32), 9)
    assert counters.charged_of(slice(None))[:6].tolist() == [4, 3, 2, 1, 0, 1]
    assert counters.left_out_of(slice(None))[:6].tolist() == [9, 9, 9, 9, 0, 0]
    assert (counters.have_been_left_out(stretched(set(), set())[0])[:6] > 0).tolist() == [True] * 4 + [False] * 2


@pytest.mark.parametrize("slots", [{2}, {1, 2}, {0, 7}])
def test_a_slot_beyond_the_counters_is_refused(slots: set[int]) -> None:
    """No other slot is counted in its place."""
    counters = Counters(50)
    counters.grow(2)
    for query in (listed(slots, set()), listed(set(), slots), stretched({0}, set())):
        with pytest.raises(IndexError):
            counters.count(*query)
        with pytest.raises(IndexError):
            counters.have_been_left_out(query[0])
    counters.grow(50)
    assert not counters.charged_of(slice(None)).any()
    assert not counters.left_out_of(slice(None)).any()


def test_a_dataset_has_counters_for_the_slots_of_its_accounts() -> None:
    """Page by page, and room that was made ahead holds none."""
    memory = DatasetMemory(SCHEMA, slots_max=2 * PAGE_SLOTS)
    memory.grow(1)
    memory.counters.count(*listed({0}, set()))
    memory.make_room(PAGE_SLOTS + 5)
    memory.grow(3 * PAGE_SLOTS)
    assert memory.counters.charged_of(slice(None)).size == memory.accounts.size == 3 * PAGE_SLOTS
    assert memory.counters.charged_of(slice(None)).sum() == 1
