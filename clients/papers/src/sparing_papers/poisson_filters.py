"""Filtered descent on Poisson samples of MNIST, beyond the steps at which it would have to end without a filter.

Two filters are compared with the same promise, (1, 1e-5), and the same noise: the Rényi divergence of one order
(Feldman and Zrnic 2021, Theorem 4.5) and Gaussian DP (Koskela, Tobaben and Honkela 2023, Theorem 12). The order is the
one that certifies the most steps. Without a filter, a descent ends after its certified steps. Up to there it equals the
filtered descent of the same seed, bit by bit, so that it needs no run of its own.

20,000 training images are drawn from all. The model is a softmax regression on 392 public features of edges. Rates were
chosen for each clip on 10,000 training images that were kept out, with other draws of 20,000.
"""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparing.research import GaussianFilter, PoissonDescent, PoissonFilter, RenyiFilter, descend
from sparing.research.descent import Doubles
from sparing_papers.digits import CLASSES
from sparing_papers.figure import PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.style import BLUE, ORANGE, label, plain

__all__ = ["FIGURES", "FILTERS", "compute_filters", "settings_of"]

PEOPLE: Final = 20_000
MULTIPLIER: Final = 8.0
SAMPLED: Final = 0.25
STEPS: Final = 240
RATES: Final = {0.5: 24.0, 5.2: 2.0}
"""The rates by clip: for the best clip of the other figures, and for one at which hardly any gradient is shortened."""
FILTERS: Final[dict[str, PoissonFilter]] = {
    "order": RenyiFilter(order=18, epsilon=1, delta="1e-5"),
    "gdp": GaussianFilter(epsilon=1, delta="1e-5"),
}
LOOK: Final = 5
COLOURS: Final = {0.5: BLUE, 5.2: ORANGE}
LINES: Final = {"order": "-", "gdp": ":"}
WORDS: Final = {
    (0.5, "order"): ("clip 0.5, order 18", -0.07),
    (0.5, "gdp"): ("clip 0.5, Gaussian DP", 0.06),
    (5.2, "order"): ("clip 5.2, order 18", -0.08),
    (5.2, "gdp"): ("clip 5.2, Gaussian DP", 0.1),
}
"""The words beside each curve, by clip and filter, and their height above the curve as a share of all individuals."""


def settings_of(clip: float, steps: int = STEPS) -> PoissonDescent:
    """The settings of a descent at one of the clips."""
    return PoissonDescent(
        loss="softmax",
        classes=CLASSES,
        l2_clip=clip,
        noise_multiplier=MULTIPLIER,
        sampling_rate=SAMPLED,
        learning_rate=RATES[clip],
        steps=steps,
    )


@tabulated("curve", "filter", "clip", "step", "value")
def compute_filters(request: Request) -> Rows:
    """Accuracy on the test images and active individuals by step, for each filter and clip."""
    people = min(PEOPLE, len(request.digits.train))
    drawn = np.random.default_rng([request.seed, 63]).choice(len(request.digits.train), people, replace=False)
    for part, (clip, name) in request.parts([(clip, name) for clip in RATES for name in FILTERS]):
        yield from _rows(part, np.sort(drawn), clip, name)


def _rows(request: Request, drawn: np.ndarray, clip: float, name: str) -> Rows:
    """The numbers of one run; `certified` is the accuracy at which one without a filter ends."""
    own, settings = request.digits, settings_of(clip)
    test = own.test.astype(np.float64)
    certified = FILTERS[name].certified_steps(settings)
    seen: dict[int, float] = {}

    def look(step: int, parameters: Doubles) -> None:
        if step % LOOK == 0 or step == certified:
            right = np.einsum("ij,kj->ik", test, parameters).argmax(axis=1) == own.test_labels
            seen[step] = 100 * float(np.mean(right))
        request.tell(step / settings.steps)

    run = descend(
        own.train[drawn],
        own.train_labels[drawn],
        settings,
        seed=[request.seed, 64, round(10 * clip)],
        limit=FILTERS[name],
        followed=(),
        after_step=look,
    )
    yield "certified", name, clip, certified, seen[certified]
    yield from (("accuracy", name, clip, step, value) for step, value in seen.items())
    yield from (("active", name, clip, step, int(run.active[step - 1])) for step in (1, *seen))


def draw_filters(figure: Figure, table: Table) -> None:
    """Draw wrong predictions on the left and active individuals on the right."""
    wrong, active = figure.subplots(1, 2)
    for clip, colour in COLOURS.items():
        for name, line in LINES.items():
            steps, accuracies = table.columns("accuracy", name, clip)
            errors = [100 - each for each in accuracies]
            wrong.semilogy(steps, errors, line, color=colour, linewidth=1.9)
            ((certified, accuracy),) = table.series("certified", name, clip)
            wrong.plot([certified], [100 - accuracy], "o", color=colour, markersize=6)
            active.plot(*table.columns("active", name, clip), line, color=colour, linewidth=1.9)
    _finish(wrong, active, table)


def _finish(wrong: Axes, active: Axes, table: Table) -> None:
    plain(wrong, "Wrong, of the test images", x="step; dots: the end without a filter", y="% (logarithmic scale)")
    plain(active, "Individuals that could pay", x="step", y="individuals", ylim=(0, None))
    wrong.set_yticks([3, 5, 10, 20, 50], ["3", "5", "10", "20", "50"])
    wrong.minorticks_off()
    active.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for (clip, name), (words, lift) in WORDS.items():
        steps, values = table.columns("active", name, clip)
        middle = len(steps) // 2
        label(active, words, (steps[middle], values[middle] + lift * values[0]), COLOURS[clip], ha="center")


FIGURES: Final = [
    PaperFigure(
        name="poisson-filters",
        title="Filters in descent on samples",
        compute=compute_filters,
        draw=draw_filters,
        size=(10.4, 3.9),
        needs_digits=True,
        share=60,
    )
]
