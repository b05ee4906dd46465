"""Rules of admission: predicates over the mechanisms that would have been charged, the next one included.

Sums of charges are the service's kind. The other two look as good and are refuted by `adversary`: the tests keep them
out of the service.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from sparing_audit.mechanisms import Mechanism, renyi_charge

Rule = Callable[[Sequence[Mechanism]], bool]
"""A predicate of mechanisms that may be charged together; their order makes no difference."""

SLACK = 1e-12
"""A sum of charges may exceed its budget by this part of it, so that sums in another order are no other sums."""


def sum_within(charge: Callable[[Mechanism], float], budget: float) -> Rule:
    """Admit while the sum of the charges is within the budget: the filter of zCDP and of GDP."""

    def admits(charged: Sequence[Mechanism]) -> bool:
        return math.fsum(map(charge, charged)) <= budget * (1 + SLACK)

    return admits


def composed_within(epsilon: float, delta: float) -> Rule:
    """Admit while the mechanisms, had they been chosen in advance, would be (epsilon, delta)-DP. Not a filter."""

    def admits(charged: Sequence[Mechanism]) -> bool:
        return max(composed_delta(charged, epsilon, direction) for direction in ("in", "out")) <= delta * (1 + SLACK)

    return admits


def order_within(budgets: Mapping[float, float], *, needed: Callable[[Sequence[bool]], bool]) -> Rule:
    """Admit while the Rényi budgets of enough orders hold.

    `needed` is `all`, which is a filter, or `any`, which is not: which order holds depends on the path.
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
    """The exact delta at epsilon of mechanisms that were chosen in advance, in one direction."""
    laws = [each.laws(direction) for each in charged]
    p, q = (reduce(np.multiply.outer, (each[world] for each in laws), np.ones(())) for world in (0, 1))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
