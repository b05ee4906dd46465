"""Each individual's epsilon by the losses of its own steps: above the truth, near to it, and its own alone."""

import math
from decimal import Decimal

import numpy as np
import pytest

from service.accounting.accountings import GAUSSIAN
from service.core.charge import UNITS_PER_RHO
from sparing.research.noise_grid import OwnSteps, grid_of_equal_ratios, grid_of_multipliers
from sparing.research.own_losses import epsilons_of_own_steps
from sparing.research.privacy_loss import Steps, epsilon_of_steps
from sparing.research.subsampled_rdp import epsilons_of_divergences

STEPS, DELTA = 200, 1e-6
PAPER = grid_of_multipliers(2.0, 20.0, intervals=12)
FEW = grid_of_equal_ratios(0.05, 0.5, intervals=8)


def recorded(individuals: int) -> OwnSteps:
    """Individuals with norms up to their own share of the clip; the first has none."""
    rng = np.random.default_rng(11)
    own = OwnSteps(PAPER, individuals)
    for _ in range(STEPS):
        own.record(rng.uniform(0, 5, individuals) * np.linspace(0, 1, individuals), sigma=10.0)
    return own


@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_as_the_composition_of_the_same_steps(rate: float) -> None:
    """By another spacing, window and product; within 1e-3, and none for an individual without a step."""
    own = recorded(4)
    found = epsilons_of_own_steps(own, rate=rate, steps_max=STEPS, delta=DELTA)
    assert found[0] == 0
    for counts, epsilon in zip(own.counts[1:], found[1:], strict=True):
        steps = [
            Steps(float(own.grid.charged[cell]), rate, int(counts[cell])) for cell in np.flatnonzero(counts) if cell
        ]
        assert epsilon == pytest.approx(epsilon_of_steps(steps, delta=DELTA), abs=1e-3)


def test_not_below_the_own_norms_and_below_all_orders() -> None:
    """Full batches: the exact epsilon of the own mus, before they were rounded up; and Rényi orders say more."""
    own, rng = OwnSteps(FEW, 3), np.random.default_rng(5)
    squares = np.zeros(3)
    for _ in range(20):
        norms = rng.uniform(0.1, 1, 3)
        own.record(norms, sigma=2.0)
        squares += (norms / 2) ** 2
    found = epsilons_of_own_steps(own, rate=1.0, steps_max=20, delta=DELTA)
    orders = [1 + each / 4 for each in range(1, 100)]
    above = epsilons_of_divergences(own.divergences(rate=1.0, orders=orders), orders=orders, delta=DELTA)
    for epsilon, square, by_orders in zip(found, squares, above, strict=True):
        exact = epsilon_of_steps([Steps(math.sqrt(square), 1.0, 1)], delta=DELTA)
        assert exact - 1e-3 < epsilon < by_orders
        assert epsilon < exact * FEW.mus[1] / FEW.mus[0]


def test_an_individuals_epsilon_is_its_own() -> None:
    """Bit by bit, among others and alone, and equal for equal counts."""
    own = recorded(5)
    own.counts[1] = own.counts[3]
    together = epsilons_of_own_steps(own, rate=0.05, steps_max=STEPS, delta=DELTA)
    for row in (1, 4):
        alone = OwnSteps(PAPER, 1)
        alone.counts[:] = own.counts[row]
        (epsilon,) = epsilons_of_own_steps(alone, rate=0.05, steps_max=STEPS, delta=DELTA)
        assert epsilon.tobytes() == together[row].tobytes()
    assert together[1] == together[3]


def test_points_are_bounded() -> None:
    """A grid for so many steps that the spacing is doubled still tells an epsilon that is not below the truth."""
    own = OwnSteps(grid_of_equal_ratios(0.005, 0.01, intervals=1), 1)
    own.counts[0, 2] = 300_000
    (found,) = epsilons_of_own_steps(own, rate=1.0, steps_max=300_000, delta=1e-5)
    exact = GAUSSIAN.epsilon_of_units(15 * UNITS_PER_RHO, Decimal("1e-5"))
    assert exact <= found <= exact * 1.001


def test_what_is_refused() -> None:
    """More steps than were stated, and what no accountant takes."""
    own = recorded(2)
    with pytest.raises(ValueError, match="more than 199 steps"):
        epsilons_of_own_steps(own, rate=0.05, steps_max=STEPS - 1, delta=DELTA)
    with pytest.raises(ValueError, match="rate"):
        epsilons_of_own_steps(own, rate=1.5, steps_max=STEPS, delta=DELTA)
    with pytest.raises(ValueError, match="delta"):
        epsilons_of_own_steps(own, rate=0.05, steps_max=STEPS, delta=1.0)
