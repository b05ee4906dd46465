"""The rules as predicates: what they admit does not depend on the order, and is what they say."""

import math

import pytest

from sparing_audit.curves import renyi_budget
from sparing_audit.mechanisms import leak, one_sided_test, randomised_response, renyi_charge
from sparing_audit.rules import composed_delta, composed_within, order_within, sum_within


def test_a_sum_at_its_budget_is_admitted_in_every_order() -> None:
    """Equality fits, though sums of floats depend on their order; more does not."""
    charges = {"a": 0.1, "b": 0.2, "c": 0.3}
    mechanisms = [randomised_response(step) for step in (1, 2, 3)]
    price = dict(zip(mechanisms, charges.values(), strict=True))
    rule = sum_within(price.__getitem__, 0.6)

    assert rule(mechanisms)
    assert rule(mechanisms[::-1])
    assert not rule([*mechanisms, mechanisms[0]])


def test_composed_leaks_are_the_chance_of_any_of_them() -> None:
    """1 - (1 - delta)^2 in one direction, nothing in the other."""
    assert composed_delta([leak(0.1), leak(0.1)], 1, "in") == pytest.approx(0.19)
    assert composed_delta([leak(0.1), leak(0.1)], 1, "out") == 0
    assert composed_delta([], 1, "in") == 0


def test_one_response_leaks_what_its_curve_says() -> None:
    """(e^eps0 - e^eps) / (1 + e^eps0)."""
    exact = (math.exp(1.5) - math.e) / (1 + math.exp(1.5))
    assert composed_delta([randomised_response(1.5)], 1, "in") == pytest.approx(exact, rel=1e-12)
    assert composed_within(1, exact)([randomised_response(1.5)])
    assert not composed_within(1, exact * 0.999)([randomised_response(1.5)])


def test_the_two_rules_over_orders_differ_by_a_word() -> None:
    """A test that one order affords and the other does not."""
    test = one_sided_test(0.1669024, 0.0008175)
    budgets = {order: renyi_budget(6, 1e-3, order) for order in (3.0, 8.0)}
    assert [renyi_charge(test, order) <= budget for order, budget in budgets.items()] == [False, True]

    assert order_within(budgets, needed=any)([test])
    assert not order_within(budgets, needed=all)([test])
