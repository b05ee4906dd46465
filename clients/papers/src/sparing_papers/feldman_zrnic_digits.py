"""Feldman and Zrnic 2021, §5.1: private gradient descent on MNIST with and without the filter (Algorithm 3).

The paper trains a network of 26,010 parameters. The text at hand says of the settings only that they were tuned. Here
the model is a softmax regression on 392 public features of edges. The network would take a day: the matrix products
alone of one step over 60,000 images take 5 s of a core in numpy, and twelve cells of ten trials have some 15,000 steps.

Clip, number and length of steps, and the number of steps with the filter, were chosen on 10,000 of the training images,
with the other 50,000 as individuals. As in the paper, the choice is not charged. `suboptimal` is as in the paper: a
clip of 1.5 times the chosen one (2 times at epsilon 1), with equal noise and accordingly fewer steps without the
filter. `above` is ours: a clip above the norm of every gradient, and noise at which three steps without a filter use up
the budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import floor
from typing import Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.accounting.accountings import ConcentratedAccounting
from service.core.charge import UNITS_PER_RHO
from sparing_papers.descent import Descent, fit, percent_right
from sparing_papers.figure import DELTA, PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.style import BLUE, GREY, INK, ORANGE, PALE, label, plain

__all__ = ["CHOSEN", "FIGURES", "PRINTED", "descent"]

Regime = Literal["tuned", "suboptimal", "above"]
REGIMES: Final[tuple[Regime, ...]] = ("tuned", "suboptimal", "above")
TRIALS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The settings of one cell. Without the filter, a descent ends after the certified steps."""

    clip: float
    rate: float
    clip_of_budget: float  # as many steps at this clip use the budget up; another clip keeps noise and budget
    steps_of_budget: int
    steps: int  # all of them, with the filter


def _chosen(rate: float, factor: float, beyond: int) -> Chosen:
    steps = floor(120 / factor**2) + beyond
    return Chosen(clip=0.25 * factor, rate=rate, clip_of_budget=0.25, steps_of_budget=120, steps=steps)


_ABOVE: Final = Chosen(clip=5.2, rate=4, clip_of_budget=5.2, steps_of_budget=3, steps=10)
CHOSEN: Final[Mapping[tuple[str, Regime], Chosen]] = {
    ("0.3", "tuned"): _chosen(64, 1, 0),
    ("0.5", "tuned"): _chosen(128, 1, 0),
    ("1.0", "tuned"): _chosen(128, 1, 0),
    ("0.3", "suboptimal"): _chosen(64, 1.5, 0),
    ("0.5", "suboptimal"): _chosen(128, 1.5, 0),
    ("1.0", "suboptimal"): _chosen(128, 2, 15),
    ("0.3", "above"): _ABOVE,
    ("0.5", "above"): _ABOVE,
    ("1.0", "above"): _ABOVE,
}
EPSILONS: Final = ("0.3", "0.5", "1.0")
PRINTED: Final[Mapping[tuple[str, Regime], tuple[float, float, float, float]]] = {
    ("0.3", "tuned"): (93.29, 0.49, 93.64, 0.46),
    ("0.5", "tuned"): (94.62, 0.43, 94.90, 0.26),
    ("1.0", "tuned"): (96.25, 0.23, 96.25, 0.23),
    ("0.3", "suboptimal"): (84.47, 3.95, 92.25, 0.91),
    ("0.5", "suboptimal"): (92.07, 2.07, 94.30, 0.58),
    ("1.0", "suboptimal"): (94.45, 0.45, 95.33, 0.34),
}
"""The paper's table, in percent: accuracy and its deviation without the filter, and both with the filter."""


def descent(epsilon: str, regime: Regime, *, steps: int | None = None) -> Descent:
    """The settings of one cell: at the chosen clip, the certified steps spend the zCDP budget of (epsilon, 1e-5)."""
    chosen = CHOSEN[epsilon, regime]
    rho = ConcentratedAccounting().budget_units(epsilon=Decimal(epsilon), delta=DELTA) / UNITS_PER_RHO
    budget = chosen.steps_of_budget * chosen.clip_of_budget**2
    return Descent(
        clip=chosen.clip,
        noise=float(np.sqrt(budget / (2 * rho))),
        rate=chosen.rate,
        budget=budget,
        steps=chosen.steps if steps is None else steps,
    )


@tabulated("source", "regime", "epsilon", "gd", "gd_sd", "filtered", "filtered_sd", "certified", "steps")
def compute_table(request: Request) -> Rows:
    """Mean accuracy on the test images and its deviation, beside the printed ones."""
    own, trials = request.digits, range(2 if request.quick else TRIALS)
    cells = [(regime, epsilon) for regime in REGIMES for epsilon in EPSILONS]
    for part, (number, (regime, epsilon)) in request.parts(list(enumerate(cells))):
        settings = descent(epsilon, regime)
        found = np.zeros((len(trials), 2))
        for told, trial in part.parts(trials):
            made = fit(own, settings, [request.seed, trial, number], kept=[settings.certified], tell=told.tell)
            for column, step in enumerate((settings.certified, settings.steps)):
                found[trial, column] = percent_right(own.test, own.test_labels, made.parameters[step])
        means, deviations = found.mean(axis=0).tolist(), found.std(axis=0, ddof=1).tolist()
        ours = means[0], deviations[0], means[1], deviations[1]
        yield "here", regime, epsilon, *ours, settings.certified, settings.steps
    yield from (("paper", regime, epsilon, *numbers, "", "") for (epsilon, regime), numbers in PRINTED.items())


@tabulated("regime", "epsilon", "step", "active")
def compute_figure_1(request: Request) -> Rows:
    """The individuals with something left before each step of one run."""
    asked = [(epsilon, regime) for epsilon in ("0.3", "0.5") for regime in REGIMES[:2]]
    for part, (number, (epsilon, regime)) in request.parts(list(enumerate(asked))):
        settings = descent(epsilon, regime, steps=2 * CHOSEN[epsilon, "tuned"].steps_of_budget)
        made = fit(request.digits, settings, [request.seed, 1, number], tell=part.tell)
        yield from ((regime, epsilon, step, active) for step, active in enumerate(made.active, start=1))
        yield f"{regime}, certified", epsilon, settings.certified, made.active[settings.certified - 1]


def draw_table(figure: Figure, table: Table) -> None:
    """Draw a line for each cell, from the accuracy without the filter to that with it, for here and for the paper."""
    panels = figure.subplots(1, 3)
    titles = ("Clip as chosen", "1.5 times it (ε = 1: twice)", "Above every norm")
    for axes, regime, title in zip(panels, REGIMES, titles, strict=True):
        for number, epsilon in enumerate(EPSILONS):
            for source, colour, dy in (("here", BLUE, -0.14), ("paper", GREY, 0.26)):
                cells = [row[3:7] for row in table.rows if row[:3] == (source, regime, epsilon)]
                for cell in cells:
                    _cell(axes, number + dy, [float(each) for each in cell], colour)
        axes.set_yticks(range(len(EPSILONS)), [f"ε = {epsilon}" for epsilon in EPSILONS] if regime == "tuned" else [])
        axes.margins(x=0.12)
        plain(axes, title, x="right, of the test images, %", y="", grid="x", ylim=(2.6, -0.6))
        for tick in axes.get_yticklabels():
            tick.set_color(INK)
    words = "blue: here, softmax regression   grey: the paper's network   hollow: without the filter   filled: with it"
    figure.supxlabel(words, fontsize=9, color=GREY)


def _cell(axes: Axes, height: float, numbers: Sequence[float], colour: str) -> None:
    gd, gd_sd, filtered, filtered_sd = numbers
    axes.errorbar([filtered], [height], xerr=[filtered_sd], fmt="o", color=colour, markersize=6, elinewidth=1)
    axes.errorbar([gd], [height], xerr=[gd_sd], fmt="o", color=colour, mfc="white", markersize=6, elinewidth=1)
    axes.plot([gd, filtered], [height, height], "-", color=colour, linewidth=2.4, alpha=0.45, zorder=1)
    words = f"{gd:.2f}" if gd == filtered else f"{gd:.2f} → {filtered:.2f}"
    label(axes, words, ((gd + filtered) / 2, height - 0.08), colour, ha="center", va="bottom")


def draw_figure_1(figure: Figure, table: Table) -> None:
    """Draw a panel for each epsilon."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, epsilon in zip(panels, ("0.3", "0.5"), strict=True):
        for regime, colour in (("tuned", BLUE), ("suboptimal", ORANGE)):
            steps, active = table.columns(regime, epsilon)
            axes.plot(steps, active, color=colour, linewidth=1.9)
            ((certified, _),) = table.series(f"{regime}, certified", epsilon)
            axes.axvline(certified, color=colour, linewidth=1, alpha=0.6)
            words = "clip as chosen" if regime == "tuned" else "1.5 times it"
            at = min(len(steps) - 1, int(certified) + 18)
            label(
                axes,
                words,
                (steps[at] + 3, active[at] + (3500 if regime == "tuned" else -3500) * active[0] / 60_000),
                colour,
            )
        axes.axhline(0, color=PALE)
        y = "individuals with budget left" if epsilon == "0.3" else ""
        plain(axes, f"ε = {epsilon}, δ = 10⁻⁵", x="step", y=y, ylim=(0, None))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


FIGURES: Final = [
    PaperFigure(
        name="feldman-zrnic-table",
        title="Feldman and Zrnic, the table of §5.1",
        compute=compute_table,
        draw=draw_table,
        size=(11.4, 4.8),
        needs_digits=True,
        share=420,
    ),
    PaperFigure(
        name="feldman-zrnic-1",
        title="Feldman and Zrnic, figure 1",
        compute=compute_figure_1,
        draw=draw_figure_1,
        size=(10.4, 3.8),
        needs_digits=True,
        share=70,
    ),
]
