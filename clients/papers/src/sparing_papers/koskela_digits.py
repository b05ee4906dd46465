"""Koskela, Tobaben and Honkela 2023, figures 2 and 6 to 10, on MNIST: their MIMIC-III cannot be had without a contract.

Full-batch private descent with the individual GDP filter (their Algorithm 1), 50 steps until the filter may begin and
100 in all, at (2.75, 1e-5), and at an epsilon of 0.5 and 10. The model is a softmax regression on 392 public features
of edges instead of a network of 25 labels, its measure is accuracy instead of the area under the curve, and its groups
are the ten digits. Their steps are Adam's, whose length does not depend on that of gradients; here the rate times the
clip is held fixed for the same reason. Clip and rate were chosen on 10,000 training images that were kept out: clips
from 0.125 to 2 did equally well there.
"""

from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.accounting.accountings import GAUSSIAN
from service.core.charge import UNITS_PER_RHO
from sparing_papers.descent import Descent, Fit, accuracy, fit, losses
from sparing_papers.digits import CLASSES
from sparing_papers.figure import Cell, PaperFigure, Request, Table
from sparing_papers.style import BLUE, GREY, INK, ORANGE, TEAL, label, plain

__all__ = ["FIGURES", "descent", "epsilon_shares"]

DELTA: Final = Decimal("1e-5")
EPSILON: Final = "2.75"
CLIP: Final = 0.5
REACH: Final = 64.0
"""The rate of a step times the clip."""
FACTORS: Final = (0.5, 1.0, 2.0, 5.0)
CERTIFIED: Final = 50
STEPS: Final = 100
LOOKS: Final = range(0, STEPS + 1, 5)
FIRST_SHOWN: Final = 25
"""Of accuracies and losses: those of the first steps would hide all others."""
BINS: Final = 44
OTHERS: Final = "#c3cad4"
COLOURS: Final = {0.5: GREY, 1.0: BLUE, 2.0: TEAL, 5.0: ORANGE}


def descent(epsilon: str, factor: float) -> Descent:
    """Fifty steps at the chosen clip times the factor spend a budget of GDP; noise grows with the clip."""
    rho = GAUSSIAN.budget_units(epsilon=Decimal(epsilon), delta=DELTA) / UNITS_PER_RHO
    clip = CLIP * factor
    budget = CERTIFIED * clip**2
    return Descent(clip=clip, noise=float(np.sqrt(budget / (2 * rho))), rate=REACH / clip, budget=budget, steps=STEPS)


def epsilon_shares(found: Fit, settings: Descent, epsilon_max: float) -> list[tuple[float, float]]:
    """The share of individuals by their own epsilon after the certified steps: (right edge of a bin, share).

    Each is the epsilon at 1e-5 of Gaussian DP with mu = sqrt(spent) / noise; the edges are turned into spent totals.
    """
    edges = [epsilon_max * number / BINS for number in range(1, BINS + 1)]
    # The last edge is the budget itself, of which floats may be a last digit above.
    limits = np.array([2 * settings.noise**2 * _rho_of(edge) for edge in edges[:-1]])
    places = np.searchsorted(limits, found.spent[settings.certified])
    return list(zip(edges, (np.bincount(places, minlength=BINS) / places.size).tolist(), strict=True))


@cache
def _rho_of(epsilon: float) -> float:
    return GAUSSIAN.budget_units(epsilon=Decimal(repr(epsilon)), delta=DELTA) / UNITS_PER_RHO


def _run(request: Request, epsilon: str, factor: float, number: int, of: int) -> tuple[Fit, Descent]:
    settings = descent(epsilon, factor)
    seed = [request.seed, 50, round(100 * float(epsilon)), round(100 * factor)]
    return (
        fit(request.digits, settings, seed, kept=LOOKS, tell=lambda share: request.tell((number + share) / of)),
        settings,
    )


def _curves(request: Request, runs: list[tuple[str, float]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    own = request.digits
    for number, (epsilon, factor) in enumerate(runs):
        found, _ = _run(request, epsilon, factor, number, len(runs))
        for step, parameters in found.parameters.items():
            rows.append(("accuracy", factor, step, 100 * accuracy(own.test, own.test_labels, parameters)))
        rows += [("active", factor, step, active) for step, active in enumerate(found.active, start=1)]
    return Table(header=("curve", "clip", "step", "value"), rows=rows)


def compute_figure_2(request: Request) -> Table:
    """Mean losses and mean individual rho of each digit's individuals, at the chosen clip."""
    found, settings = _run(request, EPSILON, 1.0, 0, 1)
    own = request.digits
    rows: list[tuple[Cell, ...]] = []
    for step, parameters in found.parameters.items():
        train = losses(own.train, own.train_labels, parameters)
        test = losses(own.test, own.test_labels, parameters)
        rho = found.spent[step] / (2 * settings.noise**2)
        for digit in range(CLASSES):
            is_train, is_test = own.train_labels == digit, own.test_labels == digit
            means = (float(each.mean()) for each in (test[is_test], train[is_train], rho[is_train]))
            rows.append((digit, step, *means))
    return Table(header=("digit", "step", "test loss", "train loss", "rho"), rows=rows)


def compute_figure_6(request: Request) -> Table:
    """Accuracy and active individuals by step, at half to five times the chosen clip."""
    return _curves(request, [(EPSILON, factor) for factor in FACTORS])


def compute_figure_9(request: Request) -> Table:
    """The same at the chosen clip and an epsilon of 0.5."""
    return _curves(request, [("0.5", 1.0)])


def compute_figure_10(request: Request) -> Table:
    """The same at an epsilon of 10."""
    return _curves(request, [("10", 1.0)])


def compute_histograms(request: Request) -> Table:
    """Figures 7 and 8: individual epsilons after 50 steps at the chosen clip, twice and five times of it."""
    rows: list[tuple[Cell, ...]] = []
    for number, factor in enumerate(FACTORS[1:]):
        found, settings = _run(request, EPSILON, factor, number, len(FACTORS) - 1)
        rows += [(factor, edge, share) for edge, share in epsilon_shares(found, settings, float(EPSILON))]
    return Table(header=("clip", "epsilon below", "share"), rows=rows)


def draw_figure_2(figure: Figure, table: Table) -> None:
    """Three panels; the two digits of the least and the largest mean charge are named."""
    ends = sorted(range(CLASSES), key=lambda digit: table.series(digit, CERTIFIED)[0][2])
    shown = {ends[0]: BLUE, ends[1]: TEAL, ends[-2]: INK, ends[-1]: ORANGE}
    titles = ("Loss on test images", "Loss on training images", "Mean charge")
    for column, (axes, title) in enumerate(zip(figure.subplots(1, 3), titles, strict=True), start=1):
        first = FIRST_SHOWN if column < 3 else 0
        for digit in sorted(range(CLASSES), key=lambda digit: digit in shown):
            seen = [row for row in table.series(digit) if row[0] >= first]
            values = [row[column] for row in seen]
            axes.plot([row[0] for row in seen], values, color=shown.get(digit, OTHERS), linewidth=1.7)
        axes.axvline(CERTIFIED, color=GREY, linewidth=1, linestyle=":")
        axes.set_xlim(0, 128)
        axes.set_xticks([0, 50, 100])
        axes.set_ylim(0, None)
        heights = _apart([table.columns(digit)[column][-1] for digit in shown], axes)
        for (digit, colour), height in zip(shown.items(), heights, strict=True):
            label(axes, f"digit {digit}", (STEPS + 2, height), colour)
        plain(axes, title, x="step", y="nats" if column < 3 else "rho")


def _apart(heights: list[float], axes: Axes) -> list[float]:
    """Heights for labels, in the same order, at least a fifteenth of the axis from each other and within it."""
    low, high = axes.get_ylim()
    gap = (high - low) / 15
    found = list(heights)
    order = sorted(range(len(found)), key=lambda place: found[place])
    for below, above in pairwise(order):
        found[above] = max(found[above], found[below] + gap)
    found[order[-1]] = min(found[order[-1]], high - gap / 2)
    for above, below in pairwise(reversed(order)):
        found[below] = min(found[below], found[above] - gap)
    return found


def draw_curves(figure: Figure, table: Table) -> None:
    """Accuracy to the left, active individuals to the right."""
    accuracies, actives = figure.subplots(1, 2)
    factors = [factor for factor in FACTORS if any(row[:2] == ("accuracy", factor) for row in table.rows)]
    for axes, curve in ((accuracies, "accuracy"), (actives, "active")):
        ends = []
        for factor in factors:
            steps, found = table.columns(curve, factor)
            first = FIRST_SHOWN if curve == "accuracy" else 1
            shown = [(step, value) for step, value in zip(steps, found, strict=True) if step >= first]
            axes.plot(*zip(*shown, strict=True), color=COLOURS[factor], linewidth=1.8)
            ends.append(found[-1])
        axes.set_ylim(0 if curve == "active" else None, None)
        if len(factors) > 1:
            for factor, height in zip(factors, _apart(ends, axes), strict=True):
                label(axes, f"clip × {factor:g}", (STEPS + 2, height), COLOURS[factor])
        axes.axvline(CERTIFIED, color=GREY, linewidth=1, linestyle=":")
        axes.set_xlim(0, 122 if len(factors) > 1 else 102)
        axes.set_xticks([0, 25, 50, 75, 100])
    actives.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    plain(accuracies, "Right, of the test images", x="step; the filter may begin at the dotted line", y="%")
    plain(actives, "Individuals with budget left", x="step", y="individuals")


def draw_histograms(figure: Figure, table: Table) -> None:
    """A panel for each clip."""
    width = float(EPSILON) / BINS
    panels = figure.subplots(1, 3, sharey=True)
    for axes, factor in zip(panels, FACTORS[1:], strict=True):
        edges, shares = table.columns(factor)
        middles, heights = [edge - width / 2 for edge in edges], [100 * share for share in shares]
        axes.bar(middles, heights, width * 0.9, color=COLOURS[factor])
        words = f"{100 * (1 - shares[-1]):.0f} % are below\nthe last bar"
        axes.text(0.5, 0.85, words, color=COLOURS[factor], fontsize=9, ha="center", transform=axes.transAxes)
        title = "The chosen clip" if factor == 1 else f"{factor:g} times the chosen clip"
        plain(axes, title, x="own ε after 50 steps, at δ = 10⁻⁵", y="individuals, %" if factor == 1 else "", grid="y")
        axes.set_xlim(0, float(EPSILON))


FIGURES: Final = [
    PaperFigure(
        name="koskela-2",
        title="Koskela et al., figure 2",
        compute=compute_figure_2,
        draw=draw_figure_2,
        size=(11.4, 3.7),
        needs_digits=True,
        share=20,
    ),
    PaperFigure(
        name="koskela-6",
        title="Koskela et al., figure 6",
        compute=compute_figure_6,
        draw=draw_curves,
        size=(10.4, 3.8),
        needs_digits=True,
        share=60,
    ),
    PaperFigure(
        name="koskela-7-8",
        title="Koskela et al., figures 7 and 8",
        compute=compute_histograms,
        draw=draw_histograms,
        size=(11.4, 3.5),
        needs_digits=True,
        share=45,
    ),
    PaperFigure(
        name="koskela-9",
        title="Koskela et al., figure 9",
        compute=compute_figure_9,
        draw=draw_curves,
        size=(10.4, 3.8),
        needs_digits=True,
        share=15,
    ),
    PaperFigure(
        name="koskela-10",
        title="Koskela et al., figure 10",
        compute=compute_figure_10,
        draw=draw_curves,
        size=(10.4, 3.8),
        needs_digits=True,
        share=15,
    ),
]
