"""Vectors that are shortened: within their bounds, in their direction, and as each would be alone."""

import math
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.shortening import shortened

VALUES = st.one_of(st.integers(-5, 5), st.integers(-(2**31), 2**31), st.integers(-(2**58), 2**58))
VECTORS = st.lists(VALUES.filter(bool), min_size=1, max_size=5)
SHARES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


def squared(vector: list[int]) -> int:
    """Exactly."""
    return sum(value * value for value in vector)


def bounded(vector: list[int], share: float) -> int:
    """A bound below the squared norm of a vector."""
    return min(math.floor(Fraction(share) * (squared(vector) - 1)), 2**61)


def columns(vectors: list[list[int]], bounds: list[int]) -> tuple[Any, Any, Any]:
    """The vectors one after the other, where each begins, and their bounds."""
    firsts = np.cumsum([0, *map(len, vectors)])[:-1]
    return np.array([*chain.from_iterable(vectors)], dtype=np.int64), firsts, np.array(bounds, dtype=np.int64)


@given(st.lists(st.tuples(VECTORS, SHARES), max_size=6))
def test_a_vector_is_scaled_to_its_bound_and_truncated(drawn: list[tuple[list[int], float]]) -> None:
    """Each entry is the scaled one less a part of a step, toward zero; norms are those of the entries."""
    vectors, bounds = [vector for vector, _ in drawn], [bounded(*each) for each in drawn]
    values, norms = shortened(*columns(vectors, bounds))
    entries = iter(values.tolist())
    for vector, bound, norm in zip(vectors, bounds, norms.tolist(), strict=True):
        cut = [next(entries) for _ in vector]
        assert squared(cut) == norm <= bound
        factor = math.isqrt(bound * 2**80 // squared(vector)) / 2**40
        lost = 1 + 2**-10 if max(map(abs, vector)) < 2**32 else 2  # a larger one loses low bits first
        for whole, part in zip(vector, cut, strict=True):
            assert part * whole >= 0
            assert abs(whole) * factor - lost <= abs(part) <= abs(whole)


@given(st.lists(st.tuples(VECTORS, SHARES), min_size=1, max_size=6))
def test_a_vector_comes_out_the_same_whatever_is_beside_it(drawn: list[tuple[list[int], float]]) -> None:
    """Separability: no other vector decides a factor."""
    vectors, bounds = [vector for vector, _ in drawn], [bounded(*each) for each in drawn]
    together = shortened(*columns(vectors, bounds))[0].tolist()
    alone = [shortened(*columns([vector], [bound]))[0].tolist() for vector, bound in zip(vectors, bounds, strict=True)]
    assert together == [*chain.from_iterable(alone)]


@pytest.mark.parametrize("bound", [-1, 2**61 + 1])
def test_a_bound_out_of_range_is_refused(bound: int) -> None:
    """Beyond 2^61 the squares of what is kept could leave int64."""
    with pytest.raises(ValueError, match="between 0 and 2"):
        shortened(*columns([[2**40]], [bound]))


@pytest.mark.parametrize("others", [[], [[3, 4]], [[2**31, 5]]])
def test_a_factor_that_rounding_left_too_large_is_made_less(others: list[list[int]]) -> None:
    """The root of 2^60 - 1 is 2^30 in doubles, so that the first cut is one step too long; the others keep theirs."""
    vectors, bounds = [[2**31], *others], [2**60 - 1, *([24] * len(others))]
    values, norms = shortened(*columns(vectors, bounds))
    assert (int(values[0]), int(norms[0])) == (2**30 - 1, (2**30 - 1) ** 2)
    assert [norm <= bound for norm, bound in zip(norms.tolist(), bounds, strict=True)] == [True] * len(bounds)
