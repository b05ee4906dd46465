"""Koskela, Tobaben and Honkela 2023, appendix C.4: Rényi beside Gaussian accounting, for counts at sigma 100.

The curves of both are the service's: what k answers charge an individual, in units, and the delta that this total
promises. The authors' published script takes the least delta of the whole orders from 2 to 32. The least delta over all
orders is no larger, and the service's zCDP budgets use all orders. Both are drawn.

Figure 5's curves are budgets divided by the price of a count. The marks on them are counted: a running service answers
counts of one individual until it leaves that individual out.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.accounting.accountings import GAUSSIAN, Accounting, ConcentratedAccounting
from service.accounting.conversions import amount_of_units, delta_of_mu, log_delta_of_order, mu_of_units_exactly
from service.core.charge import worst_case_units
from sparing_papers.counted import answers_until_left_out
from sparing_papers.figure import DELTA, PaperFigure, Request, Rows, Table, tabulated
from sparing_papers.style import BLUE, GREY, INK, ORANGE, TEAL, label, logarithmic_deltas, plain

__all__ = ["ACCOUNTINGS", "FIGURES", "admitted_steps", "log_delta_of_all_orders", "log_delta_of_whole_orders"]

SIGMA: Final = 100.0
STEP_UNITS: Final = worst_case_units(1, SIGMA)
"""The charge of one count, in units, to an individual that it counts."""
STEPS: Final = 420
STEPS_COMPARED: Final = (300, 500, 900)
STEPS_MAX: Final = 600
WHOLE_ORDERS: Final = range(2, 33)
ACCOUNTINGS: Final[Mapping[str, Accounting]] = {
    "gdp": GAUSSIAN,
    "zcdp": ConcentratedAccounting(),
    "zcdp, simple": ConcentratedAccounting(conversion="simple"),
}
STATED: Final[Mapping[str, object]] = {
    "gdp": "gdp",
    "zcdp": {"kind": "zcdp"},
    "zcdp, simple": {"kind": "zcdp", "conversion": "simple"},
}
"""The accountings as a registration states them."""
COUNTED: Final = {
    True: [("0.8", "gdp"), ("0.8", "zcdp"), ("0.8", "zcdp, simple"), ("0.81563", "gdp"), ("0.81563", "zcdp")],
    False: [(epsilon, name) for epsilon in ("0.2", "0.4", "0.6", "0.8", "0.81563") for name in STATED],
}
"""The epsilons and accountings of the datasets in which a service counts answers, by whether the run is quick."""


def admitted_steps(accounting: Accounting, epsilon: Decimal, step_units: int = STEP_UNITS) -> int:
    """The most counts, or other steps of one price, that any individual's budget of (epsilon, 1e-5) pays for."""
    return accounting.budget_units(epsilon=epsilon, delta=DELTA) // step_units


def log_delta_of_all_orders(steps: int, epsilon: float) -> float:
    """The logarithm of the least delta that Lemma C.4 gives for `steps` counts, over all orders above 1.

    The best order a is where (2 a - 1) rho + ln(1 - 1/a) equals epsilon. The left side is the slope of the bound, which
    rises with the order.
    """
    rho = steps * STEP_UNITS / 2**40
    low, high = 1.0, 2.0
    while (2 * high - 1) * rho + math.log1p(-1 / high) < epsilon:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if (2 * middle - 1) * rho + math.log1p(-1 / middle) < epsilon:
            low = middle
        else:
            high = middle
    return min(0.0, _log_delta(steps, high, epsilon))


def log_delta_of_whole_orders(steps: int, epsilon: float) -> float:
    """The logarithm of the least delta for `steps` counts over whole orders from 2 to 32, as in the authors' script."""
    return min(0.0, *(_log_delta(steps, order, epsilon) for order in WHOLE_ORDERS))


def log_delta_of_gaussian(steps: int, epsilon: float) -> float:
    """The logarithm of the delta that Corollary C.2 gives for `steps` counts."""
    return math.log(delta_of_mu(epsilon, mu_of_units_exactly(steps * STEP_UNITS)))


def _log_delta(steps: int, order: float, epsilon: float) -> float:
    return float(log_delta_of_order(order, amount_of_units(steps * STEP_UNITS), epsilon))


CURVES: Final = {
    "rdp, orders 2 to 32": log_delta_of_whole_orders,
    "rdp, all orders": log_delta_of_all_orders,
    "gdp": log_delta_of_gaussian,
}


def _grid(first: float, last: float, points: int) -> list[float]:
    return [first + (last - first) * number / (points - 1) for number in range(points)]


@tabulated("curve", "k", "epsilon", "delta")
def _curves(request: Request, steps: Sequence[int], epsilon_max: float) -> Rows:
    for _, each in request.parts(steps):
        for name, log_delta in CURVES.items():
            epsilons = _grid(0.1, epsilon_max, 15 if request.quick else 81)
            yield from ((name, each, epsilon, math.exp(log_delta(each, epsilon))) for epsilon in epsilons)
    for each in steps:
        for name, accounting in (("rdp", ACCOUNTINGS["zcdp"]), ("gdp", GAUSSIAN)):
            yield f"{name} at 1e-5", each, accounting.epsilon_of_units(each * STEP_UNITS, DELTA), float(DELTA)


def compute_figure_3(request: Request) -> Table:
    """The delta by epsilon after 420 counts."""
    return _curves(request, [STEPS], 0.9)


def compute_figure_4(request: Request) -> Table:
    """The delta by epsilon after 300, 500 and 900 counts."""
    return _curves(request, STEPS_COMPARED, 1.1)


@tabulated("curve", "epsilon", "k")
def compute_figure_5(request: Request) -> Rows:
    """The most counts by epsilon, and what a service has answered."""
    for name, accounting in ACCOUNTINGS.items():
        epsilons = _grid(0.01, 0.93, 24 if request.quick else 185)
        yield from ((name, epsilon, admitted_steps(accounting, Decimal(repr(epsilon)))) for epsilon in epsilons)
    asked = COUNTED[request.quick]
    promised = [{"epsilon": epsilon, "delta": str(DELTA), "accounting": STATED[name]} for epsilon, name in asked]
    with request.served() as found:
        counted = answers_until_left_out(found, promised, sigma=SIGMA, tell=request.tell)
    for (epsilon, name), answers in zip(asked, counted, strict=True):
        yield f"{name}, answered by the service", float(epsilon), answers


def draw_figure_3(figure: Figure, table: Table) -> None:
    """Draw both curves, and the gap between them at a delta of 1e-5."""
    axes = figure.subplots()
    _curve(axes, table, STEPS, BLUE)
    ((rdp, delta),) = table.series("rdp at 1e-5", STEPS)
    ((gdp, _),) = table.series("gdp at 1e-5", STEPS)
    arrow = {"arrowstyle": "<|-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (gdp, delta), (rdp, delta), arrowprops=arrow)
    words = f"at δ = 10⁻⁵: ε = {gdp:.3f} and {rdp:.3f},\n{1 - gdp / rdp:.1%} smaller"
    label(axes, words, (gdp - 0.02, delta / 1.5), INK, ha="right", va="top")
    label(axes, "Rényi, least δ of all orders (dashed)\nor of the orders 2 to 32 (dotted)", (0.47, 1.2e-2), ORANGE)
    label(axes, "Gaussian", (0.42, 9e-4), BLUE, ha="right")
    logarithmic_deltas(axes)
    plain(axes, "420 counts at σ = 100: what they promise", x="ε", y="δ (logarithmic scale)")


def draw_figure_4(figure: Figure, table: Table) -> None:
    """Draw three pairs of curves."""
    axes = figure.subplots()
    for steps, colour in zip(STEPS_COMPARED, (TEAL, BLUE, INK), strict=True):
        _curve(axes, table, steps, colour)
        epsilons, deltas = table.columns("gdp", steps)
        label(axes, f"k = {steps}", (epsilons[-1] + 0.01, deltas[-1]), colour)
    label(
        axes,
        "solid: Gaussian\ndashed: Rényi, all orders\ndotted: Rényi, orders 2 to 32",
        (0.1, 3e-9),
        GREY,
        va="bottom",
    )
    logarithmic_deltas(axes)
    plain(
        axes,
        "The same after k counts at σ = 100",
        x="ε",
        y="δ (logarithmic scale)",
        xlim=(0.08, 1.24),
        xticks=[0.2, 0.4, 0.6, 0.8, 1.0],
    )


def draw_figure_5(figure: Figure, table: Table) -> None:
    """Draw a staircase for each accounting, and marks for the answers that were counted."""
    axes = figure.subplots()
    for name, colour, words in (
        ("gdp", BLUE, "Gaussian"),
        ("zcdp", ORANGE, "Rényi,\nall orders"),
        ("zcdp, simple", TEAL, "Rényi, budget B* of\nFeldman and Zrnic"),
    ):
        epsilons, steps = table.columns(name)
        axes.plot(epsilons, steps, "-" if name == "gdp" else "--", color=colour, linewidth=1.6)
        label(axes, words, (epsilons[-1] + 0.012, steps[-1]), colour)
        marked = table.series(f"{name}, answered by the service")
        axes.plot(*zip(*marked, strict=True), "o", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        numbers = ", ".join(f"{answered:.0f}" for epsilon, answered in marked if epsilon >= 0.8)
        beside = (0.785, marked[-1][1]) if name == "gdp" else (0.83, marked[-1][1] - 14)
        label(
            axes,
            numbers,
            beside,
            colour,
            ha="right" if name == "gdp" else "left",
            va="top" if name != "gdp" else "bottom",
        )
    words = "dots: answered by a running service\nbefore it left the individual out;\nnumbers at ε = 0.8 and 0.81563"
    label(axes, words, (0.03, 575), GREY)
    plain(
        axes,
        "The most counts at σ = 100 within (ε, 10⁻⁵)",
        x="ε",
        y="counts of one individual, k",
        xlim=(0, 1.24),
        ylim=(0, 650),
        xticks=[0, 0.2, 0.4, 0.6, 0.8],
    )


def _curve(axes: Axes, table: Table, steps: int, colour: str) -> None:
    rdp = ORANGE if steps == STEPS else colour
    axes.semilogy(*table.columns("rdp, orders 2 to 32", steps), ":", color=rdp, linewidth=1.3)
    axes.semilogy(*table.columns("rdp, all orders", steps), "--", color=rdp, linewidth=1.6)
    axes.semilogy(*table.columns("gdp", steps), "-", color=colour, linewidth=1.9)


FIGURES: Final = [
    PaperFigure(name="koskela-3", title="Koskela et al., figure 3", compute=compute_figure_3, draw=draw_figure_3),
    PaperFigure(
        name="koskela-4", title="Koskela et al., figure 4", compute=compute_figure_4, draw=draw_figure_4, share=2
    ),
    PaperFigure(
        name="koskela-5", title="Koskela et al., figure 5", compute=compute_figure_5, draw=draw_figure_5, share=8
    ),
]
