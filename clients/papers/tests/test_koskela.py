"""Figures 3 to 5 of Koskela et al.: their curves against another program, and the steps that their text states."""

import math
from decimal import Decimal

import pytest

from sparing_audit.curves import concentrated_delta, gaussian_delta, gaussian_epsilon
from sparing_papers.figure import Request, Table
from sparing_papers.koskela import (
    ACCOUNTINGS,
    admitted_steps,
    compute_figure_3,
    compute_figure_4,
    log_delta_of_all_orders,
    log_delta_of_whole_orders,
)
from sparing_papers.made_up import made_up_digits

REQUEST = Request(seed=1, quick=True, digits=made_up_digits(1))


@pytest.mark.parametrize("table", [compute_figure_3(REQUEST), compute_figure_4(REQUEST)], ids=["3", "4"])
def test_the_curves_are_those_of_another_program(table: Table) -> None:
    """Each delta of both accountings against the audit's, which shares no code with the service."""
    compared = 0
    for name, steps, epsilon, delta in table.rows:
        rho = int(steps) / (2 * 100**2)
        expected = {
            "gdp": lambda epsilon, rho: gaussian_delta(epsilon, math.sqrt(2 * rho)),
            "rdp, all orders": concentrated_delta,
        }.get(str(name))
        if expected is not None:
            assert float(delta) == pytest.approx(expected(float(epsilon), rho), rel=1e-6)
            compared += 1
    assert compared >= 30


def test_whole_orders_are_never_better_than_all() -> None:
    """And are within a hundredth of a delta where the best order is one of them."""
    for steps in (300, 420, 900):
        for epsilon in (0.1, 0.4, 0.8, 1.1):
            best, whole = (find(steps, epsilon) for find in (log_delta_of_all_orders, log_delta_of_whole_orders))
            assert best <= whole + 1e-12
    assert log_delta_of_whole_orders(420, 0.8) == pytest.approx(log_delta_of_all_orders(420, 0.8), abs=0.01)
    assert log_delta_of_whole_orders(300, 1.1) > log_delta_of_all_orders(300, 1.1) + 0.1


@pytest.mark.parametrize(
    ("epsilon", "steps"), [("0.8", (268, 405, 478)), ("0.81563", (279, 420, 495))], ids=["0.8", "0.81563"]
)
def test_so_many_steps_are_admitted(epsilon: str, steps: tuple[int, int, int]) -> None:
    """By B*, by all Rényi orders and by Gaussian DP: the text has 420 and 495, at an epsilon rounded to .8."""
    names = ("zcdp, simple", "zcdp", "gdp")

    assert tuple(admitted_steps(ACCOUNTINGS[name], Decimal(epsilon)) for name in names) == steps


def test_a_gaussian_epsilon_is_a_tenth_smaller() -> None:
    """After 420 counts at 1e-5, by the figure's own marks."""
    table = compute_figure_3(REQUEST)
    ((rdp, _),), ((gdp, _),) = (table.series(f"{name} at 1e-5", 420) for name in ("rdp", "gdp"))

    assert rdp == pytest.approx(0.815623, abs=1e-6)
    assert gdp == pytest.approx(gaussian_epsilon(math.sqrt(0.042), 1e-5), rel=1e-6)
    assert 1 - gdp / rdp == pytest.approx(0.086, abs=0.0005)
