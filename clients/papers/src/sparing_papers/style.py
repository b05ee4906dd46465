"""One look for all figures: the demo's colours on white, labels beside the curves, and equal files for equal data."""

import csv
import math
from pathlib import Path
from typing import Any, Final, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from sparing_papers.figure import PaperFigure, Table

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "ORANGE",
    "PALE",
    "TEAL",
    "label",
    "logarithmic_deltas",
    "plain",
    "save",
    "save_numbers",
    "save_small",
]

INK: Final = "#1f2933"
BLUE: Final = "#1565a8"
ORANGE: Final = "#d9730d"
TEAL: Final = "#0f8b8d"
GREY: Final = "#66717f"
PALE: Final = "#e4e9f0"
_DPI: Final = 160
_SMALL_DPI: Final = 110
_LOOK: Final[dict[Any, Any]] = {
    "svg.hashsalt": "sparing",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
}


def save(wanted: PaperFigure, table: Table, folder: Path) -> list[Path]:
    """Write the table as CSV and its drawing as PNG and SVG."""
    files = [save_numbers(wanted, table, folder), *(folder / f"{wanted.name}.{kind}" for kind in ("png", "svg"))]
    with rc_context(_LOOK):
        figure = _drawn(wanted, table)
        figure.savefig(files[1], dpi=_DPI, metadata={"Software": None})
        figure.savefig(files[2], metadata={"Date": None, "Creator": None})
    return files


def save_small(wanted: PaperFigure, table: Table, folder: Path) -> Path:
    """Write the drawing as a PNG in the size in which a page shows it."""
    file = folder / f"{wanted.name}.png"
    with rc_context(_LOOK):
        _drawn(wanted, table).savefig(
            file, dpi=_SMALL_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True, "compress_level": 9}
        )
    return file


def save_numbers(wanted: PaperFigure, table: Table, folder: Path) -> Path:
    """Write the table as CSV."""
    file = folder / f"{wanted.name}.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(table.header)
        writer.writerows(table.rows)
    return file


def _drawn(wanted: PaperFigure, table: Table) -> Figure:
    figure = Figure(figsize=wanted.size, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    wanted.draw(figure, table)
    return figure


def plain(
    axes: Axes,
    title: str,
    *,
    x: str,
    y: str,
    grid: Literal["x", "y", "both"] = "both",
    **settings: Any,  # noqa: ANN401 - of `Axes.set`
) -> None:
    """Title to the left, labels with their units, no frame, a pale grid behind; `settings` are those of `Axes.set`."""
    axes.set(**settings)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=10)
    axes.set_xlabel(x, color=GREY)
    axes.set_ylabel(y, color=GREY)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    axes.tick_params(colors=GREY, which="both", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=PALE, linewidth=0.8)


def label(
    axes: Axes,
    words: str,
    at: tuple[float, float],
    colour: str,
    *,
    ha: Literal["left", "center", "right"] = "left",
    va: Literal["top", "center", "bottom"] = "center",
) -> None:
    """Write words beside a curve, in its colour, on a ground that hides the grid."""
    axes.annotate(
        words,
        at,
        color=colour,
        fontsize=9,
        ha=ha,
        va=va,
        linespacing=1.35,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2, "alpha": 0.85},
        zorder=5,
    )


def logarithmic_deltas(axes: Axes) -> None:
    """Mark every second power of ten on the vertical axis."""
    axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(-12, 0, 2)]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{round(math.log10(value))}}}$"))
    axes.yaxis.set_minor_formatter(NullFormatter())
