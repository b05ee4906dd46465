"""Projections on counts: none negative, the nearest, and with the total that was asked for."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import nonnegative

VECTORS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)
TOTALS = st.floats(0, 1e7)


@given(VECTORS, TOTALS)
def test_a_projection_is_not_negative_and_has_the_total(values: list[float], total: float) -> None:
    """And equal or smaller numbers stay so."""
    found = nonnegative(values, total=total)

    assert min(found) >= 0
    assert math.fsum(found) == pytest.approx(total, rel=1e-9, abs=1e-6)
    order = sorted(range(len(values)), key=values.__getitem__)
    assert all(found[low] <= found[high] for low, high in pairwise(order))


@given(VECTORS, st.none() | TOTALS)
def test_a_projection_stays_where_it_is(values: list[float], total: float | None) -> None:
    """Projecting twice changes nothing but the last bits."""
    once = nonnegative(values, total=total)
    assert nonnegative(once, total=total) == pytest.approx(once, rel=1e-9, abs=1e-6)


@given(VECTORS, st.data())
def test_no_other_vector_is_nearer(values: list[float], data: st.DataObject) -> None:
    """No other without negative numbers and with the total; (v - p)(w - p) <= 0 says so for every other w."""
    other = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=len(values), max_size=len(values))))
    for total in (None, float(np.sum(other))):
        found = np.array(nonnegative(values, total=total))
        slack = 1e-12 * (1 + float(np.sum(np.abs(values))) + float(np.sum(other))) ** 2
        assert float((np.array(values) - found) @ (other - found)) <= slack


def test_the_law_of_the_nearest_rejects_scaling() -> None:
    """Clamping and scaling to the total keeps every other law, and is further away."""
    values, total = np.array([-2.0, 1.0, 5.0]), 4.0
    clamped = np.maximum(values, 0)
    scaled, found = clamped * total / clamped.sum(), np.array(nonnegative(values, total=total))

    assert found == pytest.approx([0, 0, 4])
    assert (values - scaled) @ (found - scaled) > 0.5
    assert np.linalg.norm(values - found) < np.linalg.norm(values - scaled)


def test_by_hand() -> None:
    """One amount is taken from every number that stays above 0."""
    assert nonnegative([3.0, -1.0, 0.0]) == (3, 0, 0)
    assert nonnegative([3.0, 1.0, -1.0], total=3.0) == (2.5, 0.5, 0)
    assert nonnegative([1.0, 1.0], total=4.0) == (2, 2)
    assert nonnegative([5.0, 7.0], total=0.0) == (0, 0)
    assert nonnegative([], total=0.0) == nonnegative([]) == ()


def test_a_projection_lowers_the_error_and_biases_small_numbers() -> None:
    """On 60 empty groups beside 4 full ones: nearer to the counted numbers, a clamped total too high by 24 sigma."""
    rng = np.random.default_rng(3)
    counted = np.array([400.0] * 4 + [0.0] * 60)
    noisy = counted + rng.normal(0, 20, (500, 64))
    projected = np.array([nonnegative(row, total=1600.0) for row in noisy])
    clamped = np.array([nonnegative(row) for row in noisy])
    errors = [float(np.mean(np.sum((rows - counted) ** 2, axis=1))) for rows in (noisy, clamped, projected)]

    assert errors[0] == pytest.approx(64 * 400, rel=0.02)
    assert errors[2] < errors[1] < 0.6 * errors[0]
    assert np.mean(clamped.sum(axis=1) - 1600) / 20 == pytest.approx(60 / math.sqrt(2 * math.pi), rel=0.03)
    assert np.mean(projected[:, :4]) < 400 - 10


@pytest.mark.parametrize(
    ("values", "total", "message"),
    [
        ([math.nan], None, "values must be finite"),
        ([1.0, math.inf], 1.0, "values must be finite"),
        ([1.0], -1.0, "total must be finite and not negative, got -1"),
        ([1.0], math.nan, "total must be finite and not negative, got nan"),
        ([], 1.0, "values must not be empty"),
    ],
)
def test_numbers_that_make_no_counts_are_refused(values: list[float], total: float | None, message: str) -> None:
    """The argument is named."""
    with pytest.raises(ValueError, match=message):
        nonnegative(values, total=total)
