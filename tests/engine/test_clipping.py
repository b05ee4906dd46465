"""Norms and scaling against integers of any size and decimals of 60 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.sparse_vectors import SATURATED, BrokenInvariant, clipped, norms_squared

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
            check_scaled(part.tolist(), vector, clip_squared)


def check_scaled(found: list[int], vector: list[int], clip_squared: int) -> None:
    """At most one step shorter than the exact product in each coordinate, besides what 32 bits lose."""
    assert sum(value**2 for value in found) <= clip_squared
    with localcontext(prec=60):
        factor = (Decimal(clip_squared) / sum(value**2 for value in vector)).sqrt()
        for value, given_value in zip(vector, found, strict=True):
            exact = abs(value * factor)
            assert given_value * value >= 0
            assert exact - 2 < abs(given_value) <= exact * (1 + Decimal(2) ** -29) + 1


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
