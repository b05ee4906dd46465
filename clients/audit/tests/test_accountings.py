"""The audit's own prices and promises, against closed forms, one another and numbers of the papers."""

import math
from fractions import Fraction
from typing import Any

import pytest

from sparing_audit.accountings import ACCOUNTINGS, Accounting, accounting_of
from sparing_audit.service import UNITS_PER_RHO

KINDS = tuple(ACCOUNTINGS)


@pytest.mark.parametrize(
    ("kind", "prices"),
    [
        ("gdp", ("0.000078149", "0.0074818", "0.15779", "0.53052")),
        ("zcdp", ("0.000049834", "0.0048374", "0.10653", "0.36788")),
        ("rdp16", ("0.000049636", "0.0036665", "0.028494", "0.059744")),
        ("pure", ("0.010000000", "0.1000000", "0.50000", "1.00000")),
    ],
)
def test_prices_of_laplace_noise(kind: str, prices: tuple[str, ...]) -> None:
    """At t = .01, .1, .5 and 1, to the last digit shown."""
    accounting = ACCOUNTINGS.get(kind, Accounting(kind="rdp", order=16.0))
    amounts = [accounting.laplace_amount(Fraction(t)) for t in ("0.01", "0.1", "0.5", "1")]
    for amount, price in zip(amounts, prices, strict=True):
        assert abs(float(amount) - float(price)) <= 10.0 ** -(len(price) - 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_costs_what_it_was_asked_for(kind: str) -> None:
    """To the rounding of the scale; nothing costs nothing, and the price rises."""
    accounting = ACCOUNTINGS[kind]
    scale = accounting.laplace_scale(0.01)
    assert float(accounting.laplace_amount(1 / Fraction(scale))) == pytest.approx(0.01, rel=1e-5)
    assert accounting.laplace_charge(0, scale).least == 0
    charges = [accounting.laplace_charge(steps, 7.25) for steps in (1, -2, 3, 40, 500)]
    assert [each.least for each in charges] == sorted({each.least for each in charges})


@pytest.mark.parametrize("kind", KINDS)
def test_a_charge_is_the_ceiling_and_a_ten_thousandth_more_at_most(kind: str) -> None:
    """The charge of pure differential privacy is one number."""
    charge = ACCOUNTINGS[kind].laplace_charge(3, 8.0)
    units = float(ACCOUNTINGS[kind].laplace_amount(Fraction(3, 8))) * UNITS_PER_RHO
    assert 0 <= charge.least - units < 1.001
    assert charge.most - charge.least <= (0 if kind == "pure" else units / 10_000 + 1)


def test_an_order_lies_between_its_neighbours() -> None:
    """Over the order it is at most the price of zCDP, and at order 1 nearly that."""
    t = Fraction(1, 3)
    prices = [float(Accounting(kind="rdp", order=order).laplace_amount(t)) for order in (1.001, 2.0, 16.0, 64.0)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] == pytest.approx(float(ACCOUNTINGS["zcdp"].laplace_amount(t)), rel=1e-3)


def test_promises() -> None:
    """The table of budgets at (1, 1e-5), read backwards; and a pure budget of ln 3 at epsilon 0."""
    budgets = {
        Accounting(kind="gdp"): 0.0359257023,
        Accounting(kind="zcdp"): 0.0305565952,
        Accounting(kind="rdp", order=16.0): 0.0301155878,
        Accounting(kind="rdp", order=32.0): 0.0241300606,
    }
    for accounting, budget in budgets.items():
        assert accounting.delta(1.0, budget) == pytest.approx(1e-5, rel=1e-6)
    assert ACCOUNTINGS["pure"].delta(0.0, math.log(3)) == pytest.approx(0.5)
    assert ACCOUNTINGS["pure"].delta(math.log(3), math.log(3)) == 0
    assert ACCOUNTINGS["zcdp"].divergence(3.0, 0.25) == ACCOUNTINGS["rdp"].divergence(4.0, 0.25) * 3 / 4 == 0.75
    assert [ACCOUNTINGS[kind].divergence(3.0, 0.25) for kind in ("gdp", "rdp", "pure")] == [math.inf] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_is_read(kind: str) -> None:
    """With a conversion, which no amount depends on, and whole orders."""
    stated: Any = ACCOUNTINGS[kind].document
    described = stated if isinstance(stated, str) else {**stated, "conversion": "optimal"}
    assert accounting_of(described) == ACCOUNTINGS[kind]
    assert accounting_of({"kind": "rdp", "order": 32}).unit == "rho at order 32"


@pytest.mark.parametrize("document", ["rho", {"kind": "pld"}, {"kind": "rdp"}, None])
def test_what_the_audit_does_not_know_is_said(document: object) -> None:
    """It would check a promise that nobody made."""
    with pytest.raises(ValueError, match="knows no accounting"):
        accounting_of(document)
