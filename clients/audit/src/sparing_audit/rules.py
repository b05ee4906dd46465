"""Rules of admission: predicates over the mechanisms that would have been charged, the next one included.

The service admits by sums of charges (`sum_within`). The other two rules look as good, but `adversary` refutes them.
The tests keep them out of the service.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from sparing_audit.mechanisms import Mechanism, renyi_charge

Rule = Callable[[Sequence[Mechanism]], bool]
"""A predicate that tells whether mechanisms may be charged together. Their order makes no difference."""

SLACK = 1e-12
"""The relative excess over a budget that a sum of charges may have, so that the order of summation does not matter."""


def sum_within(charge: Callable[[Mechanism], float], budget: float) -> Rule:
    """Admit while the sum of the charges is within the budget: the filter of zCDP and of GDP."""

    def admits(charged: Sequence[Mechanism]) -> bool:
        return math.fsum(map(charge, charged)) <= budget * (1 + SLACK)

    return admits


def composed_within(epsilon: float, delta: float) -> Rule:
    """Admit while the mechanisms would be (epsilon, delta)-DP if they had been chosen in advance. Not a filter."""

    def admits(charged: Sequence[Mechanism]) -> bool:
        return max(composed_delta(charged, epsilon, direction) for direction in ("in", "out")) <= delta * (1 + SLACK)

    return admits


def order_within(budgets: Mapping[float, float], *, needed: Callable[[Sequence[bool]], bool]) -> Rule:
    """Admit while the Rényi budgets hold at all orders, or at any order, as `needed` says.

    With `all` this is a filter. With `any` it is not, because the order that holds depends on the path.
    """

    def admits(charged: Sequence[Mechanism]) -> bool:
        return needed(
            [
                math.fsum(renyi_charge(each, order) for each in charged) <= budget * (1 + SLACK)
                for order, budget in budgets.items()
            ]
        )

    return admits


def composed_delta(charged: Sequence[Mechanism], epsilon: float, direction: str) -> float:
    """The exact delta at epsilon, in one direction, of mechanisms that were chosen in advance."""
    laws = [each.laws(direction) for each in charged]
    p, q = (reduce(np.multiply.outer, (each[world] for each in laws), np.ones(())) for world in (0, 1))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
