"""Limits from (epsilon, delta): the largest whole number of units that the exact curve certifies."""

from decimal import Decimal

import mpmath
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.accounting.accountings import GAUSSIAN
from service.accounting.conversions import EPSILON_MAX, delta_of_mu
from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO

# epsilon, delta, rho of GDP, units: the table of the theory note, recomputed below.
TABLE = [
    ("0.3", "1e-5", ".003959027443", 4352996707),
    ("0.5", "1e-5", ".010111921499", 11118175266),
    ("1", "1e-5", ".035925702327", 39500727445),
    ("2", "1e-5", ".125777048454", 138293327283),
    ("8", "1e-5", "1.387828976479", 1525934097003),
    ("0.3", "1e-6", ".002962049980", 3256808394),
    ("0.5", "1e-6", ".007701168114", 8467523888),
    ("1", "1e-6", ".028014481913", 30802248609),
    ("2", "1e-6", ".100502019723", 110503139299),
    ("8", "1e-6", "1.172815223570", 1289523975548),
]
EPSILONS = st.decimals("1e-6", "100", allow_nan=False)
DELTAS = st.decimals("1e-30", "0.5", allow_nan=False)
UNITS = st.one_of(st.integers(1, 2**45), st.integers(1, LIMIT_UNITS_MAX))


def defined_delta(epsilon: Decimal | float, units: int) -> mpmath.mpf:
    """The curve as it is written, at 300 digits, where no cancellation matters."""
    reals = mpmath.MPContext()
    reals.dps = 300
    level, mu = reals.mpf(str(epsilon)), reals.sqrt(reals.mpf(2 * units) / UNITS_PER_RHO)
    return reals.ncdf(-level / mu + mu / 2) - reals.exp(level) * reals.ncdf(-level / mu - mu / 2)


def exact_mu(units: int) -> mpmath.mpf:
    """The mu of so many units at 100 digits."""
    reals = mpmath.MPContext()
    reals.dps = 100
    return reals.sqrt(reals.mpf(2 * units) / UNITS_PER_RHO)


@pytest.mark.parametrize(("epsilon", "delta", "rho", "units"), TABLE)
def test_the_table_of_the_theory_note(epsilon: str, delta: str, rho: str, units: int) -> None:
    """Recomputed here from the definition: the units are within delta, one more is not, and rho agrees to 1e-9."""
    found = GAUSSIAN.budget_units(epsilon=Decimal(epsilon), delta=Decimal(delta))

    assert found == units
    assert defined_delta(Decimal(epsilon), found) <= mpmath.mpf(delta) < defined_delta(Decimal(epsilon), found + 1)
    assert found / UNITS_PER_RHO == pytest.approx(float(rho), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta", "rho", "units"), TABLE)
def test_another_accountant_agrees(epsilon: str, delta: str, rho: str, units: int) -> None:
    """dp-accounting's Gaussian privacy loss has the same delta."""
    found = GaussianPrivacyLoss(1 / GAUSSIAN.mu_of_units(units)).get_delta_for_epsilon(float(epsilon))

    assert found == pytest.approx(float(delta), rel=1e-8)


@settings(max_examples=30)
@given(EPSILONS, DELTAS)
def test_a_budget_is_certified_and_the_next_unit_is_not(epsilon: Decimal, delta: Decimal) -> None:
    """Rounded down, never up; and never a unit too few."""
    units = GAUSSIAN.budget_units(epsilon=epsilon, delta=delta)

    assert units == 0 or defined_delta(epsilon, units) <= mpmath.mpf(str(delta))
    assert units == LIMIT_UNITS_MAX or defined_delta(epsilon, units + 1) > mpmath.mpf(str(delta)) * (
        1 - mpmath.mpf(1e-25)
    )


@settings(max_examples=30)
@given(st.one_of(EPSILONS, st.decimals("1e-40", str(EPSILON_MAX))), UNITS)
@example(Decimal(EPSILON_MAX), 1)
@example(Decimal("1e-40"), 1)
@example(Decimal(EPSILON_MAX), LIMIT_UNITS_MAX)
def test_delta_keeps_thirty_digits(epsilon: Decimal, units: int) -> None:
    """However much of it cancels."""
    expected = defined_delta(epsilon, units)

    assert abs(delta_of_mu(epsilon, exact_mu(units)) - expected) <= expected * mpmath.mpf(10) ** -30


@settings(max_examples=20)
@given(UNITS, DELTAS)
def test_epsilon_of_units_is_certified_and_least(units: int, delta: Decimal) -> None:
    """Rounded up by at most a 1e-12th."""
    epsilon = GAUSSIAN.epsilon_of_units(units, delta)

    assert delta_of_mu(epsilon, exact_mu(units)) <= mpmath.mpf(str(delta))
    assert epsilon == 0.0 or delta_of_mu(epsilon * (1 - 3e-12), exact_mu(units)) > mpmath.mpf(str(delta))


def test_by_hand() -> None:
    """At epsilon 0 delta is the total variation distance, 2 Phi(mu/2) - 1; no units promise everything."""
    assert float(delta_of_mu(0.0, 1.0)) == pytest.approx(0.3829249225480263, rel=1e-15)
    assert float(delta_of_mu(Decimal("0.25"), 1)) == pytest.approx(0.307711, abs=1e-6)
    assert delta_of_mu(0.0, 0) == 0
    assert GAUSSIAN.epsilon_of_units(0, Decimal("1e-9")) == 0.0
    assert GAUSSIAN.epsilon_of_units(UNITS_PER_RHO // 2, Decimal("0.39")) == 0.0
    assert GAUSSIAN.mu_of_units(0) == 0.0
    assert GAUSSIAN.mu_of_units(UNITS_PER_RHO // 2) == pytest.approx(1.0, rel=1e-15)


@given(st.integers(1, 2**63))
def test_mu_is_rounded_up(units: int) -> None:
    """By an ulp or two."""
    mu = GAUSSIAN.mu_of_units(units)

    assert exact_mu(units) <= mu <= exact_mu(units) * (1 + mpmath.mpf(2) ** -51)


def test_a_tiny_guarantee_is_no_units_and_a_huge_one_the_largest_limit() -> None:
    """Both are legal, certified and quick."""
    assert GAUSSIAN.budget_units(epsilon=Decimal("1e-300"), delta=Decimal("1e-300")) == 0
    assert GAUSSIAN.budget_units(epsilon=Decimal(EPSILON_MAX), delta=Decimal("0.5")) < LIMIT_UNITS_MAX
    assert GAUSSIAN.budget_units(epsilon=Decimal(EPSILON_MAX), delta=Decimal("0." + 50 * "9")) < LIMIT_UNITS_MAX


def test_nothing_is_negative() -> None:
    """Neither units nor arguments of the curve."""
    with pytest.raises(ValueError, match="units"):
        GAUSSIAN.epsilon_of_units(-1, Decimal("1e-5"))
    with pytest.raises(ValueError, match="units"):
        GAUSSIAN.mu_of_units(-1)
    with pytest.raises(ValueError, match="negative"):
        delta_of_mu(-1.0, 1.0)
    with pytest.raises(ValueError, match="negative"):
        delta_of_mu(1.0, -1.0)
