"""The audit's curves against the table of the theory note, another library's numbers, and each other."""

import math
from collections.abc import Callable

import pytest
from dp_accounting.dp_event import ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sparing_audit.curves import (
    concentrated_delta,
    concentrated_rho,
    gaussian_delta,
    gaussian_mu,
    renyi_budget,
    renyi_delta,
)

EPSILONS = st.floats(0, 8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho_zcdp", "rho_gdp"),
    [
        (0.3, 1e-5, 0.003302986551, 0.003959027443),
        (1, 1e-5, 0.030556595198, 0.035925702327),
        (8, 1e-5, 1.229714525761, 1.387828976479),
        (1, 1e-6, 0.024355970360, 0.028014481913),
    ],
)
def test_the_budgets_are_those_of_the_table(epsilon: float, delta: float, rho_zcdp: float, rho_gdp: float) -> None:
    """Theory, section 2, to the digits printed there."""
    assert concentrated_rho(epsilon, delta) == pytest.approx(rho_zcdp, rel=1e-9)
    assert gaussian_mu(epsilon, delta) ** 2 / 2 == pytest.approx(rho_gdp, rel=1e-9)


@given(EPSILONS, st.floats(0.05, 6))
def test_a_gaussian_delta_is_the_gap_between_two_normal_tails(epsilon: float, mu: float) -> None:
    """P(L > eps) in one world less e^eps times that in the other, L ~ N(+-mu^2/2, mu^2)."""
    tails = norm.sf(epsilon, mu**2 / 2, mu) - math.exp(epsilon) * norm.sf(epsilon, -(mu**2) / 2, mu)
    assert gaussian_delta(epsilon, mu) == pytest.approx(tails, rel=1e-6, abs=1e-12)


@given(EPSILONS, st.floats(1e-3, 5))
def test_the_concentrated_delta_is_the_best_of_all_orders(epsilon: float, rho: float) -> None:
    """No order of a grid beats it, and some order comes near."""
    found = concentrated_delta(epsilon, rho)
    orders = [1 + math.exp(step / 50) for step in range(-600, 600)]
    others = [
        min(1.0, math.exp(min(0.0, (a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a))))
        for a in orders
    ]
    assert found <= min(others) * (1 + 1e-9)
    assert found == pytest.approx(min(others), rel=0.02)


@pytest.mark.parametrize(("epsilon", "rho"), [(1.0, 0.03), (2.0, 0.3), (0.5, 0.01)])
def test_another_library_has_the_same_concentrated_delta(epsilon: float, rho: float) -> None:
    """dp-accounting's, over many orders."""
    accountant = RdpAccountant(orders=[1 + step / 100 for step in range(5, 10_000)])
    accountant.compose(ZCDpEvent(rho))
    assert concentrated_delta(epsilon, rho) == pytest.approx(accountant.get_delta(epsilon), rel=1e-3)


@given(st.floats(0.1, 6), st.floats(1e-8, 0.4))
def test_the_budgets_are_rounded_down(epsilon: float, delta: float) -> None:
    """Each keeps the promise, and a little more does not. A Gaussian has more room than any zCDP."""
    mu, rho = gaussian_mu(epsilon, delta), concentrated_rho(epsilon, delta)

    assert gaussian_delta(epsilon, mu) <= delta < gaussian_delta(epsilon, mu * (1 + 1e-9))
    assert concentrated_delta(epsilon, rho) <= delta < concentrated_delta(epsilon, rho * (1 + 1e-9))
    assert rho < mu**2 / 2
    assert renyi_delta(epsilon, renyi_budget(epsilon, delta, 3.0), 3.0) == pytest.approx(delta)


@pytest.mark.parametrize("delta_of", [gaussian_delta, concentrated_delta])
def test_nothing_spent_promises_everything(delta_of: Callable[[float, float], float]) -> None:
    """Two equal worlds cannot be told apart, at any epsilon from 0."""
    assert delta_of(0.0, 0.0) == 0
    assert delta_of(1.0, 0.0) == 0
