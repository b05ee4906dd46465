"""Finite mechanisms as two probability vectors, and what each costs by the accountings of the papers.

One vector is the law of the outcome with the individual in the data, the other the law without it.
"""

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from sparing_audit.laws import Doubles

SUM_TOLERANCE = 1e-12
ORDER_STEP = 1.001
"""The factor between the orders at which a divergence is taken. A zCDP charge is too large by at most this factor."""
CHARGE_MIN = 1e-9
"""The smallest zCDP charge, far above the rounding of a divergence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """The laws of one outcome in both worlds. Raises ValueError unless both are laws on the same outcomes."""

    name: str
    p_in: tuple[float, ...]
    p_out: tuple[float, ...]

    def __post_init__(self) -> None:
        for law in (self.p_in, self.p_out):
            if min(law, default=-1) < 0 or abs(math.fsum(law) - 1) > SUM_TOLERANCE:
                raise ValueError(f"{self.name}: probabilities are not negative and have the sum 1, unlike {law}")
        if len(self.p_in) != len(self.p_out):
            raise ValueError(f"{self.name}: both worlds have the same outcomes")

    def laws(self, direction: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The law that an event favours, and the law of the other world; `direction` names the first of them."""
        return (self.p_in, self.p_out) if direction == "in" else (self.p_out, self.p_in)


def randomised_response(epsilon: float) -> Mechanism:
    """The truth with probability e^epsilon / (1 + e^epsilon), else the opposite."""
    truth = 1 / (1 + math.exp(-epsilon))
    return Mechanism(name=f"randomised response of {epsilon:g}", p_in=(truth, 1 - truth), p_out=(1 - truth, truth))


def leak(delta: float) -> Mechanism:
    """A mechanism that shows an individual in the data with probability delta, and shows nothing otherwise."""
    return Mechanism(name=f"leak of {delta:g}", p_in=(delta, 1 - delta), p_out=(0.0, 1.0))


def one_sided_test(hit_in: float, hit_out: float) -> Mechanism:
    """A test that hits with one probability if the individual is in the data, and with another if it is not."""
    name = f"test of {hit_in:g} against {hit_out:g}"
    return Mechanism(name=name, p_in=(hit_in, 1 - hit_in), p_out=(hit_out, 1 - hit_out))


@cache
def renyi_charge(mechanism: Mechanism, order: float) -> float:
    """The Rényi divergence of an order above 1, in the direction in which it is larger."""
    return float(max(_divergences(mechanism, np.array([order]))))


@cache
def concentrated_charge(mechanism: Mechanism) -> float:
    """The smallest rho for which the mechanism is zCDP, or up to 1.001 times that, and never below 1e-9.

    A divergence D_a grows with its order a, so that D_a / a is at most D_c / b for every a between b and c. Beyond the
    last order, even the largest loss divided by the order is below the result.
    """
    laws = _laws(mechanism)
    if laws.min() == 0:
        return math.inf
    loss_max = float(np.abs(np.log(laws[0] / laws[1])).max())
    least = max(CHARGE_MIN, float(_divergences(mechanism, np.array([ORDER_STEP]))[0]))
    steps = math.ceil(math.log(max(loss_max / least, 1)) / math.log(ORDER_STEP)) + 2
    orders: Doubles = np.power(ORDER_STEP, np.arange(steps + 1))
    return max(least, float(np.max(_divergences(mechanism, orders[1:]) / orders[:-1])))


@cache
def gaussian_charge(mechanism: Mechanism) -> float:
    """Half the square of the smallest mu for which the mechanism is GDP, in rho.

    The trade-off curve is linear between its corners and that of a Gaussian is convex, so that the corners decide: the
    tests that name the outcomes of the largest ratios. The curve of the other direction is this one mirrored, with the
    same mu.
    """
    laws, normal = _laws(mechanism), NormalDist()
    p, q = laws[:, np.argsort(-laws[0] / laws.sum(axis=0))]
    missed, false = np.cumsum(p[:0:-1])[::-1].tolist(), np.cumsum(q[:-1]).tolist()  # but for the two trivial tests
    mus = [
        -normal.inv_cdf(f) - normal.inv_cdf(m) if min(f, m) > 0 else math.inf
        for f, m in zip(false, missed, strict=True)
    ]
    return max([0.0, *mus]) ** 2 / 2


def _divergences(mechanism: Mechanism, orders: Doubles) -> Doubles:
    """The Rényi divergences of the orders, at each order of the direction in which it is larger."""
    laws = _laws(mechanism)
    if laws.min() == 0:
        return np.full(orders.shape, math.inf)
    p, q = np.log(laws)
    each, other = (orders[:, None] * a + (1 - orders[:, None]) * b for a, b in ((p, q), (q, p)))
    moments: Doubles = np.maximum(np.logaddexp.reduce(each, axis=1), np.logaddexp.reduce(other, axis=1))
    return moments / (orders - 1)


def _laws(mechanism: Mechanism) -> Doubles:
    """The laws (2, k) of both worlds on the outcomes that one of them has."""
    laws: Doubles = np.array([mechanism.p_in, mechanism.p_out])
    return laws[:, laws.any(axis=0)]
