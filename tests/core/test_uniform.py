"""Many equal numbers in the room of one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.uniform import is_uniform, uniform


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


def test_nobody_can_write_it() -> None:
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
