"""The grid of noise multipliers and the counts over it: rounded up, and a function of own norms alone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing.research.noise_grid import CELLS_MAX, NoiseGrid, OwnSteps, grid_of_equal_ratios, grid_of_multipliers
from sparing.research.subsampled_rdp import MU_MAX, subsampled_divergences

GRID = grid_of_equal_ratios(1e-3, 1.0, intervals=63)
NORMS = st.one_of(st.just(0.0), st.just(-0.0), st.floats(0, 3.0), st.sampled_from([3 * mu for mu in GRID.mus]))


@given(st.lists(NORMS.filter(lambda norm: norm / 3 <= 1), min_size=1, max_size=30))
def test_a_cell_is_the_first_that_is_not_below(norms: list[float]) -> None:
    """Exactly: what it is accounted for is at least norm / sigma, and the cell before is below the quotient."""
    cells = GRID.cells(np.array(norms), sigma=3.0)
    for norm, cell in zip(norms, cells.tolist(), strict=True):
        assert Fraction(float(GRID.charged[cell])) >= Fraction(norm) / 3
        assert (cell == 0) == (norm == 0)
        assert cell <= 1 or GRID.mus[cell - 2] < norm / 3


def test_the_mus_themselves_and_the_doubles_beside_them() -> None:
    """Also of a grid with many mus within a key of doubles."""
    for grid in (GRID, grid_of_multipliers(1.0, 200.0, intervals=4000)):
        mus = np.array(grid.mus)
        places = np.arange(1, len(mus) + 1)
        assert (grid.cells(mus, sigma=1.0) == places).all()
        assert (grid.cells(np.nextafter(mus, 0), sigma=1.0) == places).all()
        assert (grid.cells(np.nextafter(mus[:-1], 1), sigma=1.0) == places[1:]).all()
    assert GRID.cells(np.array([0.0, 5e-324, 1e-310]), sigma=10.0).tolist() == [0, 1, 1]


@given(st.floats(1e-3, 1e6), st.floats(0, 1))
def test_a_quotient_that_is_rounded_down_is_still_paid(sigma: float, share: float) -> None:
    """A norm that is the largest double with the quotient of a mu: the cell is accounted for above it."""
    mu = GRID.mus[int(share * 62)]
    norm = mu * sigma
    while math.nextafter(norm, math.inf) / sigma <= mu:
        norm = math.nextafter(norm, math.inf)
    while norm / sigma > mu:
        norm = math.nextafter(norm, 0)
    (cell,) = GRID.cells(np.array([norm]), sigma=sigma).tolist()
    assert Fraction(float(GRID.charged[cell])) >= Fraction(norm) / Fraction(sigma)


def test_the_two_grids() -> None:
    """The paper's, at equal distances of the multiplier, and one of equal ratios; both end where they should."""
    paper = grid_of_multipliers(2.0, 50.0, intervals=48)
    assert [1 / mu for mu in paper.mus] == pytest.approx(range(50, 1, -1))
    assert GRID.mus[0] == pytest.approx(1e-3)
    assert GRID.mus[-1] == 1.0
    assert np.diff(np.log(GRID.mus)) == pytest.approx(np.full(63, math.log(1000) / 63))


def test_counts_and_divergences() -> None:
    """Each step in its own cell, and the sum over them; at least that of the own norms, and at most a cell's ratio."""
    rng = np.random.default_rng(7)
    own, orders = OwnSteps(GRID, 2500), (1.5, 2, 8, 32)
    exact = np.zeros((2500, 4))
    for _ in range(20):
        norms = rng.uniform(0, 0.5, 2500)
        norms[::5] = 0
        own.record(norms, sigma=2.0)
        exact += subsampled_divergences(norms / 2.0, rate=0.01, orders=orders)
    found = own.divergences(rate=0.01, orders=orders)
    assert (own.counts.sum(axis=1) == 20).all()
    assert (found[::5] == 0).all()
    assert (found >= exact * (1 - 1e-12)).all()
    assert (found <= exact * math.exp(2 * math.log(1000) / 63) * 1.1 + 1e-9).all()


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=6), st.floats(0, 1))
@settings(max_examples=30)
def test_an_account_is_a_function_of_own_norms(steps: list[list[float]], other: float) -> None:
    """Bit by bit: whatever the norms of others are, and however many there are."""
    several, changed, alone = OwnSteps(GRID, 4), OwnSteps(GRID, 4), OwnSteps(GRID, 1)
    for norms in steps:
        several.record(np.array(norms), sigma=1.0)
        changed.record(np.array([norms[0], other, other, other]), sigma=1.0)
        alone.record(np.array(norms[:1]), sigma=1.0)
    rows = [each.divergences(rate=0.1, orders=(1.5, 4, 16))[0].tobytes() for each in (several, changed, alone)]
    assert rows[0] == rows[1] == rows[2]


def test_what_is_refused() -> None:
    """Nothing is counted where it raises."""
    for mus in ((), (0.5, 0.5), (0.0, 0.5), (0.5, 0.4), (MU_MAX,), tuple(np.arange(1, CELLS_MAX + 2) / CELLS_MAX)):
        with pytest.raises(ValueError, match="a grid has"):
            NoiseGrid(tuple(mus))
    for least, greatest, intervals in ((0.0, 1.0, 3), (1.0, 1.0, 3), (0.5, 1.0, 0)):
        with pytest.raises(ValueError, match="interval"):
            grid_of_equal_ratios(least, greatest, intervals=intervals)
    with pytest.raises(ValueError, match="interval"):
        grid_of_multipliers(0.01, 1.0, intervals=3)
    own = OwnSteps(GRID, 2)
    for norms, sigma in (
        ([0.1, 1.1], 1.0),
        ([-0.1, 0.1], 1.0),
        ([math.nan, 0.1], 1.0),
        ([0.1, 0.1], 0.0),
        ([0.1], 1.0),
    ):
        with pytest.raises(ValueError, match=r"norms|sigma"):
            own.record(np.array(norms), sigma=sigma)
    assert not own.counts.any()
