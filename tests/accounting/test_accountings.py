"""The accountings beside GDP: their budgets against other accountants, their promises, and the refusal of orders."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.accounting.accountings import (
    GAUSSIAN,
    Accounting,
    ConcentratedAccounting,
    OrderTooLow,
    PureAccounting,
    RenyiAccounting,
    accounting_of,
)
from service.accounting.conversions import (
    EPSILON_MAX,
    ORDER_MAX,
    Conversion,
    amount_of_order,
    best_order,
    delta_of_mu,
    least_order,
    mu_of_units_exactly,
)
from service.accounting.statements import promise_of_limit
from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO

OPTIMAL, SIMPLE = ConcentratedAccounting(), ConcentratedAccounting(conversion="simple")
PURE = PureAccounting()
ONE, DELTA = Decimal(1), Decimal("1e-5")
EPSILONS = st.decimals("1e-4", "100", allow_nan=False)
DELTAS = st.decimals("1e-30", "0.1", allow_nan=False)
CONVERSIONS: st.SearchStrategy[Conversion] = st.sampled_from(("optimal", "simple"))
ACCOUNTINGS: st.SearchStrategy[Accounting] = st.one_of(
    st.builds(ConcentratedAccounting, conversion=CONVERSIONS),
    st.builds(RenyiAccounting, order=st.floats(1.01, 1000), conversion=CONVERSIONS),
)


def budget(accounting: Accounting, epsilon: Decimal = ONE, delta: Decimal = DELTA) -> int:
    """The budget in units; 0 where the order is too low."""
    try:
        return accounting.budget_units(epsilon=epsilon, delta=delta)
    except OrderTooLow:
        return 0


def defined_epsilon(order: float, units: int, delta: Decimal, conversion: str) -> mpmath.mpf:
    """Epsilon of (a, D)-Rényi DP as the papers write it, at 60 digits."""
    with mpmath.workdps(60):
        a, rho = mpmath.mpf(order), mpmath.mpf(units) / UNITS_PER_RHO
        lost = mpmath.log(1 / mpmath.mpf(str(delta)))
        if conversion == "optimal":
            lost += (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)
        return a * rho + lost / (a - 1)


@pytest.mark.parametrize(
    ("accounting", "rho"),
    [
        (GAUSSIAN, 0.0359257023),
        (OPTIMAL, 0.0305565952),
        (SIMPLE, 0.0208199383),
        (RenyiAccounting(order=16), 0.0301155878),
        (RenyiAccounting(order=17.809), 0.0305565952),
        (RenyiAccounting(order=32), 0.0241300606),
    ],
)
def test_the_budgets_of_one_guarantee(accounting: Accounting, rho: float) -> None:
    """The budget of epsilon 1 at delta 1e-5, by each accounting, is within it, and a ten-millionth more is not."""
    units = budget(accounting)

    assert units / UNITS_PER_RHO == pytest.approx(rho, abs=5e-11)
    assert accounting.is_certified(ONE, units, DELTA)
    assert not accounting.is_certified(ONE, units + units // 10**7, DELTA)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "1e-5"), ("1", "1e-5"), ("8", "1e-6"), ("0.81563", "1e-5")])
def test_another_accountant_agrees(epsilon: str, delta: str) -> None:
    """dp-accounting's conversion over 40,000 orders gives the epsilon back; that of one order, exactly."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon  # noqa: PLC0415 - it takes a second

    units = budget(OPTIMAL, Decimal(epsilon), Decimal(delta))
    orders = [1 + math.exp(-2 + 8 * n / 40_000) for n in range(40_000)]
    rho = units / UNITS_PER_RHO
    found, order = compute_epsilon(orders, [rho * order for order in orders], float(delta))
    alone, _ = compute_epsilon([order], [rho * order], float(delta))

    assert found == pytest.approx(float(epsilon), rel=1e-6)
    assert order == pytest.approx(best_order(Decimal(epsilon), Decimal(delta), "optimal"), rel=1e-2)
    assert RenyiAccounting(order=order).epsilon_of_units(units, Decimal(delta)) == pytest.approx(alone, rel=1e-10)


@given(EPSILONS, DELTAS)
@settings(max_examples=30)
def test_each_conversion_buys_less_than_the_one_after_it(epsilon: Decimal, delta: Decimal) -> None:
    """B* of Theorem 4.8, the optimal conversion, the exact curve of GDP; and no order buys more than the best."""
    simple, optimal, exact = (budget(each, epsilon, delta) for each in (SIMPLE, OPTIMAL, GAUSSIAN))
    assert simple <= optimal <= exact

    for accounting, conversion in ((OPTIMAL, "optimal"), (SIMPLE, "simple")):
        best = best_order(epsilon, delta, conversion)  # type: ignore[arg-type]
        whole = budget(accounting, epsilon, delta)
        if best <= ORDER_MAX:
            assert whole == pytest.approx(
                budget(RenyiAccounting(order=best, conversion=conversion), epsilon, delta),  # type: ignore[arg-type]
                rel=1e-9,
                abs=2,
            )
        for factor in (0.5, 0.9, 1.1, 2):
            other = min(1 + (best - 1) * factor, ORDER_MAX)
            of_other = budget(RenyiAccounting(order=other, conversion=conversion), epsilon, delta)  # type: ignore[arg-type]
            assert of_other <= whole + 1


@given(EPSILONS, DELTAS)
@settings(max_examples=30)
def test_what_zcdp_buys_is_safe_by_the_curve_of_a_gaussian(epsilon: Decimal, delta: Decimal) -> None:
    """A Gaussian of that rho has at most the wanted delta, by its exact curve."""
    for accounting in (OPTIMAL, SIMPLE):
        units = budget(accounting, epsilon, delta)
        assert delta_of_mu(epsilon, mu_of_units_exactly(units)) <= mpmath.mpf(str(delta))


@given(ACCOUNTINGS, EPSILONS, DELTAS)
@settings(max_examples=60)
def test_a_budget_is_rounded_down_and_there_and_back(accounting: Accounting, epsilon: Decimal, delta: Decimal) -> None:
    """Certified, with less than two units to spare; its epsilon is not above the stated one, and is within 1e-12."""
    units = budget(accounting, epsilon, delta)
    if units == 0:
        return
    back = accounting.epsilon_of_units(units, delta)
    assert accounting.is_certified(epsilon, units, delta)
    assert not accounting.is_certified(epsilon, units + 2, delta)
    assert back <= float(epsilon) * (1 + 1e-12)
    assert accounting.is_certified(back, units, delta)
    assert back == 0 or not accounting.is_certified(back * (1 - 3e-12), units, delta)


@given(st.floats(1.01, 1000), CONVERSIONS, st.integers(1, 2**45), DELTAS)
@settings(max_examples=60)
def test_one_order_is_its_definition(order: float, conversion: Conversion, units: int, delta: Decimal) -> None:
    """To the digits of a double, rounded up."""
    expected = max(defined_epsilon(order, units, delta, conversion), 0)
    found = RenyiAccounting(order=order, conversion=conversion).epsilon_of_units(units, delta)

    assert expected <= found <= expected * (1 + mpmath.mpf("2e-12"))


@given(ACCOUNTINGS | st.just(GAUSSIAN), EPSILONS, DELTAS, st.integers(2, 5))
@settings(max_examples=50)
def test_more_epsilon_or_more_delta_buys_no_less(
    accounting: Accounting, epsilon: Decimal, delta: Decimal, factor: int
) -> None:
    """Monotone in both."""
    units = budget(accounting, epsilon, delta)
    assert budget(accounting, epsilon * factor, delta) >= units
    assert budget(accounting, epsilon, delta * factor / 5) <= units


def test_an_order_that_cannot_promise_is_told_the_least_and_the_best() -> None:
    """In the words of a problem, whose field is the order."""
    with pytest.raises(OrderTooLow, match=r"^must be above 9\.335; 17\.81 gives the largest budget$"):
        RenyiAccounting(order=2).budget_units(epsilon=ONE, delta=DELTA)
    least = least_order(ONE, DELTA, "simple")
    assert least == pytest.approx(1 + math.log(1e5), rel=1e-9)
    with pytest.raises(OrderTooLow):
        RenyiAccounting(order=least * (1 - 1e-9), conversion="simple").budget_units(epsilon=ONE, delta=DELTA)
    assert RenyiAccounting(order=least * (1 + 1e-9), conversion="simple").budget_units(epsilon=ONE, delta=DELTA) > 0


@given(EPSILONS, DELTAS, CONVERSIONS)
@settings(max_examples=30)
def test_from_the_least_order_on_something_is_bought(epsilon: Decimal, delta: Decimal, conversion: Conversion) -> None:
    """And below it nothing."""
    least = least_order(epsilon, delta, conversion)
    assert amount_of_order(1 + (least - 1) * (1 + 1e-6), epsilon, delta, conversion) > 0
    assert amount_of_order(1 + (least - 1) * (1 - 1e-6), epsilon, delta, conversion) < 0


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, ORDER_MAX * 1.001, math.inf, math.nan])
def test_an_order_at_which_nothing_is_defined_is_refused(order: float) -> None:
    """Order 1 is no conversion; an order of millions gains nothing."""
    with pytest.raises(ValueError, match="order"):
        RenyiAccounting(order=order)


def test_replacing_a_record_quadruples_rho_under_zcdp() -> None:
    """Two steps of blanking: 4 rho, by the same conversion; mu is of GDP alone."""
    units = budget(OPTIMAL)
    assert OPTIMAL.units_replace_one(units) == 4 * units
    assert OPTIMAL.epsilon_replace_one(units, DELTA) == OPTIMAL.epsilon_of_units(4 * units, DELTA)
    assert (OPTIMAL.mu_of_units(units), GAUSSIAN.mu_of_units(0)) == (None, 0.0)


def test_replacing_a_record_under_one_order_is_by_group_privacy() -> None:
    """(2 e, (1 + e^e) d)-DP at the dataset's delta; a statement of the order itself does not follow."""
    accounting = RenyiAccounting(order=17.809)
    units = budget(accounting)
    found = accounting.epsilon_replace_one(units, DELTA)

    assert found is not None
    assert found == pytest.approx(2.1634, abs=5e-5)
    half = found / 2
    divergence = 17.809 * units / UNITS_PER_RHO
    delta = math.exp(16.809 * (divergence - half)) / 16.809 * (1 - 1 / 17.809) ** 17.809
    assert (1 + math.exp(half)) * delta == pytest.approx(1e-5, rel=1e-9)
    assert accounting.epsilon_replace_one(0, DELTA) == 0
    promise = promise_of_limit(accounting, units, DELTA)
    assert (promise.mu, promise.rho_replace_one, promise.mu_replace_one) == (None, None, None)
    assert promise.epsilon_replace_one == found


def test_of_a_low_order_nothing_follows_for_replacing_a_record() -> None:
    """Below order 2 e^epsilon grows faster than delta falls; a large delta is reached all the same."""
    accounting = RenyiAccounting(order=1.6)
    assert accounting.epsilon_replace_one(UNITS_PER_RHO, DELTA) is None
    found = accounting.epsilon_replace_one(UNITS_PER_RHO // 1000, Decimal("0.9"))
    assert found is not None
    assert 0 <= found <= 2 * math.log(0.6 / 0.4)


@given(st.floats(1.01, 1000), st.integers(1, LIMIT_UNITS_MAX), st.data(), DELTAS)
def test_the_odometer_of_one_order_has_no_levels(order: float, most: int, data: st.DataObject, delta: Decimal) -> None:
    """Order * spent + ln(1 / delta) / (order - 1), rising with what is spent, whatever may yet be spent."""
    spent = data.draw(st.integers(1, most))
    accounting = RenyiAccounting(order=order)
    found = accounting.epsilon_time_uniform(spent, budget_units=most, delta=delta)

    assert found == pytest.approx(order * spent / UNITS_PER_RHO - float(delta.ln()) / (order - 1), rel=1e-11)
    assert found >= defined_epsilon(order, spent, delta, "simple")
    assert found == accounting.epsilon_time_uniform(spent, budget_units=LIMIT_UNITS_MAX, delta=delta)
    assert accounting.epsilon_time_uniform(0, budget_units=most, delta=delta) == 0


@pytest.mark.parametrize("accounting", [ConcentratedAccounting(), RenyiAccounting(order=16), RenyiAccounting(order=2)])
@given(units=st.integers(0, 2**43), delta=DELTAS)
@settings(max_examples=15)
def test_while_all_noise_is_gaussian_a_limit_is_worth_its_curve(
    accounting: Accounting, units: int, delta: Decimal
) -> None:
    """A Gaussian costs the same amount as under Gaussian DP, by which no limit has a larger epsilon."""
    advisory = accounting.epsilon_of_gaussians(units, delta)
    assert advisory == min(GAUSSIAN.epsilon_of_units(units, delta), accounting.epsilon_of_units(units, delta))


def test_one_guarantee_while_all_noise_is_gaussian() -> None:
    """Budgets of (1, 1e-5) under other accountings; the curve gives less than 1."""
    delta = Decimal("1e-5")
    found = {
        name: each.epsilon_of_gaussians(each.budget_units(epsilon=Decimal(1), delta=delta), delta)
        for name, each in {
            "zcdp": ConcentratedAccounting(),
            "simple": ConcentratedAccounting(conversion="simple"),
            "rdp 16": RenyiAccounting(order=16),
        }.items()
    }
    assert found == pytest.approx({"zcdp": 0.915013, "simple": 0.741637, "rdp 16": 0.907749}, abs=5e-7)
    assert (ConcentratedAccounting.has_advisory, RenyiAccounting.has_advisory) == (True, True)
    assert (GAUSSIAN.has_advisory, PURE.has_advisory) == (False, False)


def test_the_odometer_of_zcdp_is_that_of_levels() -> None:
    """The supermartingale of each order is zCDP's alone: GDP adds nothing to it."""
    units = budget(OPTIMAL)
    for spent in (0, 1, units // 3, units):
        found = OPTIMAL.epsilon_time_uniform(spent, budget_units=units, delta=DELTA)
        assert found == GAUSSIAN.epsilon_time_uniform(spent, budget_units=units, delta=DELTA)


@pytest.mark.parametrize("accounting", [OPTIMAL, SIMPLE, RenyiAccounting(order=20), GAUSSIAN])
def test_what_is_no_guarantee_is_refused(accounting: Accounting) -> None:
    """By every accounting, naming the number; the caller turns this into a message about the field."""
    for epsilon in ("0", "-1", "NaN", "Infinity", "-Infinity", str(EPSILON_MAX + 1)):
        with pytest.raises(ValueError, match="epsilon"):
            accounting.budget_units(epsilon=Decimal(epsilon), delta=DELTA)
    for delta in map(Decimal, ("0", "1", "-1", "NaN", "Infinity", "2")):
        with pytest.raises(ValueError, match="delta"):
            accounting.budget_units(epsilon=ONE, delta=delta)
        with pytest.raises(ValueError, match="delta"):
            accounting.epsilon_of_units(1, delta)
        with pytest.raises(ValueError, match="delta"):
            accounting.epsilon_time_uniform(1, budget_units=5, delta=delta)
    with pytest.raises(ValueError, match="units"):
        accounting.epsilon_of_units(-1, DELTA)
    for spent in (-1, 6):
        with pytest.raises(ValueError, match="spent"):
            accounting.epsilon_time_uniform(spent, budget_units=5, delta=DELTA)


def test_a_conversion_of_what_is_nothing_is_refused() -> None:
    """An epsilon below zero, and order 1."""
    for order, epsilon in ((2.0, -1.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="epsilon must not be negative"):
            amount_of_order(order, epsilon, DELTA, "optimal")


@pytest.mark.parametrize(
    ("accounting", "unit"),
    [
        (GAUSSIAN, "rho"),
        (OPTIMAL, "rho"),
        (SIMPLE, "rho"),
        (RenyiAccounting(order=32.0), "rho at order 32"),
        (RenyiAccounting(order=17.809, conversion="simple"), "rho at order 17.809"),
    ],
)
def test_its_document_is_itself(accounting: Accounting, unit: str) -> None:
    """The document is that of the genesis and the database; an order that is a whole number keeps its form."""
    assert accounting_of(accounting.document) == accounting
    assert accounting.unit == unit


def test_a_whole_order_is_the_same_order() -> None:
    """JSON does not tell 32 from 32.0."""
    assert accounting_of({"kind": "rdp", "order": 32, "conversion": "optimal"}) == RenyiAccounting(order=32.0)


@pytest.mark.parametrize("document", ["pld", {"kind": "zcdp"}, {"kind": "rdp", "order": "2"}, None])
def test_another_document_is_refused(document: object) -> None:
    """With the document."""
    with pytest.raises(ValueError, match="there is no accounting"):
        accounting_of(document)


@given(st.decimals("1e-15", "1e6", allow_nan=False), st.sampled_from([None, DELTA]))
def test_pure_dp_is_epsilon_itself(epsilon: Decimal, delta: Decimal | None) -> None:
    """Rounded down to units, and up to doubles; no delta is asked for, and a given one changes nothing."""
    units = PURE.budget_units(epsilon=epsilon, delta=delta)
    back = PURE.epsilon_of_units(units, delta)

    assert Fraction(units, UNITS_PER_RHO) <= Fraction(epsilon) < Fraction(units + 1, UNITS_PER_RHO)
    assert PURE.is_certified(epsilon, units, delta)
    assert not PURE.is_certified(epsilon, units + 1, delta)
    assert PURE.is_certified(back, units, delta)
    assert units == 0 or not PURE.is_certified(math.nextafter(back, -1), units, delta)
    assert PURE.units_replace_one(units) == 2 * units
    assert PURE.epsilon_replace_one(units, delta) == PURE.epsilon_of_units(2 * units, delta)


@given(st.integers(0, LIMIT_UNITS_MAX), st.data())
def test_under_pure_dp_the_loss_so_far_is_at_most_what_is_spent(most: int, data: st.DataObject) -> None:
    """With certainty, at every moment."""
    spent = data.draw(st.integers(0, most))
    found = PURE.epsilon_time_uniform(spent, budget_units=most, delta=None)

    assert (
        Fraction(spent, UNITS_PER_RHO) <= Fraction(found) <= Fraction(spent, UNITS_PER_RHO) * (1 + Fraction(1, 2**52))
    )
    for wrong in (-1, most + 1):
        with pytest.raises(ValueError, match="spent"):
            PURE.epsilon_time_uniform(wrong, budget_units=most, delta=None)


def test_what_pure_dp_says_of_itself() -> None:
    """Its document, its unit, its refusals, and a promise."""
    assert (PURE.document, PURE.unit, PURE.mu_of_units(5)) == ({"kind": "pure"}, "epsilon", None)
    assert accounting_of(PURE.document) == PURE
    assert (PURE.has_delta, PURE.name) == (False, "pure")
    for epsilon in ("0", "-1", "NaN", "1000001"):
        with pytest.raises(ValueError, match="epsilon"):
            PURE.budget_units(epsilon=Decimal(epsilon), delta=None)
    for number, units in ((-1.0, 0), (1.0, -1)):
        with pytest.raises(ValueError, match="negative"):
            PURE.is_certified(number, units, None)
    with pytest.raises(ValueError, match="negative"):
        PURE.epsilon_of_units(-1, None)
    promise = promise_of_limit(PURE, 3 * UNITS_PER_RHO, DELTA)
    assert (promise.rho, promise.rho_replace_one) == (Decimal(3), Decimal(6))
    assert (promise.epsilon, promise.epsilon_replace_one) == (3.0, 6.0)
