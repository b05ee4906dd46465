"""One step's losses on the grid: nowhere below the true hockey-stick divergence, in both directions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.python.tests.research.hockey_sticks import REALS, hockey_stick
from sparing.research.loss_steps import MASS_ERROR, GridLosses, losses_of_step


def on_grid(losses: GridLosses, spacing: float, epsilon: float) -> float:
    """The hockey-stick divergence of what lies on the grid."""
    weights = np.maximum(-np.expm1(epsilon - spacing * losses.places), 0)
    return math.fsum((weights * losses.masses).tolist()) + losses.infinite


STEPS = st.tuples(st.floats(1e-3, 6), st.one_of(st.just(1.0), st.floats(1e-4, 0.999)), st.floats(1e-3, 0.1))


@given(STEPS, st.floats(-3, 20))
@settings(max_examples=40)
def test_never_below_the_truth_and_hardly_above(step: tuple[float, float, float], epsilon: float) -> None:
    """Above it by at most a fourth of h e^h times the mass beside epsilon; below it by a hundred roundings at most.

    And by what each cell gives for its roundings: MASS_ERROR of its normal tail, with mu / h cells to a deviation.
    """
    mu, rate, spacing = step
    rounding = 8 * MASS_ERROR * (mu / spacing + 1)
    for adding, losses in zip((False, True), losses_of_step(mu, rate=rate, spacing=spacing), strict=True):
        truth, found = hockey_stick(mu, rate, epsilon, adding=adding), on_grid(losses, spacing, epsilon)
        beside = float(losses.masses[np.abs(spacing * losses.places - epsilon) <= 1.001 * spacing].sum())
        assert found >= truth * (1 - REALS.mpf(2) ** -40) - REALS.mpf(2) ** -48
        assert found <= truth + spacing * math.exp(spacing) * beside / 4 + rounding


@given(STEPS)
@settings(max_examples=60)
def test_nothing_of_the_mass_is_lost(step: tuple[float, float, float]) -> None:
    """All of it is on the grid or infinite, and hardly any of it infinite; from each loss on it is no less."""
    mu, rate, spacing = step
    for losses in losses_of_step(mu, rate=rate, spacing=spacing):
        assert (losses.masses >= 0).all()
        assert math.fsum([*losses.masses.tolist(), losses.infinite]) == pytest.approx(1, abs=MASS_ERROR)
        assert 0 <= losses.infinite < 1e-32


def test_both_masses_of_a_cell_stay() -> None:
    """E e^-L under P is the mass of Q: the loss is moved to both sides, not up; and e^2 L is hardly larger."""
    mu, spacing = 0.5, 0.01
    for losses in losses_of_step(mu, rate=1.0, spacing=spacing):
        values = spacing * losses.places
        assert float(losses.masses @ np.exp(-values)) == pytest.approx(1, abs=1e-9)
        assert float(losses.masses @ np.exp(values)) == pytest.approx(math.exp(mu**2), rel=spacing**2)
        mean = float(losses.masses @ values)
        assert mu**2 / 2 < mean < mu**2 / 2 + spacing**2 / 8


@pytest.mark.parametrize("rate", [1.0, 0.01])
def test_far_tails_are_right_relative_to_themselves(rate: float) -> None:
    """The mass from a loss on, down to 1e-30: never below the truth by more than MASS_ERROR of itself."""
    mu, spacing = 0.5, 0.01
    losses, _ = losses_of_step(mu, rate=rate, spacing=spacing)
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        truth = hockey_stick(mu, rate, epsilon, adding=False)
        assert truth * (1 - REALS.mpf(MASS_ERROR)) <= on_grid(losses, spacing, epsilon)
        assert on_grid(losses, spacing, epsilon) <= truth * 1.02 + 2 * losses.infinite


def test_losses_of_adding_end() -> None:
    """Above -ln(1 - q) there is none."""
    removing, adding = losses_of_step(1.0, rate=0.25, spacing=0.01)
    assert float(removing.places[0] * 0.01) == pytest.approx(math.log(0.75), abs=0.011)
    assert float(adding.places[-1] * 0.01) == pytest.approx(-math.log(0.75), abs=0.011)
