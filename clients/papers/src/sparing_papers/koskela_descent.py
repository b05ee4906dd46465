"""Koskela, Tobaben and Honkela 2023, figures 2 and 6 to 10, as one experiment on two sets of labelled data.

Their MIMIC-III cannot be had without a contract; MNIST and a table that a Python package ships are in its place.
Full-batch private descent with the individual GDP filter (their Algorithm 1), 50 steps until the filter may begin and
100 in all, at (2.75, 1e-5), and at an epsilon of 0.5 and 10. The model is linear instead of a network of 25 labels.
Their steps are Adam's, whose length does not depend on that of gradients; here the rate times the clip is held fixed
for the same reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from itertools import pairwise
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from service.accounting.accountings import GAUSSIAN
from service.core.charge import UNITS_PER_RHO
from sparing_papers.descent import LOGISTIC, SOFTMAX, Descent, Fit, LinearLoss, area_under_curve, fit, percent_right
from sparing_papers.digits import CLASSES
from sparing_papers.figure import DELTA, Cell, PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.labelled import Labelled
from sparing_papers.style import BLUE, GREY, INK, ORANGE, TEAL, label, plain
from sparing_papers.tabular import BRACKETS, labelled, read_people, split

__all__ = ["DIGITS", "FIGURES", "TABULAR", "Experiment", "Measure", "descent", "draw_shares", "epsilon_shares"]

EPSILON: Final = "2.75"
FACTORS: Final = (0.5, 1.0, 2.0, 5.0)
CERTIFIED: Final = 50
STEPS: Final = 100
LOOKS: Final = range(0, STEPS + 1, 5)
FIRST_SHOWN: Final = 25
"""The first step whose accuracy and loss are shown. The larger changes of earlier steps would hide the later ones."""
BINS: Final = 44
OTHERS: Final = "#c3cad4"
COLOURS: Final = {0.5: GREY, 1.0: BLUE, 2.0: TEAL, 5.0: ORANGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure of how well parameters predict a test set."""

    name: str  # of its rows in a table
    of: Callable[[NDArray[np.float32], NDArray[np.int64], NDArray[np.float64]], float]  # features, labels, parameters
    title: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A data set, its model and groups, and the settings that were chosen on a part of the training set."""

    data: Callable[[Request], Labelled]
    loss: LinearLoss
    measure: Measure
    group: str  # the word for one of them
    groups: Sequence[Cell]
    group_of: Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.int64]]  # (n,) places among the groups
    tests: str  # the words for the test set and the training set in titles
    trains: str
    clip: float
    reach: float  # the rate of a step times the clip
    seed: int  # beside the reader's, so that each experiment has a noise of its own


def descent(experiment: Experiment, epsilon: str, factor: float) -> Descent:
    """Settings by which fifty steps, at the chosen clip times the factor, spend a GDP budget.

    Noise grows with the clip.
    """
    rho = GAUSSIAN.budget_units(epsilon=Decimal(epsilon), delta=DELTA) / UNITS_PER_RHO
    clip = experiment.clip * factor
    budget = CERTIFIED * clip**2
    noise = float(np.sqrt(budget / (2 * rho)))
    return Descent(clip=clip, noise=noise, rate=experiment.reach / clip, budget=budget, steps=STEPS)


def epsilon_shares(found: Fit, settings: Descent, epsilon_max: float) -> list[tuple[float, float]]:
    """The share of individuals by their own epsilon after the certified steps: (right edge of a bin, share).

    An individual's own epsilon is that of Gaussian DP at delta 1e-5 with mu = sqrt(spent) / noise.
    """
    return shares_of_rho(found.spent[settings.certified] / (2 * settings.noise**2), epsilon_max)


def shares_of_rho(rho_spent: NDArray[np.float64], epsilon_max: float) -> list[tuple[float, float]]:
    """The share of individuals by own epsilon, from spent totals in rho (n,): (right edge of a bin, share)."""
    edges = [epsilon_max * number / BINS for number in range(1, BINS + 1)]
    # The last edge is the budget itself, of which floats may be a last digit above.
    limits = np.array([_rho_of(edge) for edge in edges[:-1]])
    places = np.searchsorted(limits, rho_spent)
    return list(zip(edges, (np.bincount(places, minlength=BINS) / places.size).tolist(), strict=True))


@cache
def _rho_of(epsilon: float) -> float:
    return GAUSSIAN.budget_units(epsilon=Decimal(repr(epsilon)), delta=DELTA) / UNITS_PER_RHO


def _run(experiment: Experiment, request: Request, epsilon: str, factor: float) -> tuple[Fit, Descent]:
    settings = descent(experiment, epsilon, factor)
    seed = [request.seed, experiment.seed, round(100 * float(epsilon)), round(100 * factor)]
    return fit(experiment.data(request), settings, seed, loss=experiment.loss, kept=LOOKS, tell=request.tell), settings


@tabulated("curve", "clip", "step", "value")
def compute_curves(experiment: Experiment, runs: Sequence[tuple[str, float]], request: Request) -> Rows:
    """Figures 6, 9 and 10: the measure on the test set and active individuals by step, of (epsilon, factor)."""
    own, measure = experiment.data(request), experiment.measure
    for part, (epsilon, factor) in request.parts(runs):
        found, _ = _run(experiment, part, epsilon, factor)
        for step, parameters in found.parameters.items():
            yield measure.name, factor, step, measure.of(own.test, own.test_labels, parameters)
        yield from (("active", factor, step, active) for step, active in enumerate(found.active, start=1))


def compute_figure_2(experiment: Experiment, request: Request) -> Table:
    """The mean losses and the mean rho of individuals in each group, at the chosen clip."""
    found, settings = _run(experiment, request, EPSILON, 1.0)
    own = experiment.data(request)
    in_test = experiment.group_of(own.test, own.test_labels)
    in_train = experiment.group_of(own.train, own.train_labels)
    rows: list[tuple[Cell, ...]] = []
    for step, parameters in found.parameters.items():
        train = experiment.loss.losses(own.train, own.train_labels, parameters)
        test = experiment.loss.losses(own.test, own.test_labels, parameters)
        rho = found.spent[step] / (2 * settings.noise**2)
        for place, name in enumerate(experiment.groups):
            parts = test[in_test == place], train[in_train == place], rho[in_train == place]
            rows.append((name, step, *(float(each.mean()) for each in parts)))
    return Table(header=(experiment.group, "step", "test loss", "train loss", "rho"), rows=rows)


@tabulated("clip", "epsilon below", "share")
def compute_histograms(experiment: Experiment, request: Request) -> Rows:
    """Figures 7 and 8: individual epsilons after 50 steps at the chosen clip, twice and five times of it."""
    for part, factor in request.parts(FACTORS[1:]):
        found, settings = _run(experiment, part, EPSILON, factor)
        yield from ((factor, edge, share) for edge, share in epsilon_shares(found, settings, float(EPSILON)))


def draw_figure_2(experiment: Experiment, figure: Figure, table: Table) -> None:
    """Draw three panels. The two groups with the least mean charge and the two with the largest are named."""
    ends = sorted(experiment.groups, key=lambda name: table.series(name, CERTIFIED)[0][2])
    shown = {ends[0]: BLUE, ends[1]: TEAL, ends[-2]: INK, ends[-1]: ORANGE}
    titles = (f"Loss on {experiment.tests}", f"Loss on {experiment.trains}", "Mean charge")
    for column, (axes, title) in enumerate(zip(figure.subplots(1, 3), titles, strict=True), start=1):
        first = FIRST_SHOWN if column < 3 else 0
        for name in sorted(experiment.groups, key=lambda name: name in shown):
            seen = [row for row in table.series(name) if row[0] >= first]
            values = [row[column] for row in seen]
            axes.plot([row[0] for row in seen], values, color=shown.get(name, OTHERS), linewidth=1.7)
        axes.axvline(CERTIFIED, color=GREY, linewidth=1, linestyle=":")
        axes.set_ylim(0, None)
        heights = _apart([table.columns(name)[column][-1] for name in shown], axes)
        for (name, colour), height in zip(shown.items(), heights, strict=True):
            label(axes, f"{experiment.group} {name}", (STEPS + 2, height), colour)
        plain(axes, title, x="step", y="nats" if column < 3 else "rho", xlim=(0, 128), xticks=[0, 50, 100])


def _apart(heights: list[float], axes: Axes) -> list[float]:
    """Heights for labels within the axis, in the same order, at least a fifteenth of the axis from each other."""
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


def draw_curves(measure: Measure, figure: Figure, table: Table) -> None:
    """Draw the measure on the left and the active individuals on the right."""
    measured, actives = figure.subplots(1, 2)
    factors = [factor for factor in FACTORS if any(row[:2] == (measure.name, factor) for row in table.rows)]
    for axes, curve in ((measured, measure.name), (actives, "active")):
        ends = []
        for factor in factors:
            steps, found = table.columns(curve, factor)
            first = FIRST_SHOWN if curve == measure.name else 1
            shown = [(step, value) for step, value in zip(steps, found, strict=True) if step >= first]
            axes.plot(*zip(*shown, strict=True), color=COLOURS[factor], linewidth=1.8)
            ends.append(found[-1])
        axes.set_ylim(0 if curve == "active" else None, None)
        if len(factors) > 1:
            for factor, height in zip(factors, _apart(ends, axes), strict=True):
                label(axes, f"clip × {factor:g}", (STEPS + 2, height), COLOURS[factor])
        axes.axvline(CERTIFIED, color=GREY, linewidth=1, linestyle=":")
        axes.set(xlim=(0, 122 if len(factors) > 1 else 102), xticks=[0, 25, 50, 75, 100])
    actives.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    plain(measured, measure.title, x="step; the filter may begin at the dotted line", y=measure.unit)
    plain(actives, "Individuals with budget left", x="step", y="individuals")


def draw_histograms(figure: Figure, table: Table) -> None:
    """A panel for each clip."""
    panels = figure.subplots(1, 3, sharey=True)
    for axes, factor in zip(panels, FACTORS[1:], strict=True):
        edges, shares = table.columns(factor)
        draw_shares(axes, edges, shares, COLOURS[factor])
        words = f"{100 * (1 - shares[-1]):.0f} % are below\nthe last bar"
        axes.text(0.5, 0.85, words, color=COLOURS[factor], fontsize=9, ha="center", transform=axes.transAxes)
        title = "The chosen clip" if factor == 1 else f"{factor:g} times the chosen clip"
        plain(axes, title, x="own ε after 50 steps, at δ = 10⁻⁵", y="individuals, %" if factor == 1 else "", grid="y")


def draw_shares(axes: Axes, edges: Sequence[float], shares: Sequence[float], colour: str) -> None:
    """A bar of percents for each bin, by the right edges of the bins and shares of the individuals."""
    width = float(EPSILON) / BINS
    middles, heights = [edge - width / 2 for edge in edges], [100 * share for share in shares]
    axes.bar(middles, heights, width * 0.9, color=colour)
    axes.set_xlim(0, float(EPSILON))


def figures_of(
    experiment: Experiment, *, prefix: str, title: str = "", needs_digits: bool = False, share: float
) -> list[PaperFigure]:
    """The five figures of an experiment. `prefix` begins the names of their files, and `title` ends their titles.

    `share` is the time that one descent takes, as a multiple of a plain curve's.
    """

    def curves(name: str, *runs: tuple[str, float]) -> PaperFigure:
        return PaperFigure(
            name=f"{prefix}-{name}",
            title=f"Koskela et al., figure {name}{title}",
            compute=partial(compute_curves, experiment, runs),
            draw=partial(draw_curves, experiment.measure),
            size=(10.4, 3.8),
            needs_digits=needs_digits,
            share=share * len(runs),
        )

    groups = PaperFigure(
        name=f"{prefix}-2",
        title=f"Koskela et al., figure 2{title}",
        compute=partial(compute_figure_2, experiment),
        draw=partial(draw_figure_2, experiment),
        size=(11.4, 3.7),
        needs_digits=needs_digits,
        share=share,
    )
    histograms = PaperFigure(
        name=f"{prefix}-7-8",
        title=f"Koskela et al., figures 7 and 8{title}",
        compute=partial(compute_histograms, experiment),
        draw=draw_histograms,
        size=(11.4, 3.5),
        needs_digits=needs_digits,
        share=3 * share,
    )
    clips = [(EPSILON, factor) for factor in FACTORS]
    return [groups, curves("6", *clips), histograms, curves("9", ("0.5", 1.0)), curves("10", ("10", 1.0))]


@cache
def _table(seed: int) -> Labelled:
    return labelled(*split(read_people(), seed))


DIGITS: Final = Experiment(
    data=lambda request: request.digits,
    loss=SOFTMAX,
    measure=Measure(name="accuracy", of=percent_right, title="Right, of the test images", unit="%"),
    group="digit",
    groups=range(CLASSES),
    group_of=lambda _, labels: labels,
    tests="test images",
    trains="training images",
    clip=0.5,
    reach=64.0,
    seed=50,
)
"""On MNIST: a softmax regression on 392 public features of edges, by digits.

Clip and rate were chosen on 10,000 training images that were kept out: clips from 0.125 to 2 did equally well there.
"""
TABULAR: Final = Experiment(
    data=lambda request: _table(request.seed),
    loss=LOGISTIC,
    measure=Measure(name="auc", of=area_under_curve, title="Area under the curve, on the test set", unit=""),
    group="income",
    groups=BRACKETS,
    group_of=lambda features, _: features[:, : len(BRACKETS)].argmax(axis=1),
    tests="the test set",
    trains="the training set",
    clip=2.0,
    reach=16.0,
    seed=71,
)
"""On a table that a package ships (tabular.py): a logistic regression on eleven public features, by income.

Its measure is the area under the curve, as in the paper. `koskela_tabular.choose` has found clip and rate.
"""
FIGURES: Final = [
    *figures_of(DIGITS, prefix="koskela", needs_digits=True, share=15),
    *figures_of(TABULAR, prefix="koskela-tabular", title=", on a table", share=1),
]
