"""The audit's own prices and promises, against closed forms, one another and numbers of the papers."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sparing_audit.accountings import ACCOUNTINGS, Accounting

KINDS = tuple(ACCOUNTINGS)


def of_order(order: float, amount: float = 0.5) -> Accounting:
    """Rényi differential privacy."""
    return Accounting("rdp", amount, order=order)


@pytest.mark.parametrize(
    ("accounting", "prices"),
    [
        (ACCOUNTINGS["gdp"], ("0.000078149", "0.0074818", "0.15779", "0.53052")),
        (ACCOUNTINGS["zcdp"], ("0.000049834", "0.0048374", "0.10653", "0.36788")),
        (of_order(16.0), ("0.000049636", "0.0036665", "0.028494", "0.059744")),
        (ACCOUNTINGS["pure"], ("0.010000000", "0.1000000", "0.50000", "1.00000")),
    ],
)
def test_prices_of_laplace_noise(accounting: Accounting, prices: tuple[str, ...]) -> None:
    """At t = .01, .1, .5 and 1, to the last digit shown."""
    for t, price in zip(("0.01", "0.1", "0.5", "1"), prices, strict=True):
        assert abs(float(accounting.laplace_amount(Fraction(t))) - float(price)) <= 10.0 ** -(len(price) - 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_costs_what_it_was_asked_for(kind: str) -> None:
    """To the rounding of the scale."""
    scale = ACCOUNTINGS[kind].laplace_scale(0.01)
    assert float(ACCOUNTINGS[kind].laplace_amount(1 / Fraction(scale))) == pytest.approx(0.01, rel=1e-5)


def test_an_order_lies_between_its_neighbours() -> None:
    """Over the order it is at most the price of zCDP, and at order 1 nearly that."""
    t = Fraction(1, 3)
    prices = [float(of_order(order).laplace_amount(t)) for order in (1.001, 2.0, 16.0, 64.0)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] == pytest.approx(float(ACCOUNTINGS["zcdp"].laplace_amount(t)), rel=1e-3)


def test_promises() -> None:
    """The table of budgets at (1, 1e-5), read backwards; and a pure budget of ln 3 at epsilon 0."""
    gdp, zcdp = (Accounting("gdp", 0.0359257023), Accounting("zcdp", 0.0305565952))
    for accounting in (gdp, zcdp, of_order(16.0, 0.0301155878), of_order(32.0, 0.0241300606)):
        assert accounting.delta(1.0) == pytest.approx(1e-5, rel=1e-6)
    pure = Accounting("pure", math.log(3))
    assert pure.delta(0.0) == pytest.approx(0.5)
    assert pure.delta(math.log(3)) == 0
    assert replace(zcdp, amount=0.25).divergence(3.0) == of_order(4.0, 0.25).divergence(4.0) * 3 / 4 == 0.75
    assert [each.divergence(3.0) for each in (gdp, of_order(4.0), pure)] == [math.inf] * 3


def test_each_accounting_has_a_document_of_its_own() -> None:
    """A whole order is shown as a whole number."""
    assert [each.document for each in ACCOUNTINGS.values()] == [
        "gdp",
        {"kind": "zcdp", "conversion": "optimal"},
        {"kind": "rdp", "order": 4, "conversion": "optimal"},
        {"kind": "pure"},
    ]
    assert of_order(32.0).unit == "rho at order 32"
