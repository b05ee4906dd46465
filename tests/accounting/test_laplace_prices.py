"""The tables of Laplace prices: bounds within a ten-thousandth, and what the theory's values say of them."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log1p, ndtri_exp

from service.accounting.accountings import (
    GAUSSIAN,
    PURE,
    Accounting,
    ConcentratedAccounting,
    PureAccounting,
    RenyiAccounting,
)
from service.accounting.laplace_prices import LinearPrices, concentrated_prices, gaussian_prices, renyi_prices
from service.core.charge import CHARGE_UNITS_MAX, UNITS_PER_RHO
from service.core.laplace import LaplacePrices, laplace_charge_units, laplace_worst_case_units
from tests.core.laplace_prices import CHORDS, REALS, TABLES, chords

NORMAL = NormalDist()
SCALE = 2.0**20


def amount(prices: LaplacePrices, t: float) -> float:
    """The charge of a number of t scales, in the accounting's amount, at a scale of many steps."""
    return laplace_worst_case_units(round(t * SCALE) ** 2, SCALE, prices) / UNITS_PER_RHO


@pytest.mark.parametrize(
    ("prices", "t", "expected"),
    [
        (concentrated_prices, 0.1, 0.00483741803596),
        (concentrated_prices, 0.5, 0.106530659713),
        (concentrated_prices, 1.0, 0.367879441171),
        (partial(renyi_prices, 2.0), 0.5, 0.200303896174 / 2),
        (partial(renyi_prices, 8.0), 0.5, 0.410267881762 / 8),
        (partial(renyi_prices, 32.0), 0.5, 0.478148425045 / 32),
        (gaussian_prices, 0.5, 0.56176432**2 / 2),
        (LinearPrices, 0.5, 0.5),
    ],
)
def test_the_values_of_the_theory(prices: Callable[[], LaplacePrices], t: float, expected: float) -> None:
    """From above, and to a ten-thousandth."""
    assert expected * (1 - 1e-5) < amount(prices(), t) < expected * (1 + 1e-4)


@pytest.mark.parametrize("name", CHORDS)
def test_knots_are_rounded_up_from_the_definition(name: str) -> None:
    """At some of them, by 60 digits; the first has the price of the quadratic, less than a ten-thousandth above."""
    prices, price = chords(name), TABLES[name][1]
    for place in [*range(1, len(prices.at), 1 + len(prices.at) // 60), len(prices.at) - 1][: len(prices.at) - 1]:
        exact = price(REALS.mpf(prices.knots[place]) / 2**64) * UNITS_PER_RHO * 2**64
        assert REALS.ceil(exact) <= prices.at[place] <= REALS.ceil(exact * (1 + REALS.mpf("1e-22"))) + 1
    first = price(REALS.mpf(prices.knots[0]) / 2**64) * UNITS_PER_RHO * 2**64
    assert first <= prices.at[0] <= first * (1 + REALS.mpf("7e-5"))


@pytest.mark.parametrize("name", ["gdp", "zcdp", "rdp 32"])
def test_a_knot_is_the_ceiling_of_the_price_and_the_margin(name: str) -> None:
    """And of no float's last digit, by which machines differ."""
    prices, price = chords(name), TABLES[name][1]
    for place in range(3, len(prices.at), len(prices.at) // 30):
        exact = price(REALS.mpf(prices.knots[place]) / 2**64) * (1 + REALS.mpf(10) ** -30)
        assert prices.at[place] == REALS.ceil(exact * UNITS_PER_RHO * 2**64)


@pytest.mark.parametrize("name", CHORDS)
def test_the_table_is_convex_and_no_steeper_than_its_last_slope(name: str) -> None:
    """Chords rise from knot to knot, as those of a convex function, and knots are a 64th of an octave apart."""
    prices = chords(name)
    knots, at = np.array(prices.knots, dtype=object), np.array(prices.at, dtype=object)
    slopes = [Fraction(rise, run) for rise, run in zip(np.diff(at)[1:], np.diff(knots)[1:], strict=True)]

    assert all(low <= high * (1 + Fraction(1, 10**12)) for low, high in pairwise(slopes))
    assert slopes[-1] <= prices.slope * UNITS_PER_RHO * (1 + Fraction(1, 10**25))
    assert all(after * 64 <= knot * 65 for knot, after in pairwise(prices.knots))
    assert prices.at[0] == math.ceil(prices.quadratic * UNITS_PER_RHO * Fraction(prices.knots[0] ** 2, 2**64))


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("octave", range(-18, 20, 3))
def test_prices_are_never_below_the_definition_and_hardly_above(name: str, octave: int) -> None:
    """At each size of t, in the middle of chords too, and beyond the last knot; 60 digits decide."""
    prices, price = TABLES[name][0](), TABLES[name][1]
    for part in (0.0, 0.004, 0.37, 0.7713):
        steps = round(2**30 * 2.0**octave * (1 + part))
        scale = 2.0**30 if octave < 1 else 2.0**11
        steps = steps if octave < 1 else steps >> 19
        exact = price(REALS.mpf(steps) / scale) * UNITS_PER_RHO
        units = laplace_worst_case_units(steps**2, scale, prices)
        assert exact <= units <= exact * (1 + REALS.mpf("1e-4")) + 1


def by_doubles(name: str, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """The price to some eleven digits, for t from 1e-3 to 1e3."""
    if name == "gdp":
        return 2 * ndtri_exp(-t / 2 - math.log(2)) ** 2
    if name == "zcdp":
        series = t**2 / 2 - t**3 / 6 + t**4 / 24 - t**5 / 120 + t**6 / 720
        return np.where(t < 0.01, series, t + np.expm1(-t))
    if name == "pure":
        return t
    a = float(name.removeprefix("rdp "))
    # ln(c e^((a - 1) t) + (1 - c) e^(-a t)) = (a - 1) t + ln(1 + (1 - c) (e^-((2 a - 1) t) - 1))
    rest = (a - 1) / (2 * a - 1)
    return ((a - 1) * t + log1p(rest * np.expm1(-(2 * a - 1) * t))) / (a - 1) / a


@pytest.mark.parametrize("name", ["gdp", "zcdp", "pure", "rdp 2", "rdp 8", "rdp 32"])
def test_a_million_charges_are_bounds(name: str) -> None:
    """A thousand scales of a thousand numbers: never below, at most a ten-thousandth and a unit above."""
    prices, rng = TABLES[name][0](), np.random.default_rng(3)
    for _ in range(200):
        scale = float(2 ** rng.uniform(0, 20))
        t = 2 ** rng.uniform(-7, 9.5, 5_000)
        steps = np.maximum(np.rint(t * scale), 1).astype(np.int64)
        steps = steps[steps >= scale * 2e-3]
        exact = by_doubles(name, steps / scale) * UNITS_PER_RHO
        units = laplace_charge_units(steps * steps, scale, prices, norm_squared_max=2**62)
        assert (units >= exact * (1 - 1e-10)).all()
        assert (units <= exact * (1 + 1.0001e-4) + 1).all()


@pytest.mark.parametrize(
    ("accounting", "answers"), [(ConcentratedAccounting(), 613), (GAUSSIAN, 459), (PureAccounting(), 99)]
)
def test_how_many_answers_a_guarantee_buys(accounting: Accounting, answers: int) -> None:
    """The answers have t = 1/100 each, for epsilon 1 at delta 1e-5; a hundredth of epsilon is rounded up to units."""
    budget = accounting.budget_units(epsilon=Decimal(1), delta=Decimal("1e-5"))
    assert budget // laplace_worst_case_units(1, 100.0, accounting.laplace_prices) == answers


def test_a_laplace_step_is_cheaper_than_any_pure_one_under_gaussian_dp() -> None:
    """Than mu = -2 Phi^-1(1 / (1 + e^t)): by 5 % at t = .1 and by 30 % at 1; pi / 4 t^2 against it as t falls."""

    def pure(t: float) -> float:
        return 2 * NORMAL.inv_cdf(1 / (1 + math.exp(t))) ** 2

    assert 1 - amount(gaussian_prices(), 0.1) / pure(0.1) == pytest.approx(0.05, abs=0.005)
    assert 1 - amount(gaussian_prices(), 1.0) / pure(1.0) == pytest.approx(0.30, abs=0.005)
    assert all(amount(gaussian_prices(), t) < pure(t) for t in np.arange(0.01, 6, 0.1).tolist())
    assert Fraction(355, 452) > Fraction(math.pi) / 4


@pytest.mark.parametrize("t", [0.05, 0.5, 1.0, 3.0])
def test_the_gaussian_of_the_price_is_below_the_trade_off_curve(t: float) -> None:
    """At each false alarm rate, with equality on the diagonal alone: less than the price would not do."""
    mu = -2 * NORMAL.inv_cdf(math.exp(-t / 2) / 2)
    for alarm in np.arange(0.001, 1, 0.001).tolist():
        if alarm < math.exp(-t) / 2:
            missed = 1 - math.exp(t) * alarm
        else:
            missed = math.exp(-t) / (4 * alarm) if alarm < 0.5 else math.exp(-t) * (1 - alarm)
        assert NORMAL.cdf(-NORMAL.inv_cdf(alarm) - mu) <= missed + 1e-12
    diagonal = math.exp(-t / 2) / 2
    assert NORMAL.cdf(-NORMAL.inv_cdf(diagonal) - mu * (1 - 1e-6)) > diagonal


def test_tables_are_made_once() -> None:
    """For each accounting, and for each order; equal tables are one key."""
    for accounting in (GAUSSIAN, ConcentratedAccounting(conversion="simple"), RenyiAccounting(order=2.5)):
        assert accounting.laplace_prices is accounting.laplace_prices
    assert RenyiAccounting(order=2.5).laplace_prices is renyi_prices(2.5)
    assert hash(LinearPrices()) == hash(PureAccounting().laplace_prices)
    assert len({renyi_prices(2.5), renyi_prices(2.6)}) == 2


def test_a_limit_of_pure_dp_is_spent_whole() -> None:
    """Epsilon 1 is exactly what a number of b costs at a scale of b, whatever b is."""
    for scale in (0.3, 1.0, math.pi, 500 * 2.0**19, 7.0 * 2**20):
        steps = [step for step in (1, 2, 7, 500 * 2**19) if step / scale == int(step / scale)]
        for step in steps:
            expected = min(int(step / scale) * UNITS_PER_RHO, CHARGE_UNITS_MAX)
            assert laplace_worst_case_units(step**2, scale, PURE.laplace_prices) == expected
