"""Few elements are worked on without giving up the interpreter's lock, and give what many would give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.few import FEW, compress, take
from tests.gil_probe import bystander

TAKES_MAX = 1_000_000


@given(seed=st.integers(0, 2**32), count=st.sampled_from([0, 1, 2, FEW - 1, FEW, FEW + 1, 3 * FEW]))
def test_few_give_what_many_give(seed: int, count: int) -> None:
    """Below the bound and beyond it, in any order, with repeats."""
    source = np.random.default_rng(seed)
    column, places = source.integers(0, 2**16, 5000).astype(np.uint16), source.integers(0, 5000, count)
    found = take(column, places)
    assert found.dtype == np.uint16
    assert found.tolist() == [column[place] for place in places.tolist()]
    mask = source.integers(0, 2, count).astype(np.bool_)
    assert compress(places, mask).tolist() == [
        place for place, is_marked in zip(places, mask, strict=True) if is_marked
    ]


@pytest.mark.parametrize("count", [FEW, FEW + 1])
def test_a_place_beyond_the_end_is_nobody(count: int) -> None:
    """However many there are; a mask of another length is refused as well."""
    column = np.zeros(count, dtype=np.int64)
    with pytest.raises(IndexError):
        take(column, np.full(count, count))
    with pytest.raises(IndexError):
        compress(column[:-1], np.ones(count, dtype=np.bool_))


def test_few_keep_the_lock() -> None:
    """As long as there are few. numpy's own way gives it up, which the same bystander sees."""
    column, slots = np.arange(2**20, dtype=np.uint32), np.arange(0, 2**20, 2**20 // FEW)[:FEW]
    mask = slots % 3 == 0
    with bystander() as turns:
        before = turns()
        for _ in range(1000):
            take(column, slots)
            compress(slots, mask)
        assert turns() == before
        takes = 0
        while turns() == before and takes < TAKES_MAX:
            column.take(slots)
            takes += 1
        assert turns() > before
