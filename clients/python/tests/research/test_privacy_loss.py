"""Compositions by privacy loss distributions: against exact curves and another accountant, never below the truth."""

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from clients.python.tests.research.hockey_sticks import REALS, hockey_stick
from service.accounting.accountings import GAUSSIAN
from service.accounting.conversions import delta_of_mu
from service.core.charge import UNITS_PER_RHO
from sparing.research.loss_steps import losses_of_step
from sparing.research.privacy_loss import (
    DELTA_MIN,
    POINTS_MAX,
    STEPS_MAX,
    ComposedLosses,
    Steps,
    composed_losses,
    delta_of_steps,
    epsilon_of_steps,
    losses_of,
    spacing_of,
)


def exact_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-GDP, by the exact curve."""
    low, high = 0.0, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of_mu(middle, mu) <= delta else (middle, high)
    return high


@given(
    st.lists(st.tuples(st.floats(1e-3, 1), st.integers(1, 300)), min_size=1, max_size=3),
    st.sampled_from((1e-3, 1e-5, 1e-9, 1e-14)),
)
@settings(max_examples=15, deadline=None)
def test_full_batches_are_gaussian_dp(steps: list[tuple[float, int]], delta: float) -> None:
    """From above, and within 1e-3 of the exact curve: of any mus, each as often as any."""
    mu = math.sqrt(math.fsum(each * each * count for each, count in steps))
    found = epsilon_of_steps([Steps(each, 1.0, count) for each, count in steps], delta=delta)
    truth = exact_epsilon(mu, delta)
    assert truth * (1 - 1e-9) - 1e-12 <= found <= truth + 1e-3


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9, 1e-15])
def test_ten_thousand_steps(delta: float) -> None:
    """They are one Gaussian with a hundred times the mu."""
    found = epsilon_of_steps([Steps(0.01, 1.0, 10_000)], delta=delta)
    units = UNITS_PER_RHO // 2
    assert 0 <= found - GAUSSIAN.epsilon_of_units(units, Decimal(str(delta))) <= 1e-3


@pytest.mark.parametrize(
    ("mu", "rate", "count", "delta"),
    [
        (1.0, 0.01, 1000, 1e-5),
        (0.5, 0.01, 10_000, 1e-5),
        (1.0, 0.001, 10_000, 1e-6),
        (0.1, 0.1, 1000, 1e-5),
        (0.25, 0.5, 10, 1e-5),
        (0.5, 0.01, 100, 1e-8),
    ],
)
def test_another_accountant_agrees_about_subsampled_steps(mu: float, rate: float, count: int, delta: float) -> None:
    """Within 1e-3 of dp-accounting's upper estimate, and not below its lower one at the distance that it can take."""

    def theirs(spacing: float, *, is_above: bool) -> float:
        distribution = privacy_loss_distribution.from_gaussian_mechanism(
            1 / mu,
            sampling_prob=rate,
            value_discretization_interval=spacing,
            pessimistic_estimate=is_above,
            use_connect_dots=is_above,
        )
        return float(distribution.self_compose(count).get_epsilon_for_delta(delta))

    found = epsilon_of_steps([Steps(mu, rate, count)], delta=delta)
    assert found == pytest.approx(theirs(1e-4, is_above=True), abs=1e-3)
    assert found >= theirs(1e-4, is_above=False)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.3), (2.0, 0.01), (0.5, 0.999)])
def test_one_subsampled_step_is_its_closed_form(mu: float, rate: float, epsilon: float) -> None:
    """In both directions; delta from above, to what the grid adds."""
    for adding, losses in zip((False, True), composed_losses([Steps(mu, rate, 1)], delta=1e-6), strict=True):
        truth, found = hockey_stick(mu, rate, epsilon, adding=adding), losses.delta(epsilon)
        assert truth <= found <= truth + losses.spacing**2 + losses.added(epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.3), (2.0, 0.1), (0.5, 1.0)])
def test_no_event_is_likelier_than_the_definition_of_dp_allows(mu: float, rate: float, epsilon: float) -> None:
    """P(S) <= e^epsilon Q(S) + delta for one step, in both directions, and for some S with nearly no more.

    The likelihood ratio rises with the output, so that of all events half-lines have the largest ratios. Between those
    that are looked at the largest excess lies at most a slope of the densities, 1/4 each, times the step's square.
    """
    at, step = np.linspace(-8, 12, 2001, retstep=True)
    plain = stats.norm.cdf(at)
    mixed = rate * stats.norm.cdf(at - mu) + (1 - rate) * plain
    excesses = (1 - mixed) - math.exp(epsilon) * (1 - plain), plain - math.exp(epsilon) * mixed
    for excess, losses in zip(excesses, composed_losses([Steps(mu, rate, 1)], delta=1e-6), strict=True):
        most = max(excess.max(), 0.0)
        missed = (1 + math.exp(epsilon)) / 4 * step**2 / 8
        assert most <= losses.delta(epsilon) <= most + missed + losses.spacing**2 + losses.added(epsilon)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_subsampled_steps_by_an_integral(epsilon: float) -> None:
    """Another way to the composition: the second step's closed form at what the first one's loss leaves."""
    mu, rate = 1.0, 0.2

    def left(x: mpmath.mpf) -> mpmath.mpf:
        ratio = 1 - rate + rate * REALS.exp(mu * x - mu * mu / 2)
        density = REALS.exp(-x * x / 2) / REALS.sqrt(2 * REALS.pi) * ratio
        return density * hockey_stick(mu, rate, float(epsilon - REALS.log(ratio)), adding=False)

    truth = REALS.quad(left, [-12, -4, 0, 2, 4, 8, 14], maxdegree=5)
    removing, _ = composed_losses([Steps(mu, rate, 2)], delta=float(truth))
    assert truth * (1 - REALS.mpf(1e-9)) <= removing.delta(epsilon) <= truth + 1e-4
    several = composed_losses([Steps(mu, rate, 1), Steps(mu, rate, 1)], delta=float(truth))[0]
    assert several.delta(epsilon) == pytest.approx(removing.delta(epsilon), rel=1e-9)


@given(st.floats(0.05, 1), st.floats(0.01, 1), st.integers(1, 200), st.sampled_from((1e-3, 1e-6, 1e-10)))
@settings(max_examples=15, deadline=None)
def test_there_and_back_and_more_steps_cost_more(mu: float, rate: float, count: int, delta: float) -> None:
    """Delta at epsilon is the delta; Plancherel's product is the sum; less noise and more steps cost no less."""
    removing, adding = composed_losses([Steps(mu, rate, count)], delta=delta)
    for each in (removing, adding):
        epsilon = each.epsilon(delta)
        assert each.delta(epsilon) <= delta
        assert epsilon == 0 or each.delta(epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)
        assert each.delta_by_plancherel(epsilon) == pytest.approx(each.delta(epsilon), rel=1e-6, abs=1e-12)
    whole = epsilon_of_steps([Steps(mu, rate, count)], delta=delta)
    slack = 1e-3 + 1e-3 * whole
    assert epsilon_of_steps([Steps(mu, rate, count + 1)], delta=delta) >= whole - slack
    assert epsilon_of_steps([Steps(mu * 1.05, rate, count)], delta=delta) >= whole - slack


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
def test_delta_at_an_epsilon(epsilon: float) -> None:
    """A full batch is compared with the exact curve: from above, and hardly."""
    truth = float(delta_of_mu(epsilon, 0.5))
    found = delta_of_steps([Steps(0.05, 1.0, 100)], epsilon=epsilon)
    assert truth <= found <= truth * 1.01 + 1e-15


def test_ends() -> None:
    """No step costs nothing; a delta that each loss is within needs no epsilon; and none is told above 600."""
    assert epsilon_of_steps([], delta=1e-5) == 0
    assert delta_of_steps([], epsilon=1.0) == 0
    assert epsilon_of_steps([Steps(1e-3, 1.0, 1)], delta=0.5) == 0
    assert epsilon_of_steps([Steps(20.0, 1.0, 10)], delta=1e-5) == math.inf
    assert delta_of_steps([Steps(1e-3, 1.0, 1)], epsilon=500.0) < 1e-14
    assert composed_losses([Steps(20.0, 1.0, 30)], delta=1e-20)[0].delta(0.0) == 1.0
    far = composed_losses([Steps(20.0, 1.0, 2)], delta=1e-5)[0]
    assert far.delta(0.0) == 1.0
    assert far.epsilon(1e-5) == pytest.approx(exact_epsilon(20 * math.sqrt(2), 1e-5), abs=1e-2)


def test_points_are_bounded() -> None:
    """The steps are so many that the spacing is doubled: never below the truth, and less near to it."""
    steps = Steps(0.1, 1.0, 1_000_000)
    removing, _ = composed_losses([steps._replace(mu=0.01)], delta=1e-5)
    assert len(removing.masses) <= POINTS_MAX
    found, truth = removing.epsilon(1e-5), exact_epsilon(10.0, 1e-5)
    assert truth <= found <= truth * 1.001
    assert removing.spacing > spacing_of([steps._replace(mu=0.01)])


def test_a_transform_of_something_else_is_an_error() -> None:
    """The check of Plancherel is one."""
    removing, _ = composed_losses([Steps(0.5, 0.1, 10)], delta=1e-5)
    assert removing.epsilon(1e-5) > 0
    wrong = {each.name: getattr(removing, each.name) for each in dataclasses.fields(removing) if each.init}
    with pytest.raises(ArithmeticError, match="transform"):
        ComposedLosses(**{**wrong, "transform": wrong["transform"] * 1.01}).epsilon(1e-5)


def test_what_is_added_is_stated() -> None:
    """Beyond the window, infinite, and rounding: a hundred-thousandth of delta in all, and each of them there.

    The largest sum within the window is as likely as Chernoff's bound says at most, and the bound is part of it; the
    rounding of 10,000 powers is at least that of their number, where weights are near to 1.
    """
    for steps in (Steps(0.01, 1.0, 10_000), Steps(0.5, 0.01, 10_000)):
        for each in composed_losses([steps], delta=1e-5):
            assert 0 < each.added(each.epsilon(1e-5)) < 1e-10
            infinite = sum(losses.infinite for losses in losses_of(steps.mu, steps.rate, each.spacing)) * steps.times
            top = each.spacing * (each.first + len(each.masses))
            assert each.beyond > infinite
            assert each.beyond > (hockey_stick(1.0, 1.0, top, adding=False) if steps.rate == 1 else 0)
    removing, _ = composed_losses([Steps(0.01, 1.0, 10_000)], delta=1e-5)
    assert removing.added(1.0) - removing.beyond > float(Fraction(10_000 * 7, 2**53))


def test_infinite_losses_count_once_for_each_step() -> None:
    """The mass that a step has beyond its grid, as often as the step."""
    (losses, _) = losses_of_step(0.5, rate=1.0, spacing=0.01)
    assert losses.infinite > 1e-33
    one = composed_losses([Steps(20.0, 1.0, 2)], delta=1e-5)[0]
    assert one.beyond >= 2 * losses_of(20.0, 1.0, one.spacing)[0].infinite > 0


def test_what_is_refused() -> None:
    """By name."""
    for steps in ([], [Steps(0.0, 1.0, 1)], [Steps(21.0, 1.0, 1)], [Steps(1.0, 0.0, 1)], [Steps(1.0, 1.1, 1)]):
        with pytest.raises(ValueError, match=r"step|rate"):
            composed_losses(steps, delta=1e-5)
    for count in (0, STEPS_MAX + 1):
        with pytest.raises(ValueError, match="count"):
            epsilon_of_steps([Steps(1.0, 1.0, count)], delta=1e-5)
    for delta in (0.0, DELTA_MIN / 2, 1.0):
        with pytest.raises(ValueError, match="delta"):
            epsilon_of_steps([Steps(1.0, 1.0, 1)], delta=delta)
    with pytest.raises(ValueError, match="epsilon"):
        delta_of_steps([Steps(1.0, 1.0, 1)], epsilon=-1.0)
    removing, _ = composed_losses([Steps(1.0, 1.0, 1)], delta=1e-5)
    for epsilon in (-1e-9, 601.0):
        with pytest.raises(ValueError, match="epsilon"):
            removing.delta(epsilon)
    assert np.isfinite(removing.sums).all()
