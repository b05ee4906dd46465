"""How many steps each accountant admits of one workload: B* < CKS < GDP, and PLD, of a full batch and of samples."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

from service.accounting.accountings import GAUSSIAN, ConcentratedAccounting
from service.core.charge import UNITS_PER_RHO
from sparing.research.admitted_steps import ORDERS, AdmittedSteps, admitted_steps
from sparing.research.privacy_loss import STEPS_MAX

PAGE: Final = (Path(__file__).parents[4] / "docs" / "natural-filters.md").read_text(encoding="utf-8")
ONE, DELTA = Decimal(1), Decimal("1e-5")
WORKLOADS: Final = {
    "full batch": (0.01, 1.0),
    "q = .1": (0.1, 0.1),
    "q = .01": (1.0, 0.01),
    "q = .01, half": (0.5, 0.01),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_table_of_the_page(name: str) -> None:
    """To the step."""
    mu, rate = WORKLOADS[name]
    found = admitted_steps(mu, rate=rate, epsilon=ONE, delta=DELTA)
    (cells,) = re.findall(rf"^\| {re.escape(name)} \|[^|]*\|(.+)\|$", PAGE, re.MULTILINE)
    assert [f"{each:,}" for each in found] == [cell.strip() for cell in str(cells).split("|")]
    _in_order(found, rate)


def _in_order(found: AdmittedSteps, rate: float) -> None:
    assert found.simple_conversion < found.optimal_conversion < found.loss_distribution
    assert found.loss_distribution <= found.central_limit_approximation
    if rate == 1:
        assert found.optimal_conversion < found.gaussian
        assert found.gaussian * (1 - 1e-3) <= found.loss_distribution <= found.gaussian
    else:
        assert found.gaussian < found.optimal_conversion + (found.optimal_conversion == 0)


def test_a_full_batch_by_the_budgets_of_the_service() -> None:
    """A full batch has the steps that budgets buy: rho over mu^2 / 2."""
    found = admitted_steps(0.01, rate=1.0, epsilon=ONE, delta=DELTA)
    rho = UNITS_PER_RHO * 0.01**2 / 2
    for accounting, steps in (
        (ConcentratedAccounting(conversion="simple"), found.simple_conversion),
        (ConcentratedAccounting(), found.optimal_conversion),
        (GAUSSIAN, found.gaussian),
    ):
        assert steps == int(accounting.budget_units(epsilon=ONE, delta=DELTA) / rho)


@pytest.mark.parametrize(("mu", "rate"), [(0.1, 0.1), (0.5, 0.01)])
def test_another_accountant_agrees_about_orders(mu: float, rate: float) -> None:
    """dp-accounting at the same whole orders: these steps are within epsilon 1, and one more is not."""
    steps = admitted_steps(mu, rate=rate, epsilon=ONE, delta=DELTA).optimal_conversion
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(1 / mu))
    whole = [order for order in ORDERS if float(order).is_integer()]
    epsilons = [RdpAccountant(whole).compose(event, count).get_epsilon(1e-5) for count in (steps, steps + 1)]
    assert epsilons[0] <= 1 < epsilons[1]


def test_ends() -> None:
    """No step is admitted if the first is too dear, and never more than are counted."""
    assert set(admitted_steps(10.0, rate=0.5, epsilon=ONE, delta=DELTA)) == {0}
    assert set(admitted_steps(1e-8, rate=1.0, epsilon=Decimal(8), delta=Decimal("0.1"))) == {STEPS_MAX}
