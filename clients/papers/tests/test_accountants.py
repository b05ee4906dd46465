"""The steps within one (epsilon, delta) by each accountant: the page's table, and the order that it states.

The table of docs/natural-filters.md is recomputed by clients/python/tests/research/test_admitted_steps.py, and the
figure's numbers are compared with it in test_quick_figures.py.
"""

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from clients.papers.tests.admitted import cells_of
from sparing_papers.accountants import WORKLOADS, draw_admitted
from sparing_papers.figure import Table


@pytest.mark.parametrize("name", WORKLOADS)
def test_gaussian_dp_is_above_renyi_of_full_batches_alone(name: str) -> None:
    """Gaussian DP comes last for samples; privacy loss distributions are never behind either."""
    simple, optimal, gaussian, losses, central = cells_of(name)

    assert simple < optimal < losses <= central
    assert (gaussian > optimal) is (WORKLOADS[name][1] == 1)
    assert gaussian <= losses
    if WORKLOADS[name][1] < 1:
        assert gaussian <= simple


def test_each_bar_has_its_number() -> None:
    """In the panel of its workload."""
    accountants = (
        "simple_conversion",
        "optimal_conversion",
        "gaussian",
        "loss_distribution",
        "central_limit_approximation",
    )
    rows = [(name, each, steps) for name in WORKLOADS for each, steps in zip(accountants, cells_of(name), strict=True)]
    figure = Figure()
    draw_admitted(figure, Table(header=("workload", "accountant", "steps"), rows=rows))

    for axes, name in zip(figure.axes, WORKLOADS, strict=True):
        assert [text.get_text() for text in axes.texts] == [f"{each:,}" for each in cells_of(name)]
        widths = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
        assert widths == cells_of(name)
