"""Few rows are worked on without giving up the interpreter's lock, and give what many would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.few import FEW, distinct, picked
from service.engine.pages import PAGE_SLOTS, pages_of
from tests.bystander import bystander

TAKES_MAX = 1_000_000


@given(seed=st.integers(0, 2**32), count=st.sampled_from([0, 1, 2, FEW - 1, FEW, FEW + 1, 3 * FEW]))
def test_few_give_what_many_give(seed: int, count: int) -> None:
    """Below the bound and beyond it, in any order, with repeats."""
    source = np.random.default_rng(seed)
    column, places = source.integers(0, 2**16, 5000).astype(np.uint16), source.integers(0, 5000, count)
    found = picked(column, places)
    assert found.dtype == np.uint16
    assert found.tolist() == [column[place] for place in places.tolist()]
    numbers = distinct(places // 100)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == sorted(set((places // 100).tolist()))


def test_few_rows_keep_the_lock() -> None:
    """As long as there are few. numpy's own way gives it up, which the same bystander sees."""
    column, slots = np.arange(2**20, dtype=np.uint32), np.arange(0, 2**20, 2**20 // FEW)[:FEW]
    with bystander() as turns:
        before = turns()
        for _ in range(1000):
            picked(column, slots)
            pages_of(slots)
        assert turns() == before
        takes = 0
        while turns() == before and takes < TAKES_MAX:
            column.take(slots)
            takes += 1
        assert turns() > before


@pytest.mark.parametrize("last", [0, PAGE_SLOTS - 1, PAGE_SLOTS, 3 * PAGE_SLOTS - 1])
def test_a_slot_is_on_its_page(last: int) -> None:
    """Up to the last slot of a page, and from the first of the next."""
    assert pages_of(np.array([last])).tolist() == [last // PAGE_SLOTS]
