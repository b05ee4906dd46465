"""The charges of finite mechanisms: the figures of the theory note, and the curves that they bound."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sparing_audit.laws import Doubles
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


@settings(max_examples=40)
@given(mechanisms(), mechanisms(), st.floats(0, 1))
def test_curves_and_tests_order_mechanisms_alike_and_a_kernel_leads_down(
    mechanism: Mechanism, drawn: Mechanism, share: float
) -> None:
    """Koskela et al. 2023, C.6: no larger divergence, no smaller error of any test, and then a randomisation.

    By eq. C.4 the largest difference of the divergences is that of the trade-off curves. Where it is zero, a stochastic
    matrix makes the other mechanism of this one; where it is not, none comes nearer than the difference allows.
    """
    kernel = np.array([drawn.p_in, drawn.p_out] * 2)[: len(mechanism.p_in)]
    made = _laws(mechanism) @ kernel
    for laws in (made, share * made + (1 - share) * _laws(drawn), _laws(drawn)):
        other = Mechanism(name="other", p_in=tuple(laws[0].tolist()), p_out=tuple(laws[1].tolist()))
        both = [_laws(each) for each in (mechanism, other)]
        levels = np.concatenate([p / q for p, q in both])
        false = np.concatenate([_false_alarms(each) for each in both])
        sticks, missed = ([of(each, at) for each in both] for of, at in ((_sticks, levels), (_missed, false)))
        for stick, miss in zip(sticks, missed, strict=True):
            assert stick == pytest.approx(1 - (np.multiply.outer(levels, false) + miss).min(axis=1), abs=1e-12)
        above = sticks[1] - sticks[0]
        assert above.max() == pytest.approx((missed[0] - missed[1]).max(), abs=1e-12)
        apart = _distance_by_kernel(*both)
        assert 2 * (above / np.maximum(1, levels)).max() - 1e-9 <= apart
        assert above.max() > 1e-12 or apart <= 1e-9
    assert _distance_by_kernel(_laws(mechanism), made) <= 1e-9


@pytest.mark.parametrize(
    ("p_in", "p_out"), [((0.5, 0.6), (0.5, 0.5)), ((1.0,), (0.5, 0.5)), ((-0.5, 1.5), (0.5, 0.5)), ((), ())]
)
def test_what_is_no_law_is_refused(p_in: tuple[float, ...], p_out: tuple[float, ...]) -> None:
    """Probabilities have the sum 1, and both worlds the same outcomes."""
    with pytest.raises(ValueError, match="wrong"):
        Mechanism(name="wrong", p_in=p_in, p_out=p_out)


def _laws(mechanism: Mechanism) -> Doubles:
    """The laws (2, k) with the individual and without it."""
    return np.array([mechanism.p_in, mechanism.p_out])


def _sticks(laws: Doubles, levels: Doubles) -> Doubles:
    """The hockey-stick divergences (levels,) of the first law from the second."""
    found: Doubles = np.maximum(laws[0] - levels[:, None] * laws[1], 0).sum(axis=1)
    return found


def _false_alarms(laws: Doubles) -> Doubles:
    """The probabilities (k + 1,) of a false alarm at the corners of the trade-off curve."""
    return np.cumsum([0, *laws[1][np.argsort(-laws[0] / laws[1])]])


def _missed(laws: Doubles, false: Doubles) -> Doubles:
    """The trade-off curve at some probabilities of a false alarm: linear between its corners."""
    hits = np.cumsum([0, *laws[0][np.argsort(-laws[0] / laws[1])]])
    found: Doubles = np.interp(false, _false_alarms(laws), 1 - hits)
    return found


def _distance_by_kernel(laws: Doubles, wanted: Doubles) -> float:
    """The least sum of absolute differences between the wanted laws (2, n) and what a stochastic matrix makes of these.

    A linear program in the kernel (k n), row by row, and the differences above and below (2 n each).
    """
    outcomes, new = laws.shape[1], wanted.shape[1]
    differences = np.eye(2 * new)
    images = np.hstack([np.kron(laws, np.eye(new)), differences, -differences])
    rows = np.hstack([np.kron(np.eye(outcomes), np.ones((1, new))), np.zeros((outcomes, 4 * new))])
    found = linprog(
        np.r_[np.zeros(outcomes * new), np.ones(4 * new)],
        A_eq=np.vstack([images, rows]),
        b_eq=np.r_[wanted.reshape(-1), np.ones(outcomes)],
    )
    assert found.fun is not None
    return found.fun
