"""Rényi divergences of Poisson-subsampled Gaussian noise: against integrals, another accountant and closed forms."""

import math
from typing import Final

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant, compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing.research.subsampled_rdp import (
    MU_MAX,
    RATE_MIN,
    SAMPLED_ORDER_MAX,
    epsilons_of_divergences,
    refuse_mus,
    subsampled_divergences,
)

REALS: Final = mpmath.MPContext()
REALS.dps = 50
MUS = st.one_of(st.just(0.0), st.floats(1e-6, 3))
RATES = st.one_of(st.sampled_from((0.0, 1.0)), st.floats(1e-6, 0.999))
ORDERS = st.one_of(st.floats(1.01, 12), st.integers(2, 64).map(float))


def one(mu: float, rate: float, order: float) -> float:
    """The divergence of one step."""
    return float(subsampled_divergences(np.array([mu]), rate=rate, orders=[order])[0, 0])


def by_integral(mu: float, rate: float, order: float, *, adding: bool = False) -> mpmath.mpf:
    """The divergence by its definition, at 50 digits: of the mixture from N(0, 1), or the other way round."""
    m, q, a = REALS.mpf(mu), REALS.mpf(rate), REALS.mpf(order)

    def density(t: mpmath.mpf) -> mpmath.mpf:
        ratio = 1 - q + q * REALS.exp(m * t - m * m / 2)
        return REALS.exp(-t * t / 2) * (ratio ** (1 - a) if adding else ratio**a)

    kink = m / 2 + REALS.log(1 / q - 1) / m
    ends = sorted({-40, -10, 0, 10, 40, a * m - 10, a * m, a * m + 10, a * m + 40, kink})
    whole = REALS.quad(density, ends) / REALS.sqrt(2 * REALS.pi)
    return REALS.log(whole) / (a - 1)


@pytest.mark.parametrize(
    ("mu", "rate", "order"),
    [
        (1.0, 0.01, 2.0),
        (0.5, 0.01, 2.5),
        (0.25, 0.1, 10.9),
        (1.0, 0.01, 1.1),
        (0.01, 0.01, 1.25),
        (1e-3, 1e-3, 3.7),
        (3.0, 0.2, 5.5),
        (2.0, 1e-6, 7.5),
        (1.0, 0.99, 1.5),
        (1.0, 0.5, 1.01),
    ],
)
def test_the_definition_to_twelve_digits(mu: float, rate: float, order: float) -> None:
    """Relative to the divergence itself, be it as small as 1e-12."""
    assert one(mu, rate, order) == pytest.approx(float(by_integral(mu, rate, order)), rel=1e-12, abs=0)


def test_an_order_where_the_divergence_is_no_small_number() -> None:
    """The Gaussians of higher powers dominate: terms of e^5000 are added as logarithms, and far below 0 too."""
    assert one(5.0, 0.01, 20.5) == pytest.approx(float(by_integral(5.0, 0.01, 20.5)), rel=1e-12)
    assert one(10.0, 1e-3, 40.0) == pytest.approx(20 * 100.0 + math.log(1e-3) * 40 / 39, rel=1e-12)
    assert one(MU_MAX, 1e-3, 40.5) == pytest.approx(40.5 * 200.0 + math.log(1e-3) * 40.5 / 39.5, rel=1e-12)


@pytest.mark.parametrize(("mu", "rate"), [(0.5, 0.01), (0.25, 0.1), (1.0, 0.01), (1.0, 0.001), (2.0, 0.5)])
def test_another_accountant_agrees_at_whole_orders(mu: float, rate: float) -> None:
    """dp-accounting to 1e-12 of A: it adds numbers near 1, so that it has no more digits of a small divergence."""
    orders = [2, 3, 4, 8, 16, 32, 64, 128]
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(1 / mu))
    theirs = RdpAccountant(orders).compose(event)._rdp
    ours = subsampled_divergences(np.array([mu]), rate=rate, orders=orders)[0]
    for order, mine, other in zip(orders, ours, theirs, strict=True):
        assert abs(mine - other) <= 1e-12 * max(mine, 1 / (order - 1))


@pytest.mark.parametrize(("order", "excess"), [(1.1, 1e-2), (2.5, 1e-5)])
def test_another_accountant_is_above_at_orders_between(order: float, excess: float) -> None:
    """dp-accounting adds the absolute values of the series' negative terms; the integral says that we are right."""
    event = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
    (theirs,) = RdpAccountant([order]).compose(event)._rdp
    assert one(1.0, 0.01, order) * (1 + excess) < theirs
    assert one(1.0, 0.01, order) == pytest.approx(float(by_integral(1.0, 0.01, order)), rel=1e-12)


@pytest.mark.parametrize(
    ("mu", "rate", "values"),
    [
        (0.5, 0.01, (2.84021383242e-5, 5.71558073717e-5, 1.1575614793e-4, 2.3762401964e-4, 5.02894646863e-4)),
        (0.25, 0.1, (6.44736701796e-4, 0.00130489544992, 0.0026744986198, 0.00563551805813, 0.0127202234469)),
    ],
)
def test_values_that_were_computed_elsewhere(mu: float, rate: float, values: tuple[float, ...]) -> None:
    """Orders 2, 4, 8, 16 and 32, to the digits that are printed."""
    found = subsampled_divergences(np.array([mu]), rate=rate, orders=(2, 4, 8, 16, 32))[0]
    assert found == pytest.approx(np.array(values), rel=1e-11)


@pytest.mark.parametrize(("mu", "rate", "order"), [(1.0, 0.01, 2.0), (0.5, 0.3, 5.5), (2.0, 0.1, 1.5)])
def test_adding_an_individual_costs_no_more(mu: float, rate: float, order: float) -> None:
    """Theorem 5: what is returned, for removing it, is the larger one."""
    assert by_integral(mu, rate, order, adding=True) < one(mu, rate, order)


@given(MUS, RATES, ORDERS)
@settings(max_examples=60)
def test_bounds_and_ends(mu: float, rate: float, order: float) -> None:
    """From q^2 times the chi-square at order 2 to that of the full batch; 0 where nothing is sampled, or there."""
    found, full = one(mu, rate, order), order * mu * mu / 2
    assert 0 <= found <= full * (1 + 1e-12)
    if rate == 0 or mu == 0:
        assert found == 0
    elif rate == 1:
        assert found == full
    assert one(mu, rate, 2.0) == pytest.approx(math.log1p(rate**2 * math.expm1(mu**2)), rel=1e-12)


@given(st.floats(1e-3, 3), st.floats(1e-3, 0.9), st.integers(2, 40))
@settings(max_examples=40)
def test_the_sum_and_the_integral_meet(mu: float, rate: float, order: int) -> None:
    """Whole orders are computed otherwise than the orders beside them, and the divergence is smooth in its order."""
    below, at, above = (one(mu, rate, order + step) for step in (-1e-7, 0, 1e-7))
    assert below <= above
    assert at == pytest.approx((below + above) / 2, rel=1e-11)


@given(st.lists(MUS, min_size=1, max_size=9), RATES, st.lists(ORDERS, min_size=1, max_size=3), st.data())
@settings(max_examples=40)
def test_a_row_is_a_function_of_its_own_mu(
    mus: list[float], rate: float, orders: list[float], data: st.DataObject
) -> None:
    """Bit by bit: alone, and among any others."""
    each = data.draw(st.integers(0, len(mus) - 1))
    together = subsampled_divergences(np.array(mus), rate=rate, orders=orders)
    alone = subsampled_divergences(np.array([mus[each]]), rate=rate, orders=orders)
    assert together[each].tobytes() == alone[0].tobytes()


def test_many_individuals_are_taken_in_blocks() -> None:
    """More than one temporary array can hold, to the same bits."""
    mus = np.linspace(0, 1, 3000)
    together = subsampled_divergences(mus, rate=0.01, orders=[1000, 1.5])
    for row in (0, 1047, 1048, 2999):
        assert (together[row] == subsampled_divergences(mus[row : row + 1], rate=0.01, orders=[1000, 1.5])[0]).all()
    assert (np.diff(together, axis=0) >= 0).all()


def test_epsilons_by_the_optimal_conversion() -> None:
    """The conversion is that of dp-accounting; 0 where that is below 0."""
    orders = [1.5, 2, 4, 8, 16, 32, 64]
    divergences = 1000 * subsampled_divergences(np.array([1e-4, 0.5, 1.0]), rate=0.01, orders=orders)
    found = epsilons_of_divergences(divergences, orders=orders, delta=1e-5)
    assert found == pytest.approx([compute_epsilon(orders, list(each), 1e-5)[0] for each in divergences], rel=1e-12)
    assert epsilons_of_divergences(divergences[:1], orders=orders, delta=0.9).tolist() == [0]


def test_what_is_refused() -> None:
    """Each by the name of its argument."""
    mus = np.array([0.5])
    for wrong in (-1.0, MU_MAX * 1.01, math.nan):
        with pytest.raises(ValueError, match="mu"):
            refuse_mus(np.array([0.5, wrong]))
    for rate in (-0.1, 1.1, RATE_MIN / 2, math.nan):
        with pytest.raises(ValueError, match="rate"):
            subsampled_divergences(mus, rate=rate, orders=[2])
    for order in (1.0, 0.5, SAMPLED_ORDER_MAX + 1, math.nan):
        with pytest.raises(ValueError, match="order"):
            subsampled_divergences(mus, rate=0.1, orders=[2, order])
    for delta in (0.0, 1.0):
        with pytest.raises(ValueError, match="delta"):
            epsilons_of_divergences(np.zeros((1, 1)), orders=[2], delta=delta)
