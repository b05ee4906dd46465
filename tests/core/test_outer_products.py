"""Vectors that are outer products: summed exactly, measured, and shortened within bounds."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.outer_products import OuterProducts, squared_norms
from service.core.renyi_filter import Touched

WHOLE = st.integers(-(2**11), 2**11)
Matrix = list[list[int]]


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Matrix, Matrix | None]:
    """Both factors of a few individuals, one individual after the other; of a square one factor."""
    count, rows, others = draw(st.integers(0, 5)), draw(st.integers(1, 4)), draw(st.integers(0, 4))
    left = draw(st.lists(st.lists(WHOLE, min_size=rows, max_size=rows), min_size=count, max_size=count))
    right = draw(st.lists(st.lists(WHOLE, min_size=others, max_size=others), min_size=count, max_size=count))
    return left, right if others > 0 else None


def vector(left: list[int], right: list[int] | None) -> list[int]:
    """The entries of one individual's vector, by definition."""
    if right is None:
        return [left[j] * left[k] for j in range(len(left)) for k in range(j, len(left))]
    return [first * second for first in left for second in right]


def block_of(left: Matrix, right: Matrix | None, *, peak: int = 2**22) -> OuterProducts:
    """The individuals in slots from 3 on, all touched."""
    width = len(left[0]) if left else 1
    first = np.array(left, dtype=np.float64).reshape(len(left), width).T
    second = None if right is None else np.array(right, dtype=np.float64).reshape(len(left), -1 if left else 1).T
    return OuterProducts(
        touched=Touched(slice(3, 3 + len(left)), np.ones(len(left), dtype=np.bool_)),
        norms_squared=squared_norms(first, second),
        left=first,
        right=second,
        peak=peak,
    )


@given(matrices(), st.integers(0, 2**32), st.sampled_from([2**22, 2**52, 2**53 - 1]))
def test_the_sum_over_the_active_is_exact(drawn: tuple[Matrix, Matrix | None], seed: int, peak: int) -> None:
    """One product of matrices may hold any number of individuals; the inactive add nothing."""
    left, right = drawn
    block = block_of(left, right, peak=peak)
    active = np.random.default_rng(seed).random(len(left)) < 0.6
    total = np.full(block.dimension, 7, dtype=np.int64)
    block.add_to(total, active)
    wanted = [7] * block.dimension
    for place in np.flatnonzero(active).tolist():
        entries = vector(left[place], None if right is None else right[place])
        wanted = [sum(pair) for pair in zip(wanted, entries, strict=True)]
    assert total.tolist() == wanted


@given(matrices())
def test_norms_are_those_of_the_entries(drawn: tuple[Matrix, Matrix | None]) -> None:
    """Exactly, without a vector being formed."""
    left, right = drawn
    others: list[Any] = right or [None] * len(left)
    wanted = [sum(entry**2 for entry in vector(*pair)) for pair in zip(left, others, strict=True)]
    assert block_of(left, right).norms_squared.tolist() == wanted


def test_sums_near_the_limit_of_a_double_are_exact() -> None:
    """Four products of 2^52 leave the doubles where one product of matrices adds them; so each is by itself."""
    block = block_of([[2**26]] * 4 + [[1]], [[2**26]] * 4 + [[1]], peak=2**52)
    total = np.zeros(1, dtype=np.int64)
    block.add_to(total, np.ones(5, dtype=np.bool_))
    assert total.tolist() == [2**54 + 1]


@given(matrices(), st.floats(0, 1, exclude_max=True), st.integers(0, 2**32))
def test_a_vector_is_scaled_to_its_bound_and_truncated(
    drawn: tuple[Matrix, Matrix | None], share: float, seed: int
) -> None:
    """Its norm is that of its entries and within the bound; an entry of `left` is the scaled one less a part of a step.

    Those in other places keep every entry.
    """
    left, right = drawn
    block = block_of(left, right)
    chosen = (np.random.default_rng(seed).random(len(left)) < 0.6) & (block.norms_squared > 0)
    places = np.flatnonzero(chosen)
    bounds = np.floor(block.norms_squared[places] * share).astype(np.int64)
    cut = block.shortened(places, np.minimum(bounds, block.norms_squared[places] - 1))
    assert cut.norms_squared.tolist() == squared_norms(cut.left, cut.right).tolist()
    assert (cut.left[:, ~chosen] == block.left[:, ~chosen]).all()
    for place, bound in zip(places.tolist(), bounds.tolist(), strict=True):
        assert cut.norms_squared[place] <= bound
        factor = Fraction(bound, int(block.norms_squared[place]))
        scale = float(factor) ** (0.25 if right is None else 0.5)
        for before, after in zip(block.left[:, place].tolist(), cut.left[:, place].tolist(), strict=True):
            assert abs(before) * scale - 1 - 1e-6 <= abs(after) <= abs(before) * scale
            assert before * after >= 0


def test_a_bound_of_nothing_leaves_nothing() -> None:
    """An individual without anything left adds zero."""
    cut = block_of([[5, 3]], None).shortened(np.array([0]), np.array([0]))
    assert (cut.left.tolist(), cut.norms_squared.tolist()) == ([[0.0], [0.0]], [0])


@pytest.mark.parametrize("entry", [18918, 18917, 12345])
def test_a_bound_just_below_a_large_norm_holds(entry: int) -> None:
    """The margin of the factor is more than what doubles round: the largest norms are where it matters."""
    left, right = [[entry] * 3], [[entry] * 3]
    for drawn in (right, None):
        block = block_of(left, drawn, peak=2**52)
        bound = block.norms_squared - 1
        assert (block.shortened(np.array([0]), bound).norms_squared <= bound).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norms_squared": np.array([1, 2])}, "one norm for each place"),
        ({"right": np.zeros((2, 2))}, "one norm for each place"),
        ({"touched": Touched(slice(0, 2), np.ones(2, dtype=np.bool_))}, "one norm for each place"),
        ({"peak": 2**53}, "below 2"),
        ({"peak": 0}, "below 2"),
    ],
)
def test_what_does_not_belong_together_is_refused(changes: dict[str, Any], message: str) -> None:
    """Each array is of the same individuals, and products stay within doubles."""
    with pytest.raises(ValueError, match=message):
        replace(block_of([[1, 2]], [[3]]), **changes)
