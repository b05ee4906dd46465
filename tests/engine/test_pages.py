"""Slots and the pages that hold them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.arrays import FEW
from service.engine.pages import PAGE_SLOTS, pages_of


@given(seed=st.integers(0, 2**32), count=st.sampled_from([0, 1, FEW, FEW + 1, 3 * FEW]))
def test_pages_are_told_once_and_in_order(seed: int, count: int) -> None:
    """Of few slots as of many, in any order, with repeats."""
    slots = np.random.default_rng(seed).integers(0, 30 * PAGE_SLOTS, count)
    pages = pages_of(slots)
    assert pages.dtype == np.int64
    assert pages.tolist() == sorted({slot // PAGE_SLOTS for slot in slots.tolist()})


@pytest.mark.parametrize("last", [0, PAGE_SLOTS - 1, PAGE_SLOTS, 3 * PAGE_SLOTS - 1])
def test_a_slot_is_on_its_page(last: int) -> None:
    """Up to the last slot of a page, and from the first of the next."""
    assert pages_of(np.array([last])).tolist() == [last // PAGE_SLOTS]
