"""The charges of finite mechanisms: the figures of the theory note, and the curves that they bound."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparing_audit.mechanisms import (
    Mechanism,
    concentrated_charge,
    gaussian_charge,
    leak,
    one_sided_test,
    randomised_response,
    renyi_charge,
)

INSIDE = st.floats(0.01, 0.99)


@st.composite
def mechanisms(draw: st.DrawFn) -> Mechanism:
    """Two laws on two to four outcomes."""
    count = draw(st.integers(2, 4))
    laws = [np.array(draw(st.lists(INSIDE, min_size=count, max_size=count))) for _ in range(2)]
    p_in, p_out = (tuple(map(float, law / law.sum())) for law in laws)
    return Mechanism(name="drawn", p_in=p_in, p_out=p_out)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_randomised_response_costs_what_the_papers_say(epsilon: float) -> None:
    """Epsilon tanh(epsilon / 2) of zCDP, rounded up; a mu of -2 Phi^-1(1 / (1 + e^epsilon))."""
    exact = epsilon * math.tanh(epsilon / 2)
    mu = -2 * NormalDist().inv_cdf(1 / (1 + math.exp(epsilon)))
    mechanism = randomised_response(epsilon)

    assert exact <= concentrated_charge(mechanism) <= 1.002 * exact
    assert gaussian_charge(mechanism) == pytest.approx(mu**2 / 2, rel=1e-9)


def test_a_leak_has_no_price() -> None:
    """One outcome is of one world alone."""
    assert concentrated_charge(leak(0.01)) == math.inf
    assert gaussian_charge(leak(0.01)) == math.inf
    assert renyi_charge(leak(0.01), 3) == math.inf


def test_equal_worlds_are_free() -> None:
    """Nothing is learned from them; a zCDP charge is rounded up to its smallest."""
    assert concentrated_charge(one_sided_test(0.3, 0.3)) <= 1e-9
    assert gaussian_charge(one_sided_test(0.3, 0.3)) == pytest.approx(0, abs=1e-12)


@given(mechanisms(), st.floats(1.001, 60))
def test_no_order_exceeds_the_concentrated_charge(mechanism: Mechanism, order: float) -> None:
    """Its definition: at each order, in both directions, the divergence is at most the order times rho."""
    assert renyi_charge(mechanism, order) <= order * concentrated_charge(mechanism) * (1 + 1e-9)


@settings(max_examples=25)
@given(mechanisms())
def test_some_order_comes_near_the_concentrated_charge(mechanism: Mechanism) -> None:
    """So the charge is no larger than it has to be."""
    charge = concentrated_charge(mechanism)
    assume(charge > 1e-6)
    orders = np.exp(np.linspace(math.log(1.0005), math.log(1e4), 1000))
    near = max(renyi_charge(mechanism, float(order)) / order for order in orders)
    assert near == pytest.approx(charge, rel=0.02)


@given(mechanisms(), st.floats(0, 1))
def test_the_gaussian_curve_lies_below_the_tests_and_touches_one(mechanism: Mechanism, share: float) -> None:
    """For each test that rejects by likelihood ratio, also mixtures of two, and in both directions."""
    normal, mu = NormalDist(), math.sqrt(2 * gaussian_charge(mechanism))
    for direction in ("in", "out"):
        p, q = (np.array(law) for law in mechanism.laws(direction))
        order = np.argsort(-p / q)
        false, missed = np.cumsum(q[order]), 1 - np.cumsum(p[order])
        slack = []
        for cut in range(len(p) - 1):
            mixed = (
                (1 - share) * false[cut] + share * false[cut + 1],
                (1 - share) * missed[cut] + share * missed[cut + 1],
            )
            for f, m in ((false[cut], missed[cut]), mixed):
                if 0 < f < 1:
                    slack.append(m - normal.cdf(normal.inv_cdf(1 - f) - mu))
        assert min(slack) >= -1e-9
        assert min(slack) <= 1e-9


@pytest.mark.parametrize(
    ("p_in", "p_out"), [((0.5, 0.6), (0.5, 0.5)), ((1.0,), (0.5, 0.5)), ((-0.5, 1.5), (0.5, 0.5)), ((), ())]
)
def test_what_is_no_law_is_refused(p_in: tuple[float, ...], p_out: tuple[float, ...]) -> None:
    """Probabilities have the sum 1, and both worlds the same outcomes."""
    with pytest.raises(ValueError, match="wrong"):
        Mechanism(name="wrong", p_in=p_in, p_out=p_out)
