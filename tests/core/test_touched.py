"""The touched individuals of a block are the same as a list of slots and as a stretch with marks."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.renyi_filter import Touched
from tests.core.contributions import row

Form = Callable[[list[int]], Touched]


def flags(*values: int) -> NDArray[np.bool_]:
    """The values as truth values."""
    return np.array(values, dtype=np.bool_)


def listed(slots: list[int]) -> Touched:
    """All of a list."""
    return Touched(row(*slots))


def listed_among_others(slots: list[int]) -> Touched:
    """The marked ones of a longer list."""
    others = sorted({*slots, 4, 9, 23})
    return Touched(row(*others), flags(*(slot in slots for slot in others)))


def stretched(slots: list[int]) -> Touched:
    """The marked ones of a stretch."""
    return Touched(slice(2, 40), flags(*(slot in slots for slot in range(2, 40))))


FORMS = pytest.mark.parametrize("form", [listed, listed_among_others, stretched])
SLOTS = st.lists(st.integers(2, 39), unique=True).map(sorted)


@FORMS
@given(SLOTS)
def test_each_form_tells_the_same_slots(form: Form, slots: list[int]) -> None:
    """All of them, and how many there are."""
    touched = form(slots)

    assert touched.slots().tolist() == slots
    assert touched.count == len(slots)
    assert touched.begin <= min(slots, default=50)
    assert touched.end > max(slots, default=-1)


@FORMS
@given(SLOTS, st.integers(0, 2**32))
def test_some_of_the_places_are_some_of_the_slots(form: Form, slots: list[int], seed: int) -> None:
    """No place that is not touched is among them."""
    touched = form(slots)
    which = np.random.default_rng(seed).random(touched.size) < 0.5

    among = touched.among(which)

    chosen = [slot for slot, is_in in zip(touched.slots(np.ones_like(which)).tolist(), which, strict=True) if is_in]
    assert touched.slots(among).tolist() == [slot for slot in chosen if slot in slots]


def test_places_are_counted_from_the_first() -> None:
    """An empty list begins and ends at nothing."""
    assert (listed([]).size, listed([]).begin, listed([]).end) == (0, 0, 0)
    assert (listed([3, 7]).size, listed([3, 7]).begin, listed([3, 7]).end) == (2, 3, 8)
    assert (stretched([]).size, stretched([]).begin, stretched([]).end) == (38, 2, 40)


@pytest.mark.parametrize("slots", [row(1, 1), row(2, 1), row(-1, 0), row(0, 2, 1, 3)])
def test_slots_repeated_out_of_order_or_below_zero_are_refused(slots: NDArray[np.int64]) -> None:
    """A slot named twice would be charged once on the balance of both, and a negative one would be another's."""
    with pytest.raises(IndexError):
        Touched(slots)


@pytest.mark.parametrize(
    ("index", "marks"),
    [
        (slice(0, 2), None),
        (slice(-1, 1), flags(1, 1)),
        (slice(2, 1), flags()),
        (slice(0, 2, 1), flags(1, 1)),
        (slice(0, 2), flags(1)),
        (slice(0, 2), np.ones(2, dtype=np.int64)),
        (slice(0, 2), flags(1, 1).reshape(2, 1)),
        (row(0, 1), flags(1)),
    ],
)
def test_stretches_and_marks_that_do_not_belong_together_are_refused(
    index: NDArray[np.int64] | slice, marks: NDArray[np.bool_] | None
) -> None:
    """One mark for each place, and one place after the other."""
    with pytest.raises(ValueError, match=r"stretch|mark"):
        Touched(index, marks)
