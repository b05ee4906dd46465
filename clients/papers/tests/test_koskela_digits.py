"""Figures 2 and 6 to 10 of Koskela et al., on generated digits."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from service.accounting.accountings import GAUSSIAN
from sparing_audit.curves import gaussian_epsilon
from sparing_papers.descent import fit
from sparing_papers.figure import Request
from sparing_papers.koskela_descent import (
    CERTIFIED,
    DIGITS,
    EPSILON,
    FACTORS,
    compute_curves,
    compute_figure_2,
    compute_histograms,
    descent,
    epsilon_shares,
)
from sparing_papers.made_up import made_up_digits

REQUEST = Request(seed=1, quick=True, digits=made_up_digits(1, individuals=200, tests=100))
FEW = replace(REQUEST, digits=made_up_digits(1, individuals=50, tests=10))


def test_the_filter_begins_after_fifty_steps() -> None:
    """All are active until then, at each clip and each epsilon."""
    for epsilon, factors in ((EPSILON, FACTORS), ("0.5", (1.0,)), ("10", (1.0,))):
        table = compute_curves(DIGITS, [(epsilon, factor) for factor in factors], REQUEST)
        for factor in factors:
            active = [count for _, count in table.series("active", factor)]
            assert set(active[:CERTIFIED]) == {200}
            assert len(active) == 100
            assert active == sorted(active, reverse=True)
    assert descent(DIGITS, "2.75", 5.0).rho == pytest.approx(descent(DIGITS, "2.75", 0.5).rho)


def test_charges_of_the_groups_rise_and_stay_within_the_budget() -> None:
    """Charges of each digit, step by step."""
    table = compute_figure_2(DIGITS, REQUEST)
    budget = GAUSSIAN.budget_units(epsilon=Decimal("2.75"), delta=Decimal("1e-5")) / 2**40
    for digit in range(10):
        rho = [row[3] for row in table.series(digit)]
        assert rho == sorted(rho)
        assert 0 == rho[0] < rho[-1] <= budget * (1 + 1e-9)


def test_an_individual_epsilon_is_that_of_its_spent_total() -> None:
    """Bins against epsilons of the audit's own curve."""
    settings = descent(DIGITS, "2.75", 1.0)
    found = fit(FEW.digits, settings, [1], kept=[CERTIFIED])
    own = [gaussian_epsilon(float(mu), 1e-5) for mu in np.sqrt(found.spent[CERTIFIED]) / settings.noise]
    shares = epsilon_shares(found, settings, 2.75)
    edges = np.array([0.0, *(edge for edge, _ in shares)])
    expected, _ = np.histogram(np.minimum(own, 2.749), edges)

    assert [share * 50 for _, share in shares] == pytest.approx(expected.tolist(), abs=1e-9)
    assert sum(float(row[2]) for row in compute_histograms(DIGITS, FEW).rows) == pytest.approx(3)
