"""Small arrays are indexed without releasing the GIL, and constant arrays are stored as one element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.arrays import FEW, compress, first, is_uniform, kept, take, uniform
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
def test_a_place_beyond_the_end_has_no_slot(count: int) -> None:
    """However many there are; a mask of another length is refused as well."""
    column = np.zeros(count, dtype=np.int64)
    with pytest.raises(IndexError):
        take(column, np.full(count, count))
    with pytest.raises(IndexError):
        compress(column[:-1], np.ones(count, dtype=np.bool_))


def test_few_keep_the_lock() -> None:
    """The way of numpy gives it up, which the same bystander sees."""
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


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**40))
def test_it_reads_as_so_many_times_the_number(value: int, count: int) -> None:
    """However many there are, there is one."""
    array = uniform(value, count)

    assert array.shape == (count,)
    assert array.dtype == np.int64
    assert is_uniform(array)
    assert is_uniform(array[: count // 2])
    assert array[:3].tolist() == [value] * min(count, 3)
    assert array[-2:].tolist() == [value] * min(count, 2)


def test_a_uniform_array_is_read_only() -> None:
    """A write to one would be a write to all."""
    with pytest.raises(ValueError, match="read-only"):
        uniform(1, 3)[0] = 2


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_that_does_not_fit_is_refused(value: int) -> None:
    """It must not wrap around."""
    with pytest.raises(OverflowError):
        uniform(value, 1)


def test_equal_by_chance_is_not_uniform() -> None:
    """Only what says so of itself."""
    assert not is_uniform(np.ones(3, dtype=np.int64))


def test_the_first_of_none_is_zero() -> None:
    """For every content of the array."""
    assert [first(np.array(numbers, dtype=np.int64)) for numbers in ([], [3], [4, 5])] == [0, 3, 4]
    assert [first(uniform(7, count)) for count in (0, 1, 2)] == [0, 7, 7]


@given(elements=st.lists(st.tuples(st.integers(-9, 9), st.booleans()), max_size=9), is_one=st.booleans())
def test_kept_elements_are_the_marked_ones(elements: list[tuple[int, bool]], *, is_one: bool) -> None:
    """In order; one number stays one, and numbers that are equal by chance do not become one."""
    numbers = np.array([number for number, _ in elements], dtype=np.int64)
    array = uniform(5, numbers.size) if is_one else numbers
    found = kept(np.array([is_kept for _, is_kept in elements], dtype=np.bool_), array)

    assert found.tolist() == [5 if is_one else number for number, is_kept in elements if is_kept]
    assert found.size == 0 or is_uniform(found) == is_one
