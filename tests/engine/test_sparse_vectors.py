"""Rows become clipped vectors of individuals, added up exactly and in order, without zeros."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.sparse_vectors import (
    SATURATED,
    BrokenInvariant,
    Entries,
    RowEntries,
    clipped,
    folded,
    norms_squared,
    side_by_side,
)
from tests.core.contributions import refuse_unsound
from tests.engine.scaled import check_scaled

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
    """The sums in a dictionary."""
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


SIZES = st.one_of(st.integers(1, 9), st.integers(1, 2**31 + 2), st.integers(1, 2**61), st.just(2**61))
VALUES = st.builds(lambda size, sign: size * sign, SIZES, st.sampled_from([1, -1]))
VECTORS = st.lists(st.lists(VALUES, min_size=1, max_size=6), min_size=1, max_size=5)
CLIPS = st.one_of(st.integers(1, 100), st.integers(2**34, 2**61), st.just(2**61))


def flat(vectors: list[list[int]]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """Values and firsts."""
    lengths = np.array([len(vector) for vector in vectors])
    return np.array([value for vector in vectors for value in vector], dtype=np.int64), np.cumsum(lengths) - lengths


@given(vectors=VECTORS)
def test_norms_are_exact_until_they_saturate(vectors: list[list[int]]) -> None:
    """The sum of squares, or 2^62 for anything from there on; values up to 2^61."""
    wanted = [min(sum(value**2 for value in vector), SATURATED) for vector in vectors]
    assert norms_squared(*flat(vectors)).tolist() == wanted


def test_a_long_vector_of_large_values_does_not_wrap() -> None:
    """2^20 squares of 2^60 are 2^80; 64 bits would read zero."""
    values = np.full(2**20, 2**30, dtype=np.int64)
    assert norms_squared(values, np.array([0])).tolist() == [SATURATED]
    cut, norms = clipped(values, np.array([0]), 2**60)
    assert norms.tolist() == [2**60]
    assert set(cut.tolist()) == {2**20}


@settings(max_examples=300)
@given(vectors=VECTORS, clip_squared=CLIPS)
def test_a_vector_beyond_the_clip_keeps_its_direction_and_loses_its_length(
    vectors: list[list[int]], clip_squared: int
) -> None:
    """Within the clip nothing changes; beyond it each coordinate is v * clip / norm toward zero, and the norm fits."""
    values, firsts = flat(vectors)
    cut, norms = clipped(values, firsts, clip_squared)
    parts = np.split(cut, firsts[1:])
    assert norms.tolist() == [sum(value**2 for value in part.tolist()) for part in parts]
    for vector, part in zip(vectors, parts, strict=True):
        if sum(value**2 for value in vector) <= clip_squared:
            assert part.tolist() == vector
        else:
            check_scaled(dict(enumerate(part.tolist())), dict(enumerate(vector)), clip_squared, bits=29, steps=1)


@given(vectors=VECTORS, clip_squared=CLIPS)
def test_no_vector_depends_on_another_individual(vectors: list[list[int]], clip_squared: int) -> None:
    """Alone or among others, the same integers."""
    values, firsts = flat(vectors)
    together = np.split(clipped(values, firsts, clip_squared)[0], firsts[1:])
    alone = [clipped(flat([vector])[0], np.array([0]), clip_squared)[0] for vector in vectors]
    assert [part.tolist() for part in together] == [part.tolist() for part in alone]


def test_the_input_is_not_written_to() -> None:
    """Entries may be views of what others use."""
    values = np.array([100, 5], dtype=np.int64)
    clipped(values, np.array([0, 1]), 16)
    assert values.tolist() == [100, 5]


def test_integers_decide_where_a_float_would_round_across_the_clip() -> None:
    """The root of 2^60 - 1 is 2^30 as a double, whose square is beyond: the factor is stepped down until it fits."""
    cut, norms = clipped(np.array([2**40], dtype=np.int64), np.array([0]), 2**60 - 1)
    assert (cut.tolist(), norms.tolist()) == ([2**30 - 1], [(2**30 - 1) ** 2])


def test_a_clip_of_zero_leaves_nothing() -> None:
    """The zero vector is the only one within it."""
    assert clipped(np.array([3, -4], dtype=np.int64), np.array([0]), 0)[0].tolist() == [0, 0]


@pytest.mark.parametrize("clip_squared", [-1, 2**61 + 1])
def test_a_clip_out_of_range_is_a_broken_invariant(clip_squared: int) -> None:
    """Beyond 2^61 the squares of what is kept could leave int64."""
    with pytest.raises(BrokenInvariant):
        clipped(np.array([3], dtype=np.int64), np.array([0]), clip_squared)
