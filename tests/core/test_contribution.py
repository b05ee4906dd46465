"""Sums over the active are exact, whichever form the entries come in."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.release import Contributions
from service.core.renyi_filter import Touched
from tests.core.contributions import refuse_unsound, row

VALUES = st.one_of(st.integers(-3, 3), st.integers(-(2**30), 2**30))


def sum_over(block: Contributions, active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The exact sum (dimension,) of the vectors of the individuals marked in `active` (k,), in grid steps."""
    total = np.zeros(block.dimension, dtype=np.int64)
    block.add_to(total, active)
    return total


def compact(numbers: list[int]) -> NDArray[np.int64]:
    """The numbers, as a zero-stride view where they are all equal."""
    if numbers and len(set(numbers)) == 1:
        return np.broadcast_to(np.int64(numbers[0]), len(numbers))
    return row(*numbers)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Contributions, NDArray[np.bool_]]:
    """A block of one entry each or of several, arrays compact or plain, and the active set."""
    dimension, count = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    single = draw(st.booleans())
    several = st.lists(st.integers(0, max(count - 1, 0)), max_size=9 if count else 0).map(sorted)
    owners = list(range(count)) if single else draw(several)
    coordinates = draw(st.lists(st.integers(0, dimension - 1), min_size=len(owners), max_size=len(owners)))
    values = draw(st.lists(VALUES, min_size=len(owners), max_size=len(owners)))
    if draw(st.booleans()) and owners:
        coordinates = [coordinates[0]] * len(owners)
    if draw(st.booleans()) and owners:
        values = [values[0]] * len(owners)
    shape = compact if draw(st.booleans()) else lambda numbers: row(*numbers)
    block = Contributions(
        touched=Touched(row(*(3 * place for place in range(count)))),
        norms_squared=np.ones(count, dtype=np.int64),
        dimension=dimension,
        owners=None if single else row(*owners),
        coordinates=shape(coordinates),
        values=shape(values),
    )
    return block, np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool)


@given(blocks())
def test_the_sum_is_the_python_sum_over_the_active(drawn: tuple[Contributions, NDArray[np.bool_]]) -> None:
    """Entry by entry, in Python's integers."""
    block, active = drawn
    owners = range(block.values.size) if block.owners is None else block.owners.tolist()
    expected = [0] * block.dimension
    for owner, coordinate, value in zip(owners, block.coordinates.tolist(), block.values.tolist(), strict=True):
        expected[coordinate] += value if active[owner] else 0

    assert sum_over(block, active).tolist() == expected


@given(blocks())
def test_adding_to_a_total_is_adding_the_sum(drawn: tuple[Contributions, NDArray[np.bool_]]) -> None:
    """The total so far is kept."""
    block, active = drawn
    total = np.arange(block.dimension, dtype=np.int64)

    block.add_to(total, active)

    np.testing.assert_array_equal(total, np.arange(block.dimension) + sum_over(block, active))


def test_sums_beyond_the_53_bits_of_a_double_are_exact() -> None:
    """A weighted bincount would have rounded them."""
    values = row(2**60, 1, 2**60 - 1, 1)
    for coordinates in (np.broadcast_to(np.int64(0), 4), row(0, 0, 0, 0)):
        block = Contributions(
            touched=Touched(row(0, 1, 2, 3)),
            norms_squared=row(1, 1, 1, 1),
            dimension=1,
            owners=None,
            coordinates=coordinates,
            values=values,
        )
        assert sum_over(block, np.array([True, True, True, False])).tolist() == [2**61]


MARKED = Touched(slice(2, 4), np.array([True, False]))
"""The first of two places is touched."""


def sound(**changes: Any) -> Contributions:
    """Two individuals: (3, 4) in slot 2, given in three entries, and (0, -1) in slot 5."""
    fields: dict[str, Any] = {
        "touched": Touched(row(2, 5)),
        "norms_squared": row(25, 1),
        "dimension": 2,
        "owners": row(0, 0, 1, 0),
        "coordinates": row(0, 1, 1, 1),
        "values": row(3, 3, -1, 1),
    }
    return Contributions(**(fields | changes))


def test_norms_are_of_the_summed_vector() -> None:
    """Two rows of 1 cost 4, not 2: an individual's entries add up before they are squared."""
    refuse_unsound(sound())
    both = {"touched": Touched(row(0)), "owners": row(0, 0), "coordinates": row(0, 0), "values": row(1, 1)}

    refuse_unsound(sound(norms_squared=row(4), **both))
    with pytest.raises(ValueError, match="norms_squared"):
        refuse_unsound(sound(norms_squared=row(2), **both))


def test_one_entry_each_and_empty_blocks_pass_the_check() -> None:
    """Without owners entry e is of slot e."""
    refuse_unsound(sound(owners=None, coordinates=row(0, 1), values=row(5, -1)))
    refuse_unsound(sound(touched=Touched(row()), norms_squared=row(), owners=None, coordinates=row(), values=row()))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"owners": row(0, 0, 2, 0)}, "owners"),
        ({"owners": row(0, 0, -1, 0)}, "owners"),
        ({"coordinates": row(0, 1, 2, 1)}, "coordinates"),
        ({"coordinates": row(0, 1, -1, 1)}, "coordinates"),
        ({"norms_squared": row(25, 2)}, "norms_squared"),
        ({"norms_squared": row(19, 1)}, "norms_squared"),
        ({"norms_squared": row(25, -1), "touched": MARKED}, "negative"),
        ({"norms_squared": row(25, 0), "values": row(3, 3, 0, 1)}, "positive"),
    ],
)
def test_the_check_names_the_promise_that_is_broken(broken: dict[str, Any], message: str) -> None:
    """Order, range, and a norm for the very integers that are summed."""
    with pytest.raises(ValueError, match=message):
        refuse_unsound(sound(**broken))


@pytest.mark.parametrize(
    "broken",
    [
        {"norms_squared": row(1)},
        {"coordinates": row(0, 1, 1)},
        {"values": row(0, 1, 1)},
        {"owners": row(0)},
        {"owners": None},
        {"dimension": 0},
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(broken: dict[str, Any]) -> None:
    """Lengths are checked when the block is made."""
    with pytest.raises(ValueError, match=r"one norm|dimension"):
        sound(**broken)


def test_norms_that_are_one_by_the_query_are_a_view() -> None:
    """A fact of the query must not depend on the data; an empty set has no norm to tell."""
    one = np.broadcast_to(np.int64(25), 2)

    assert sound(norms_squared=one, one_norm=True).one_norm
    nobody = {"touched": Touched(row()), "norms_squared": row(), "owners": row(), "coordinates": row(), "values": row()}
    assert sound(**nobody, one_norm=True).one_norm
    with pytest.raises(ValueError, match="view"):
        sound(norms_squared=row(25, 25), one_norm=True)
