"""Finite mechanisms as two probability vectors, and what each costs by the accountings of the papers.

One vector is the law of the outcome while the individual is in the data, the other while it is not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from sparing_audit.laws import Doubles

__all__ = [
    "Mechanism",
    "concentrated_charge",
    "gaussian_charge",
    "leak",
    "one_sided_test",
    "randomised_response",
    "renyi_charge",
]

SUM_TOLERANCE = 1e-12
ORDER_STEP = 1.001
"""The factor between the orders at which a divergence is taken; a zCDP charge is at most this much too large."""
CHARGE_MIN = 1e-9
"""The smallest zCDP charge, far above the rounding of a divergence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """The laws of one outcome in both worlds. Raises ValueError where they are no laws on the same outcomes."""

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
        """The law that is tested for and the one against it: of "in" against "out", or the other way round."""
        return (self.p_in, self.p_out) if direction == "in" else (self.p_out, self.p_in)


def randomised_response(epsilon: float) -> Mechanism:
    """The truth with probability e^epsilon / (1 + e^epsilon), else the opposite."""
    truth = 1 / (1 + math.exp(-epsilon))
    return Mechanism(name=f"randomised response of {epsilon:g}", p_in=(truth, 1 - truth), p_out=(1 - truth, truth))


def leak(delta: float) -> Mechanism:
    """Shows an individual that is in the data with probability delta, and is silent otherwise."""
    return Mechanism(name=f"leak of {delta:g}", p_in=(delta, 1 - delta), p_out=(0.0, 1.0))


def one_sided_test(hit_in: float, hit_out: float) -> Mechanism:
    """Hits with one probability while the individual is in the data, and with another while it is not."""
    name = f"test of {hit_in:g} against {hit_out:g}"
    return Mechanism(name=name, p_in=(hit_in, 1 - hit_in), p_out=(hit_out, 1 - hit_out))


@cache
def renyi_charge(mechanism: Mechanism, order: float) -> float:
    """The Rényi divergence of an order above 1, of the direction in which it is larger."""
    return float(max(_divergences(mechanism, np.array([order]))))


@cache
def concentrated_charge(mechanism: Mechanism) -> float:
    """The smallest rho of which the mechanism is zCDP, rounded up by a thousandth and 1e-9 at most.

    A divergence grows with its order, so that between two orders D_a / a is at most the divergence of the larger over
    the smaller; beyond the last order even the largest loss is below the result.
    """
    loss_max = _loss_max(mechanism)
    if loss_max == math.inf:
        return math.inf
    least = max(CHARGE_MIN, float(_divergences(mechanism, np.array([ORDER_STEP]))[0]))
    steps = math.ceil(math.log(max(loss_max / least, 1)) / math.log(ORDER_STEP)) + 2
    orders: Doubles = np.power(ORDER_STEP, np.arange(steps + 1))
    return max(least, float(np.max(_divergences(mechanism, orders[1:]) / orders[:-1])))


def _loss_max(mechanism: Mechanism) -> float:
    """The largest privacy loss of an outcome, in either direction; infinite where one world alone has it."""
    losses = [
        abs(math.log(p) - math.log(q)) if min(p, q) > 0 else math.inf
        for p, q in zip(mechanism.p_in, mechanism.p_out, strict=True)
        if max(p, q) > 0
    ]
    return max(losses)


@cache
def gaussian_charge(mechanism: Mechanism) -> float:
    """Half the square of the smallest mu of which the mechanism is GDP, in rho.

    The trade-off curve is linear between its corners and that of a Gaussian is convex, so that the corners decide.
    The curve of the other direction is this one mirrored, with the same mu.
    """
    normal = NormalDist()
    mu = 0.0
    for missed, false in _corners(mechanism.p_in, mechanism.p_out):
        if min(missed, false) <= 0:
            return math.inf
        mu = max(mu, -normal.inv_cdf(false) - normal.inv_cdf(missed))
    return mu**2 / 2


def _corners(p_in: Sequence[float], p_out: Sequence[float]) -> list[tuple[float, float]]:
    """The two errors of the tests that name the outcomes of the largest ratios, but for the two trivial tests."""
    outcomes = [(p, q) for p, q in zip(p_in, p_out, strict=True) if max(p, q) > 0]
    outcomes.sort(key=lambda each: each[0] / each[1] if each[1] > 0 else math.inf, reverse=True)
    return [
        (math.fsum(p for p, _ in outcomes[cut:]), math.fsum(q for _, q in outcomes[:cut]))
        for cut in range(1, len(outcomes))
    ]


def _divergences(mechanism: Mechanism, orders: Doubles) -> Doubles:
    """The Rényi divergences of the orders, at each order of the direction in which it is larger."""
    if _loss_max(mechanism) == math.inf:
        return np.full(orders.shape, math.inf)
    found: list[Doubles] = []
    for direction in ("in", "out"):
        laws = mechanism.laws(direction)
        p, q = (np.array([x for x, y in zip(each, laws[0], strict=True) if y > 0]) for each in laws)
        terms = orders[:, None] * np.log(p) + (1 - orders[:, None]) * np.log(q)
        top = terms.max(axis=1)
        found.append((top + np.log(np.exp(terms - top[:, None]).sum(axis=1))) / (orders - 1))
    return np.maximum(found[0], found[1])
