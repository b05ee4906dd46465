"""The ledger's unit: exact both ways, limits rounded down."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.charge import CHARGE_UNITS_MAX, LIMIT_UNITS_MAX, UNITS_PER_RHO, rho_of_units, units_down


@given(st.fractions(min_value=0, max_value=2**21))
def test_units_down_is_the_largest_number_of_units_within_rho(rho: Fraction) -> None:
    """One unit more would be above rho."""
    units = units_down(rho)

    assert Fraction(units, UNITS_PER_RHO) <= rho < Fraction(units + 1, UNITS_PER_RHO)


@given(st.integers(0, LIMIT_UNITS_MAX))
def test_rho_of_units_is_exact_and_has_no_idle_digits(units: int) -> None:
    """Nothing is lost on the way to a decimal and back, although the decimal context has only 28 digits."""
    rho = rho_of_units(units)

    assert Fraction(rho) == Fraction(units, UNITS_PER_RHO)
    assert units_down(Fraction(rho)) == units
    assert "." not in f"{rho:f}" or not f"{rho:f}".endswith("0")


@pytest.mark.parametrize(
    ("units", "rho"),
    [(0, "0"), (1, "9.094947017729282379150390625E-13"), (UNITS_PER_RHO, "1"), (3 * UNITS_PER_RHO // 8, "0.375")],
)
def test_rho_of_units_by_hand(units: int, rho: str) -> None:
    """A unit is 2^-40 rho."""
    assert rho_of_units(units) == Decimal(rho)


def test_the_largest_limit_is_allowed_and_a_unit_more_is_not() -> None:
    """2^61 units are 2^21 rho."""
    assert units_down(Fraction(2**21)) == LIMIT_UNITS_MAX
    with pytest.raises(ValueError, match="at most 2097152"):
        units_down(Fraction(LIMIT_UNITS_MAX + 1, UNITS_PER_RHO))


def test_a_saturated_charge_is_above_any_limit_and_added_to_any_total_fits_an_int64() -> None:
    """The filter adds before it compares, so the sum must neither wrap nor be affordable."""
    assert CHARGE_UNITS_MAX > LIMIT_UNITS_MAX
    assert CHARGE_UNITS_MAX + LIMIT_UNITS_MAX < 2**63


def test_nothing_is_negative() -> None:
    """A negative rho or a negative number of units is a mistake of the caller's."""
    with pytest.raises(ValueError, match="rho must not be negative"):
        units_down(Fraction(-1, 2**50))
    with pytest.raises(ValueError, match="units must not be negative"):
        rho_of_units(-1)
