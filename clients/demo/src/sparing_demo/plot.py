"""The report as one picture: the answers beside the truth, the errors, and the shares that could still pay."""

import math
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, PercentFormatter

from sparing_demo.report import DemoReport, smoothed_active_shares

TOP = 25  # areas
WINDOW = 25  # queries that one point of the trend looks back on
TINY = 20  # visitors
INK, BLUE, ORANGE, GREY, PALE = "#1f2933", "#1565a8", "#d9730d", "#8792a2", "#e4e9f0"


def draw(report: DemoReport, where: Path) -> None:
    """Write the picture as PNG to `where`."""
    layout = ConstrainedLayoutEngine(rect=(0.01, 0.035, 0.98, 0.875), w_pad=0.12, h_pad=0.1)
    figure = Figure(figsize=(13.0, 8.2), dpi=144, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.0, 1.15])
    _title(figure, report)
    _largest(figure.add_subplot(grid[:, 0]), report)
    _errors(figure.add_subplot(grid[0, 1]), report)
    _active(figure.add_subplot(grid[1, 1]), report)
    figure.savefig(where, format="png", metadata={"Software": None})


def _title(figure: Figure, report: DemoReport) -> None:
    allowed = report.worst_case_answered
    figure.text(
        0.018,
        0.985,
        f"{report.answered} questions answered where worst-case accounting stops after {allowed}",
        fontsize=18,
        fontweight="bold",
        color=INK,
        va="top",
    )
    figure.text(
        0.018,
        0.94,
        f"{report.budgets.people:,} people, each guaranteed {report.promise} over everything ever asked; "
        f"one count per area with Gaussian noise, σ = {report.sigma:g}",
        fontsize=11.5,
        color=GREY,
        va="top",
    )
    figure.text(
        0.018,
        0.012,
        "Data: Breese, Heckerman and Kadie (1998), Anonymous Microsoft Web Data, UCI Machine Learning Repository, "
        "CC BY 4.0. The truth and the active share are the curator's; an analyst sees the answers alone.",
        fontsize=8.5,
        color=GREY,
    )


def _largest(axes: Axes, report: DemoReport) -> None:
    top = report.largest[:TOP]
    rows = range(len(top))
    answers = [result.answer for result in top]
    wide, narrow = report.worst_case_half_width_95, report.half_width_95
    axes.barh(rows, [2 * wide] * len(top), left=[a - wide for a in answers], height=0.56, color=PALE, zorder=1)
    axes.errorbar(answers, rows, xerr=narrow, fmt="none", ecolor=BLUE, elinewidth=4.5, zorder=3)
    axes.plot([result.truth for result in top], rows, "|", color=ORANGE, markersize=13, markeredgewidth=1.6, zorder=4)
    axes.set_xscale("log")
    axes.set_yticks(rows, [_short(result.area.title) for result in top], fontsize=9.5)
    axes.set_ylim(len(top) - 0.4, -0.6)
    axes.set_xlim(0.98 * max(1.0, answers[-1] - wide), 1.3 * answers[0])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if f"{value:.0f}"[0] in "25" else ""))
    axes.set_xlabel("people who visited the area (logarithmic scale)", color=GREY)
    axes.plot([], [], "|", color=ORANGE, markersize=11, markeredgewidth=1.6, label="truth")
    axes.plot([], [], "-", color=BLUE, linewidth=4.5, label=f"answer ± {narrow:.0f} (95% for what was counted)")
    axes.plot([], [], "-", color=PALE, linewidth=9, label=f"± {wide:.0f}, what worst-case accounting would need")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.02), frameon=False, fontsize=9.5, labelcolor=INK)
    _plain(axes, f"The {len(top)} largest answers and the truth", grid="x")


def _errors(axes: Axes, report: DemoReport) -> None:
    wide, narrow = report.worst_case_half_width_95, report.half_width_95
    last = report.answered + 1
    axes.axhspan(-wide, wide, color=PALE, alpha=0.55, linewidth=0, zorder=0)
    axes.axhspan(-narrow, narrow, color=BLUE, alpha=0.16, linewidth=0, zorder=1)
    for inside, colour in ((True, BLUE), (False, ORANGE)):
        shown = [result for result in report.results if result.is_inside == inside]
        axes.plot([r.number for r in shown], [r.error for r in shown], "o", color=colour, markersize=3.2, zorder=3)
    axes.set_xlim(0, last)
    axes.set_ylim(-1.18 * wide, 1.18 * wide)
    axes.text(
        last - 2,
        0.94 * wide,
        f"± {wide:.0f}, what worst-case accounting would need",
        ha="right",
        va="top",
        color=GREY,
        fontsize=9.5,
    )
    axes.text(last - 2, 1.12 * narrow, f"± {narrow:.0f}", ha="right", va="bottom", color=BLUE, fontsize=9.5)
    axes.set_ylabel("answer − truth, people", color=GREY)
    words = f"{report.inside_counted} of {report.answered} bars cover what was counted"
    axes.text(last - 2, -0.94 * wide, words, ha="right", va="bottom", color=GREY, fontsize=9.5)
    _plain(axes, f"Every error: {report.inside} of {report.answered} bars cover the truth", grid=None)


def _active(axes: Axes, report: DemoReport) -> None:
    numbers = [result.number for result in report.results]
    trend = smoothed_active_shares(report.results, window=WINDOW)
    largest = max(result.truth for result in report.results)
    low = _floor(report)
    axes.scatter(
        numbers,
        [max(low, result.active_share) for result in report.results],
        s=[6 + 130 * result.truth / largest for result in report.results],
        color=BLUE,
        alpha=0.28,
        linewidths=0,
        zorder=3,
    )
    axes.plot(numbers, trend, color=BLUE, linewidth=2.2, zorder=4)
    axes.axvspan(0, report.worst_case_answered + 0.5, color=ORANGE, alpha=0.16, linewidth=0, zorder=0)
    axes.axvline(report.worst_case_answered + 0.5, color=ORANGE, linewidth=1.4, zorder=2)
    axes.set_xlim(0, report.answered + 1)
    axes.set_ylim(low - 0.04 * (1.0 - low), 1.0 + 0.06 * (1.0 - low))
    left = report.worst_case_answered + 4
    words = f"worst-case accounting\nstops after {report.worst_case_answered}"
    axes.text(left, low, words, color=ORANGE, fontsize=9.5, va="bottom", linespacing=1.4)
    words = (
        f"{report.active_share:.1%} of all visits were counted\nline: {WINDOW} questions together; dots: areas by size"
    )
    axes.text(left, low + 0.24 * (1.0 - low), words, color=GREY, fontsize=9.5, va="bottom", linespacing=1.4)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("question, in the order asked", color=GREY)
    axes.set_ylabel("visitors who could still pay", color=GREY)
    _plain(axes, "How the active share fell", grid="y")


def _floor(report: DemoReport) -> float:
    """The lowest share that the picture shows, without tiny areas, in which one person left out is a large share."""
    shares = [result.active_share for result in report.results if result.truth >= TINY]
    return math.floor(20 * min(0.95, *shares)) / 20


def _plain(axes: Axes, title: str, *, grid: Literal["x", "y"] | None) -> None:
    axes.set_title(title, loc="left", fontsize=12.5, fontweight="bold", color=INK, pad=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    axes.tick_params(colors=GREY, which="both", length=0)
    for label in axes.get_yticklabels():
        label.set_color(INK)
    axes.set_axisbelow(True)
    if grid is not None:
        axes.grid(axis=grid, color=PALE, linewidth=0.8)


def _short(title: str) -> str:
    return title if len(title) <= 30 else f"{title[:29]}…"
