"""Koskela, Tobaben and Honkela 2023, figure 1: individuals' own epsilons in private descent on Poisson samples.

The parameters are the paper's: MNIST, 50 epochs of samples of 300 on average, sigma = 2, 1,000 individuals drawn at
random, delta 1e-6. The model is a softmax regression on 392 public features of edges instead of a small network. The
clip is that of the other figures instead of the paper's 5, which is in the unit of another gradient. A charge depends
only on the share of the clip. The rate was chosen on 10,000 training images that were kept out.

The epsilons look back at steps that answers have chosen. They describe this run, and promise nobody anything
(docs/natural-filters.md).
"""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.accounting.conversions import delta_of_mu
from sparing.research import PoissonDescent, PoissonRun, descend
from sparing.research.central_limit import central_limit_mu_approximation, upper_mu_approximation
from sparing.research.privacy_loss import Steps, composed_losses
from sparing_papers.digits import CLASSES
from sparing_papers.figure import PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.style import BLUE, ORANGE, TEAL, logarithmic_deltas, plain

__all__ = ["FIGURES", "compute_figure_1", "steps_of"]

DELTA: Final = 1e-6
SAMPLE: Final = 300
EPOCHS: Final = 50
MULTIPLIER: Final = 2.0
CLIP: Final = 0.5
RATE: Final = 1.0
FOLLOWED: Final = 1000
DELTA_SHOWN: Final = 1e-8
"""The least delta of the curve. The numerical error that the accountant adds is far below it."""
BINS: Final = 26
BIN: Final = 0.05


def steps_of(run: PoissonRun, place: int) -> list[Steps]:
    """The steps of the followed individual at this place, each at the mu of its cell."""
    counts, charged = run.own.counts[place], run.own.grid.charged
    rate = run.settings.sampling_rate
    return [Steps(float(charged[cell]), rate, int(counts[cell])) for cell in np.flatnonzero(counts) if cell]


@tabulated("curve", "epsilon", "delta, or epsilon")
def compute_figure_1(request: Request) -> Rows:
    """The epsilons of individuals by both accountants, and the curve of the one whose epsilon is in the middle."""
    people = len(request.digits.train)
    sampled, followed = (0.05, 12) if request.quick else (SAMPLE / people, FOLLOWED)
    settings = PoissonDescent(
        loss="softmax",
        classes=CLASSES,
        l2_clip=CLIP,
        noise_multiplier=MULTIPLIER,
        sampling_rate=sampled,
        learning_rate=RATE,
        steps=100 if request.quick else round(EPOCHS / sampled),
        intervals=8 if request.quick else 92,
    )
    drawn = np.random.default_rng([request.seed, 60]).choice(people, followed, replace=False)
    run = descend(
        request.digits.train,
        request.digits.train_labels,
        settings,
        seed=[request.seed, 61],
        followed=drawn.tolist(),
        after_step=lambda step, _: request.tell(step / settings.steps / 5),
    )
    both = run.epsilons(delta=DELTA).tolist(), run.loss_epsilons(delta=DELTA).tolist()
    epsilons = list(zip(*both, strict=True))
    middle = sorted(range(followed), key=lambda each: epsilons[each][1])[followed // 2]
    yield from (("individual, Rényi and loss distribution", *each) for each in epsilons)
    yield from _curves(steps_of(run, middle), 12 if request.quick else 61)


def _curves(steps: list[Steps], points: int) -> Rows:
    """Delta by epsilon down to 1e-8: composed, and both Gaussian approximations, with their mus."""
    both = composed_losses(steps, delta=DELTA_SHOWN)
    largest = max(losses.epsilon(DELTA_SHOWN) for losses in both)
    asked = [largest * number / (points - 1) for number in range(points)]
    exact = {each: max(losses.delta(each) for losses in both) for each in asked}
    upper = upper_mu_approximation(exact.__getitem__, asked)
    central = central_limit_mu_approximation(steps)
    yield from (("loss distribution", *each) for each in exact.items())
    for name, mu in (("least mu above", upper), ("central limit", central)):
        yield from ((name, each, float(delta_of_mu(each, mu))) for each in asked)
        yield f"{name}: its mu", mu, 0.0


def draw_figure_1(figure: Figure, table: Table) -> None:
    """Draw the curve on the left and histograms on the right."""
    curve, histogram = figure.subplots(1, 2)
    _draw_curve(curve, table)
    _draw_histograms(histogram, table)


def _draw_curve(axes: Axes, table: Table) -> None:
    for name, line, colour in (
        ("least mu above", "--", ORANGE),
        ("central limit", ":", TEAL),
        ("loss distribution", "-", BLUE),
    ):
        axes.semilogy(*table.columns(name), line, color=colour, linewidth=1.9)
    ((upper, _),), ((central, _),) = (table.series(f"{name}: its mu") for name in ("least mu above", "central limit"))
    words = (
        (f"dashed: Gaussian, the least μ above: {upper:.4f}", ORANGE),
        ("solid: privacy loss distribution", BLUE),
        (f"dotted: Gaussian by the central limit, μ = {central:.4f}", TEAL),
    )
    for line_number, (each, colour) in enumerate(words):
        axes.text(0.03, 0.2 - 0.075 * line_number, each, color=colour, fontsize=9, transform=axes.transAxes)
    logarithmic_deltas(axes)
    plain(axes, "One individual's steps", x="ε", y="δ (logarithmic scale)", ylim=(DELTA_SHOWN / 5, 1))


def _draw_histograms(axes: Axes, table: Table) -> None:
    columns = table.columns("individual, Rényi and loss distribution")
    edges = [BIN * number for number in range(BINS + 1)]
    for values, colour in ((columns[1], BLUE), (columns[0], ORANGE)):
        shares, _ = np.histogram(np.minimum(values, edges[-1] - BIN / 2), edges)
        axes.stairs(100 * shares / len(values), edges, fill=colour == BLUE, color=colour, linewidth=1.7)
    middles = [float(np.median(each)) for each in columns]
    worst = [max(each) for each in columns]
    words = (
        (f"privacy loss distributions:\nmedian {middles[1]:.2f}, largest {worst[1]:.2f}", BLUE),
        (f"Rényi divergences, best order:\nmedian {middles[0]:.2f}, largest {worst[0]:.2f}", ORANGE),
    )
    for line_number, (each, colour) in enumerate(words):
        axes.text(0.4, 0.78 - 0.17 * line_number, each, color=colour, fontsize=9, transform=axes.transAxes)
    title = f"{len(columns[0]):,} individuals"
    plain(axes, title, x="own ε at δ = 10⁻⁶", y="individuals, %", grid="y", xlim=(0, edges[-1]))


FIGURES: Final = [
    PaperFigure(
        name="koskela-1",
        title="Koskela et al., figure 1",
        compute=compute_figure_1,
        draw=draw_figure_1,
        size=(10.4, 3.9),
        needs_digits=True,
        share=60,
    )
]
