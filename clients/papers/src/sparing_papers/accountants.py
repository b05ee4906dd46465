"""The steps that one (epsilon, delta) admits by each accountant, of a full batch and of Poisson samples.

Three workloads have the same signal over the same noise: everybody at sigma 100, a tenth at sigma 10, a hundredth at
sigma 1. The fourth is a hundredth at sigma 2. The numbers of steps are fixed beforehand. Only for steps without
sampling are the accountants filters (docs/natural-filters.md).
"""

from decimal import Decimal
from typing import Final

from matplotlib.figure import Figure

from sparing.research.admitted_steps import AdmittedSteps, admitted_steps
from sparing_papers.figure import DELTA, PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.style import BLUE, GREY, INK, ORANGE, TEAL, plain

__all__ = ["FIGURES", "WORKLOADS", "compute_admitted"]

EPSILON: Final = Decimal(1)
WORKLOADS: Final = {
    "full batch": (0.01, 1.0),
    "q = .1": (0.1, 0.1),
    "q = .01": (1.0, 0.01),
    "q = .01, half": (0.5, 0.01),
}
"""Mu, which is norm over sigma, and the probability of being sampled, by workload."""
WORDS: Final = {
    "simple_conversion": ("Rényi, B* or Fact 2.4", TEAL),
    "optimal_conversion": ("Rényi, CKS", ORANGE),
    "gaussian": ("Gaussian DP", BLUE),
    "loss_distribution": ("Privacy loss distribution", INK),
    "central_limit_approximation": ("Central limit: no bound", GREY),
}
TITLES: Final = {
    "full batch": "Full batch, σ = 100",
    "q = .1": "q = .1, σ = 10",
    "q = .01": "q = .01, σ = 1",
    "q = .01, half": "q = .01, σ = 2",
}
SHOWN_MAX: Final = (980, 980, 980, 3500)
"""The ends of axes, with room for the numbers: one for the three workloads of equal signal, another for the last."""


@tabulated("workload", "accountant", "steps")
def compute_admitted(request: Request) -> Rows:
    """The most steps within (1, 1e-5), by workload and accountant; nothing is random, and nothing coarser if quick."""
    for _, (name, (mu, rate)) in request.parts(list(WORKLOADS.items())):
        found: AdmittedSteps = admitted_steps(mu, rate=rate, epsilon=EPSILON, delta=DELTA)
        yield from ((name, accountant, steps) for accountant, steps in found._asdict().items())


def draw_admitted(figure: Figure, table: Table) -> None:
    """Draw a panel for each workload, with a bar for each accountant; the approximation is an outline."""
    panels = figure.subplots(1, len(WORKLOADS), sharey=True)
    places = range(len(WORDS))[::-1]
    for axes, name, shown_max in zip(panels, WORKLOADS, SHOWN_MAX, strict=True):
        for place, (accountant, (_, colour)) in zip(places, WORDS.items(), strict=True):
            ((steps,),) = table.series(name, accountant)
            is_bound = accountant != "central_limit_approximation"
            axes.barh(
                place,
                steps,
                0.62,
                color=colour if is_bound else "white",
                edgecolor=colour,
                linestyle="-" if is_bound else "--",
            )
            axes.text(steps + shown_max / 60, place, f"{steps:,.0f}", color=colour, va="center", fontsize=9.5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ticks = [0, 400, 800] if shown_max < 1000 else [0, 1500, 3000]
        plain(axes, TITLES[name], x="steps", y="", grid="x", xlim=(0, shown_max), xticks=ticks)
    panels[0].set_yticks(list(places), [words for words, _ in WORDS.values()])
    for tick, (_, colour) in zip(panels[0].get_yticklabels(), WORDS.values(), strict=True):
        tick.set_color(colour)


FIGURES: Final = [
    PaperFigure(
        name="admitted-steps",
        title="Steps within (1, 1e-5) by each accountant",
        compute=compute_admitted,
        draw=draw_admitted,
        size=(11.4, 3.1),
        share=8,
    )
]
