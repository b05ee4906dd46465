"""Figure 1 of Koskela et al., on generated digits: both accountants of one run, and the curves of one individual."""

import numpy as np
import pytest

from sparing_papers.figure import Request, Table
from sparing_papers.koskela_sampled import compute_figure_1
from sparing_papers.made_up import made_up_digits

REQUEST = Request(seed=1, quick=True, digits=made_up_digits(1, individuals=300, tests=10))


@pytest.fixture(scope="module")
def table() -> Table:
    """The figure's numbers."""
    return compute_figure_1(REQUEST)


def test_loss_distributions_say_less_than_divergences(table: Table) -> None:
    """Both are above zero for each individual."""
    individuals = table.series("individual, Rényi and loss distribution")

    assert len(individuals) == 12
    assert all(0 < by_losses < by_orders for by_orders, by_losses in individuals)


def test_the_curve_is_that_of_the_individual_in_the_middle(table: Table) -> None:
    """At its own epsilon delta is 1e-6; the least mu is above everywhere, and meets the curve."""
    own = sorted(by_losses for _, by_losses in table.series("individual, Rényi and loss distribution"))[6]
    epsilons, deltas = table.columns("loss distribution")
    upper = table.columns("least mu above")[1]

    assert np.interp(own, epsilons, np.log10(deltas)) == pytest.approx(-6, abs=0.1)
    assert deltas[-1] == pytest.approx(1e-8, rel=1e-3)
    ratios = np.array(upper) / deltas
    assert ratios.min() == pytest.approx(1, abs=1e-6)
    assert ratios.max() > 1.1


def test_the_central_limit_is_below_the_truth(table: Table) -> None:
    """At the end of the curve by more than a half: the picture calls it no bound."""
    truth, central = (table.columns(name)[1] for name in ("loss distribution", "central limit"))

    assert central[-1] < truth[-1] / 2
    ((least, _),), ((limit, _),) = (table.series(f"{name}: its mu") for name in ("least mu above", "central limit"))
    assert limit < least
