"""The settings of the table of §5.1, and figure 1 on generated digits."""

from decimal import Decimal

import pytest

from service.accounting.accountings import ConcentratedAccounting
from sparing_papers.feldman_zrnic_digits import CHOSEN, EPSILONS, PRINTED, compute_figure_1, compute_table, descent
from sparing_papers.figure import Request
from sparing_papers.made_up import made_up_digits

REQUEST = Request(seed=1, quick=True, digits=made_up_digits(1, individuals=150, tests=60))


@pytest.mark.parametrize(("epsilon", "regime"), CHOSEN)
def test_the_cells_spend_the_same_budget(epsilon: str, regime: str) -> None:
    """Each promises (epsilon, 1e-5) and no more, whatever its clip; another clip has equal noise and fewer steps."""
    settings, tuned = descent(epsilon, regime), descent(epsilon, "tuned")  # type: ignore[arg-type]
    units = ConcentratedAccounting().budget_units(epsilon=Decimal(epsilon), delta=Decimal("1e-5"))

    assert settings.rho * 2**40 == pytest.approx(units, rel=1e-12)
    assert settings.certified * settings.clip**2 <= settings.budget * (1 + 1e-12)
    assert (settings.certified + 1) * settings.clip**2 > settings.budget
    if regime == "suboptimal":
        assert (settings.noise, settings.budget) == (tuned.noise, tuned.budget)
        assert settings.certified == {"1.0": 30}.get(epsilon, 53)


def test_the_table_has_every_cell_and_the_printed_ones() -> None:
    """Nine of ours, six of the paper's; without steps beyond the certified ones both cells are equal."""
    table = compute_table(REQUEST)
    ours = {row[1:3]: row[3:] for row in table.rows if row[0] == "here"}

    assert len(ours) == len(CHOSEN)
    assert {row[2:0:-1]: row[3:7] for row in table.rows if row[0] == "paper"} == PRINTED
    for (_, epsilon), (gd, _, filtered, _, certified, steps) in ours.items():
        assert epsilon in EPSILONS
        assert (certified != steps) or gd == filtered
    assert compute_table(REQUEST) == table


def test_all_are_active_until_the_certified_steps_are_over() -> None:
    """And some are not at the end."""
    table = compute_figure_1(REQUEST)
    for regime in ("tuned", "suboptimal"):
        for epsilon in ("0.3", "0.5"):
            active = [count for _, count in table.series(regime, epsilon)]
            ((certified, count),) = table.series(f"{regime}, certified", epsilon)
            assert set(active[: int(certified)]) == {150} == {count}
            assert active[-1] < 150
            assert active == sorted(active, reverse=True)
