"""Entries of rows become vectors of individuals: added up exactly, in order, without zeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.sparse_vectors import BrokenInvariant, Entries, RowEntries, folded, side_by_side
from tests.core.contributions import refuse_unsound

DIMENSIONS = st.sampled_from([1, 2, 7, 2**20])
OWNERS = st.lists(st.integers(0, 5), max_size=12).map(sorted)


def entries(owners: list[int], coordinates: list[int], values: list[int]) -> Entries:
    """Entries of plain lists."""
    return Entries(
        owners=np.array(owners, dtype=np.int64),
        coordinates=np.array(coordinates, dtype=np.int64),
        values=np.array(values, dtype=np.int64),
    )


def summed(owners: list[int], coordinates: list[int], values: list[int]) -> dict[tuple[int, int], int]:
    """The same in a dictionary."""
    total: dict[tuple[int, int], int] = {}
    for owner, coordinate, value in zip(owners, coordinates, values, strict=True):
        total[owner, coordinate] = total.get((owner, coordinate), 0) + value
    return {place: value for place, value in sorted(total.items()) if value != 0}


@given(data=st.data(), owners=OWNERS, dimension=DIMENSIONS)
def test_rows_add_up(data: st.DataObject, owners: list[int], dimension: int) -> None:
    """Each coordinate of each individual once, in order; zeros are gone; large values add up without rounding."""
    near = st.integers(0, min(dimension - 1, 3)) | st.just(dimension - 1)
    coordinates = data.draw(st.lists(near, min_size=len(owners), max_size=len(owners)))
    sizes = st.sampled_from([-1, 1, 2, -(2**57), 2**57, 2**57 + 1])
    values = data.draw(st.lists(sizes, min_size=len(owners), max_size=len(owners)))
    merged = entries(owners, coordinates, values).merged(dimension)
    places = list(zip(merged.owners.tolist(), merged.coordinates.tolist(), strict=True))
    wanted = summed(owners, coordinates, values)
    assert places == list(wanted)
    assert merged.values.tolist() == list(wanted.values())


@given(data=st.data(), owners=OWNERS, dimension=DIMENSIONS)
def test_equal_values_are_counted(data: st.DataObject, owners: list[int], dimension: int) -> None:
    """The quick way for a value that is the same for all rows gives the same sums."""
    near = st.integers(0, min(dimension - 1, 3))
    coordinates = data.draw(st.lists(near, min_size=len(owners), max_size=len(owners)))
    slow = entries(owners, coordinates, [3] * len(owners)).merged(dimension)
    quick = Entries(
        owners=np.array(owners, dtype=np.int64),
        coordinates=np.array(coordinates, dtype=np.int64),
        values=np.broadcast_to(np.int64(3), (len(owners),)),
        one_value=True,
    ).merged(dimension)
    for name in ("owners", "coordinates", "values"):
        assert getattr(quick, name).tolist() == getattr(slow, name).tolist()


@given(data=st.data(), dimension=DIMENSIONS, sizes=st.lists(st.integers(0, 6), min_size=1, max_size=8))
def test_one_individuals_parts_add_up(data: st.DataObject, dimension: int, sizes: list[int]) -> None:
    """Merged part by part, whatever is left over and however little of it may wait, they are the sum of all at once."""
    near = st.integers(0, min(dimension - 1, 3))
    drawn = [data.draw(st.lists(st.tuples(near, st.integers(-2, 2)), min_size=size, max_size=size)) for size in sizes]
    parts = [entries([9] * len(part), [c for c, _ in part], [v for _, v in part]).merged(dimension) for part in drawn]
    whole = [entry for part in drawn for entry in part]
    at_once = entries([9] * len(whole), [c for c, _ in whole], [v for _, v in whole]).merged(dimension)
    by_parts = folded(parts, dimension)
    for name in ("owners", "coordinates", "values"):
        assert getattr(by_parts, name).tolist() == getattr(at_once, name).tolist()


def test_an_individual_clipped_to_nothing_is_not_touched() -> None:
    """A vector that the clip truncates to zero adds nothing and pays nothing; so does a single coordinate."""
    some = entries([3, 3, 5, 9], [0, 1, 0, 1], [1, 1, 1, -100])
    block = some.contributions(dimension=2, norm_squared_max=1, clip_binds=True)
    refuse_unsound(block)
    assert block.touched.slots().tolist() == [5, 9]
    assert block.norms_squared.tolist() == [1, 1]
    assert block.owners is not None
    assert (block.owners.tolist(), block.values.tolist()) == ([0, 1], [1, -1])


def test_an_empty_selection_is_an_empty_block() -> None:
    """Rows may have been chosen and have no entry."""
    block = entries([], [], []).merged(4).contributions(dimension=4, norm_squared_max=9, clip_binds=True)
    refuse_unsound(block)
    assert block.touched.slots().tolist() == []


def test_a_clip_that_cannot_bind_is_checked() -> None:
    """The charge must be for what is added, so a vector beyond the public bound stops everything."""
    with pytest.raises(BrokenInvariant):
        entries([1], [0], [4]).contributions(dimension=1, norm_squared_max=15, clip_binds=False)


@given(data=st.data(), rows=st.integers(0, 6), parts=st.integers(1, 3))
def test_parts_of_rows_come_together_row_by_row(data: st.DataObject, rows: int, parts: int) -> None:
    """Each row's entries of the first part, then those of the second; none of them go to another row."""
    owners = sorted(data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)))
    lists = [[data.draw(st.lists(st.integers(1, 99), max_size=3)) for _ in range(rows)] for _ in range(parts)]
    made = [
        RowEntries(
            counts=np.array([len(row) for row in part], dtype=np.int64),
            coordinates=np.array([entry for row in part for entry in row], dtype=np.int64),
            values=np.array([-entry for row in part for entry in row], dtype=np.int64),
        )
        for part in lists
    ]
    found = side_by_side(made, np.array(owners, dtype=np.int64))
    wanted = [(owners[row], entry) for row in range(rows) for part in lists for entry in part[row]]
    assert list(zip(found.owners.tolist(), found.coordinates.tolist(), strict=True)) == wanted
    assert found.values.tolist() == [-entry for _, entry in wanted]
