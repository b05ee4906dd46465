"""Feldman and Zrnic 2021: the filter of Theorem 4.8 beside Remark 4.4's, and the odometers of the first version's §5.

The text of that section is not at hand, since our copy ends in the proof of its Theorem 4.5. It is restated from
Koskela et al. 2023, C.5. In the picture of filters each step of pure DP has epsilon 0.01, as counts of one individual
under Laplace noise with a scale of 100 have. The steps are priced twice: as any 0.01-DP steps (rho is epsilon^2 / 2),
and as Laplace noise.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from numpy.typing import NDArray

from service.accounting.accountings import GAUSSIAN, Accounting
from service.core.charge import UNITS_PER_RHO
from service.core.laplace import laplace_worst_case_units
from sparing_papers.figure import DELTA, PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.koskela import ACCOUNTINGS, admitted_steps
from sparing_papers.style import BLUE, GREY, INK, ORANGE, TEAL, label, plain

__all__ = ["FIGURES", "counter_reading", "discretised_reading", "rogers_steps"]

STEP_EPSILON: Final = Fraction(1, 100)
SCALE: Final = 2.0**20
"""The scale of Laplace noise, in steps of the grid. An individual's number is a hundredth of it."""
ANY_STEP_UNITS: Final = math.ceil(STEP_EPSILON**2 / 2 * UNITS_PER_RHO)
EPSILON_MAX: Final = 1.0


def laplace_units(accounting: Accounting) -> int:
    """The service's charge, in units, for a 0.01-DP step of Laplace noise."""
    return laplace_worst_case_units(round(float(STEP_EPSILON) * SCALE) ** 2, SCALE, accounting.laplace_prices)


def rogers_steps(epsilon: float, delta: float, step: float) -> int:
    """The number of `step`-DP steps before the filter of Rogers et al. halts, as Feldman and Zrnic print it in §4.3."""
    log = math.log(1 / delta)
    steps_max = math.ceil(2 * epsilon / (step * math.expm1(step)))
    constant = epsilon**2 / (28.04 * log)

    def halts(steps: int) -> bool:
        squares = steps * step**2
        spread = 2 * (squares + constant) * (1 + 0.5 * math.log1p(squares / constant)) * log
        return 0.5 * steps * step * math.expm1(step) + math.sqrt(spread) > epsilon

    return max(bisect_left(range(steps_max), True, key=halts) - 1, 0)  # noqa: FBT003 - what is looked for


@tabulated("steps", "filter", "epsilon", "k")
def compute_filters(request: Request) -> Rows:
    """The most steps by epsilon, for Gaussian noise at sigma 100 and for pure steps of 0.01."""
    simple, optimal = ACCOUNTINGS["zcdp, simple"], ACCOUNTINGS["zcdp"]
    ways: Mapping[tuple[str, str], Callable[[Decimal], int]] = {
        ("Gaussian", "gdp"): lambda epsilon: admitted_steps(GAUSSIAN, epsilon),
        ("Gaussian", "Remark 4.4"): lambda epsilon: admitted_steps(optimal, epsilon),
        ("Gaussian", "B*"): lambda epsilon: admitted_steps(simple, epsilon),
        ("pure", "Laplace, zcdp"): lambda epsilon: admitted_steps(optimal, epsilon, laplace_units(optimal)),
        ("pure", "Laplace, gdp"): lambda epsilon: admitted_steps(GAUSSIAN, epsilon, laplace_units(GAUSSIAN)),
        ("pure", "Remark 4.4"): lambda epsilon: admitted_steps(optimal, epsilon, ANY_STEP_UNITS),
        ("pure", "Theorem 4.8"): lambda epsilon: admitted_steps(simple, epsilon, ANY_STEP_UNITS),
        ("pure", "Rogers et al."): lambda epsilon: rogers_steps(float(epsilon), float(DELTA), float(STEP_EPSILON)),
        ("pure", "sum"): lambda epsilon: math.floor(Fraction(epsilon) / STEP_EPSILON),
    }
    points = 11 if request.quick else 101
    for _, ((noise, name), steps) in request.parts(list(ways.items())):
        for number in range(1, points):
            epsilon = Decimal(number) * Decimal(repr(EPSILON_MAX)) / (points - 1)
            yield noise, name, float(epsilon), steps(epsilon)


LABELS: Final = {
    ("Gaussian", "gdp"): ("Gaussian DP\n(Koskela et al.)", BLUE, "-"),
    ("Gaussian", "Remark 4.4"): ("zCDP, Remark 4.4", ORANGE, "--"),
    ("Gaussian", "B*"): ("zCDP up to B* of\nTheorem 4.8", TEAL, "-."),
    ("pure", "Remark 4.4"): ("zCDP, Remark 4.4", ORANGE, "--"),
    ("pure", "Laplace, gdp"): ("Laplace, Gaussian DP", BLUE, "-"),
    ("pure", "Theorem 4.8"): ("Theorem 4.8", TEAL, "-."),
    ("pure", "Rogers et al."): ("Rogers et al.", GREY, "-"),
    ("pure", "sum"): ("sum of epsilons", INK, ":"),
}
TITLES: Final = {"Gaussian": "Counts with Gaussian noise, σ = 100", "pure": "Steps of ε = 0.01 each"}


def draw_filters(figure: Figure, table: Table) -> None:
    """Draw a panel for each kind of step."""
    for axes, (noise, title) in zip(figure.subplots(1, 2), TITLES.items(), strict=True):
        for (kind, name), (words, colour, line) in LABELS.items():
            if kind == noise:
                epsilons, steps = table.columns(noise, name)
                axes.plot(epsilons, steps, line, color=colour, linewidth=1.8)
                label(axes, f"{words}: {steps[-1]:.0f}", (epsilons[-1] + 0.02, steps[-1]), colour)
        plain(
            axes,
            title,
            x="ε, at δ = 10⁻⁵",
            y="steps that an individual can pay for",
            xlim=(0, 1.66),
            ylim=(0, None),
            xticks=[0, 0.25, 0.5, 0.75, 1],
        )


STEP_RHO: Final = 0.005
CHARGES: Final = 60
NOMINAL: Final = (0.1, 0.01, 0.001)
SPENT: Final = (1e-4, 100.0)
"""The range of spent totals in which a reader of the odometer looks for a high loss."""


def discretised_reading(spent: float, step: float) -> float:
    """The odometer's reading, which is the spent total rounded up to whole steps."""
    return step * math.ceil(spent / step)


def counter_reading(charges: Sequence[float], step: float) -> list[float]:
    """The papers' reading after each charge: a counter that begins again from zero before it would exceed the step.

    Raises ValueError for a charge above the step, for which the papers define no reading.
    """
    if max(charges, default=0) > step:
        raise ValueError("a charge is above the step of the odometer")
    readings, crossed, counter = [], 0, 0.0
    for charge in charges:
        if counter + charge > step:
            crossed, counter = crossed + 1, 0.0
        counter += charge
        readings.append(step * (crossed + (counter > 0)))
    return readings


@tabulated("curve", "query or delta", "rho or share")
def compute_odometers(request: Request) -> Rows:
    """Readings along one made-up account, and how often the loss is above a bound at some time."""
    source = np.random.default_rng([request.seed, 5])
    charges = (STEP_RHO * source.beta(0.5, 2.5, CHARGES)).tolist()
    restarting = counter_reading(charges, STEP_RHO)
    for number, (spent, reading) in enumerate(zip(accumulate(charges), restarting, strict=True), start=1):
        yield "spent", number, spent
        yield "rounded up", number, discretised_reading(spent, STEP_RHO)
        yield "restarting", number, reading
    for name, shares in exceeded_shares(source, request).items():
        yield from ((name, delta, share) for delta, share in zip(NOMINAL, shares.tolist(), strict=True))


def exceeded_shares(source: np.random.Generator, request: Request) -> dict[str, NDArray[np.float64]]:
    """The share of paths on which the loss exceeds a bound, by name of the bound and for each nominal delta.

    The loss of Gaussian answers is a Brownian motion with drift 1 and variance 2 in the spent total. `at some time` is
    the naive bound spent + 2 sqrt(spent ln(1 / delta)) at any of the totals looked at. `at one time` is the same bound
    at the last total only. `levels` is the service's time-uniform bound, with the largest total as its budget.
    """
    paths, looks = (2_000, 500) if request.quick else (40_000, 4_000)
    totals = np.geomspace(*SPENT, looks)
    naive = 2 * np.sqrt(totals[:, None] * np.log(1 / np.array(NOMINAL)))
    budget = int(SPENT[1] * UNITS_PER_RHO)
    levels = np.array([[_level_bound(total, budget, delta) for delta in NOMINAL] for total in totals])
    levels -= totals[:, None]
    found = {name: np.zeros((len(NOMINAL), paths), dtype=np.bool_) for name in ("at some time", "levels")}
    above = np.zeros(paths)  # the loss less the spent total
    for number, gained in enumerate(np.diff(totals, prepend=0)):
        above += source.normal(0, math.sqrt(2 * gained), paths)
        found["at some time"] |= above > naive[number][:, None]
        found["levels"] |= above > levels[number][:, None]
        request.tell((number + 1) / looks)
    found["at one time"] = above > naive[-1][:, None]
    return {name: each.mean(axis=1) for name, each in found.items()}


def _level_bound(total: float, budget: int, delta: float) -> float:
    units = min(budget, math.ceil(total * UNITS_PER_RHO))
    return GAUSSIAN.epsilon_time_uniform(units, budget_units=budget, delta=Decimal(repr(delta)))


def draw_odometers(figure: Figure, table: Table) -> None:
    """Draw the readings on the left and the shares on the right."""
    readings, shares = figure.subplots(1, 2, width_ratios=[1.15, 1])
    _draw_readings(readings, table)
    _draw_shares(shares, table)


def _draw_readings(axes: Axes, table: Table) -> None:
    for name, colour, words, dy in (
        ("restarting", ORANGE, "the papers' counter", 0.0),
        ("rounded up", BLUE, "spent, rounded up", 0.0004),
        ("spent", INK, "spent", -0.0004),
    ):
        numbers, found = table.columns(name)
        axes.step(numbers, found, where="post", color=colour, linewidth=1.8)
        label(axes, words, (numbers[-1] + 1, found[-1] + dy), colour)
    plain(
        axes,
        f"Odometers in steps of {STEP_RHO}",
        x="queries that charged one individual",
        y="rho",
        xlim=(0, 88),
        ylim=(0, None),
        xticks=range(0, 61, 20),
    )


def _draw_shares(axes: Axes, table: Table) -> None:
    for name, colour, words, shift in (
        ("at some time", ORANGE, "spent total, read when\nthe loss is highest", 1.0),
        ("at one time", INK, "spent total, read\nat one fixed time", 2.0),
        ("levels", BLUE, "time-uniform bound,\nread when the loss is highest", 0.42),
    ):
        deltas, found = table.columns(name)
        shown = [(delta, share) for delta, share in zip(deltas, found, strict=True) if share > 0]
        axes.loglog(*zip(*shown, strict=True), "o-", color=colour, linewidth=1.6, markersize=4.5)
        label(axes, words, (shown[0][0] * 1.4, shown[0][1] * shift), colour)
    axes.loglog(NOMINAL, NOMINAL, ":", color=GREY, linewidth=1.4)
    label(axes, "as promised", (0.0028, 0.0042), GREY, ha="right", va="bottom")
    axes.set_xlim(0.0008, 20)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
        axis.set_minor_locator(NullLocator())
    axes.set_xticks(NOMINAL)
    plain(axes, "How often the loss is above its bound", x="δ of the bound", y="share of 40,000 runs")


FIGURES: Final = [
    PaperFigure(
        name="feldman-zrnic-filters",
        title="Feldman and Zrnic, Theorem 4.8 and Remark 4.4",
        compute=compute_filters,
        draw=draw_filters,
        size=(10.4, 4.2),
        share=4,
    ),
    PaperFigure(
        name="feldman-zrnic-odometers",
        title="Feldman and Zrnic, first version, §5",
        compute=compute_odometers,
        draw=draw_odometers,
        size=(10.4, 4.2),
        share=6,
    ),
]
