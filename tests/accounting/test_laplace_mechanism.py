"""The scale of Laplace noise by a half width or a worst case: never too little noise, and hardly too much."""

from hypothesis import given
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN, PURE, Accounting, ConcentratedAccounting, RenyiAccounting
from service.core.charge import UNITS_PER_RHO
from service.core.half_widths import scale_steps_within
from service.core.laplace import laplace_worst_case_units, longest_steps
from service.core.laws import Laplace

CONFIDENCES = st.floats(1e-6, 1 - 1e-9)
ACCOUNTINGS: st.SearchStrategy[Accounting] = st.sampled_from(
    [GAUSSIAN, ConcentratedAccounting(), RenyiAccounting(order=32), PURE]
)


@given(ACCOUNTINGS, st.integers(1, 2**31 - 1), st.integers(10, 2 * UNITS_PER_RHO))
def test_a_worst_case_is_kept_and_nearly_reached(accounting: Accounting, steps: int, units: int) -> None:
    """At most the units; a scale that is smaller by a ten-thousandth costs more, or is none that can be drawn."""
    prices = accounting.laplace_prices
    scale = accounting.mechanisms["laplace"].size_for(steps**2, units)
    if not 0.3 <= scale <= 2.0**32:
        return
    assert laplace_worst_case_units(steps**2, scale, prices) <= units
    smaller = max(scale * (1 - 1e-4), 0.3)
    if scale > 0.301 and steps < 2**20 * scale:
        assert laplace_worst_case_units(steps**2, smaller, prices) >= units * (1 - 1e-4) - 1


def test_of_a_price_that_no_step_meets_there_is_no_scale() -> None:
    """A unit of epsilon buys one step at 2^40 steps of scale, beyond what can be drawn."""
    assert PURE.mechanisms["laplace"].size_for(1, 1) > 2.0**32
    assert longest_steps(PURE.laplace_prices, 255, 2.0**32) == 0
    assert longest_steps(PURE.laplace_prices, 256, 2.0**32) == 1


@given(ACCOUNTINGS, st.floats(0.3, 2.0**32), st.integers(0, 2**45))
def test_the_longest_number_is_paid_for_and_the_next_is_not(accounting: Accounting, scale: float, units: int) -> None:
    """Or it is the largest there is."""
    prices = accounting.laplace_prices
    steps = longest_steps(prices, units, scale)
    assert laplace_worst_case_units(steps**2, scale, prices) <= units
    assert steps == 2**31 - 1 or laplace_worst_case_units((steps + 1) ** 2, scale, prices) > units


def test_it_is_named_by_its_accounting_and_priced_by_one_number() -> None:
    """The estimate of a scale is the scale, which is kept."""
    mechanism = PURE.mechanisms["laplace"]
    assert (mechanism.name, mechanism.law, mechanism.of_one_number) == ("laplace pure", Laplace, True)
    assert mechanism.at(20.0) == Laplace.priced(20.0, "pure", PURE.laplace_prices)
    assert mechanism.estimate_for(9, 2**40) == mechanism.size_for(9, 2**40)
    assert mechanism.size_within(48, 0.95) == scale_steps_within(48, 0.95)


def test_a_scale_in_proportion_that_costs_too_much_is_enlarged() -> None:
    """Between two steps of a reference the price may rise by a unit more than in proportion."""
    accounting = ConcentratedAccounting()
    scale = accounting.mechanisms["laplace"].size_for(6**2, 32)
    assert laplace_worst_case_units(6**2, scale, accounting.laplace_prices) <= 32
    smaller = scale * (1 - 2.0**-17)
    assert laplace_worst_case_units(6**2, smaller, accounting.laplace_prices) > 32


def test_units_beyond_all_limits_pay_for_any_number_at_a_scale_that_none_draws() -> None:
    """Even at the smallest reference the longest number there is costs less."""
    assert PURE.mechanisms["laplace"].size_for(1, 2**72) < 0.3
