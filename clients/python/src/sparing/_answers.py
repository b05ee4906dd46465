"""A released answer: its numbers with their names, intervals around them, and the same as arrays and data frames."""

import html
import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sparing._normal import half_width

SHOWN_MAX: Final = 20
"""Numbers that a notebook shows of an answer."""
_BAR_PX: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The ends of an interval around one number."""

    low: float
    high: float

    def __contains__(self, number: float) -> bool:
        """Whether a number lies in it, its ends included."""
        return self.low <= number <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One of the largest numbers of an answer; `is_certain` if, at the confidence, it is among the k largest."""

    label: Mapping[str, object]
    value: float
    interval: Interval
    is_certain: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """A released answer: the exact clipped sum over all individuals that could afford the query, plus noise.

    That sum is what was counted. The truth, which those who could not pay and what was clipped belong to, may be
    further off than `half_width_95`; while `coverage_certified`, no individual with the dataset's limit was left out.
    `values` has one number per coordinate, in the order of `labels`; each is a multiple of `grid`.
    """

    id: str
    sequence: int  # its place in the dataset's ledger
    values: tuple[float, ...]
    labels: tuple[Mapping[str, object], ...]  # {"country": "NO", "select": "count"}; empty above 10,000 coordinates
    axes: tuple[Mapping[str, object], ...]  # the same in a few lines: the groups from the outermost in, then the items
    sigma: float  # standard deviation of the noise in each coordinate, in the query's units
    grid: float
    dimension: int
    half_width_95: float  # value ± this covers what was counted with probability 0.95 or more; not always the truth
    worst_case_rho: Decimal
    coverage_certified: bool  # public arithmetic alone proves that no one was left out
    reused: bool  # released before; nothing was charged again
    epoch: int
    released_at: datetime
    worst_case_share: float | None = None  # of the dataset's budget
    largest_countable_norm: float | None = None  # a longer vector is beyond the smallest limit
    warnings: tuple[str, ...] = ()  # likely mistakes, in words
    idempotency_key: str | None = None  # the idempotency key of the query; None for a fetched answer

    @property
    def value(self) -> float:
        """The number, for an answer with one coordinate; ValueError otherwise."""
        if len(self.values) != 1:
            raise ValueError(f"this answer has {len(self.values)} values; use .values")
        return self.values[0]

    def half_width(self, confidence: float = 0.95, *, simultaneous: bool = False) -> float:
        """The distance within which each number is of what was counted, with at least this confidence.

        With `simultaneous`, all numbers are, at once: the noise of the d coordinates is independent, so that each
        needs confidence^(1/d). Raises ValueError for a confidence not above 0 and below 1.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
        each = math.exp(math.log(confidence) / self.dimension) if simultaneous else confidence
        return half_width(sigma=self.sigma, grid=self.grid, confidence=each)

    def intervals(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Interval, ...]:
        """An interval around each number, as `half_width` says."""
        width = self.half_width(confidence, simultaneous=simultaneous)
        return tuple(Interval(low=value - width, high=value + width) for value in self.values)

    def interval(self, confidence: float = 0.95) -> Interval:
        """The interval around the number of an answer with one coordinate; ValueError otherwise."""
        width = self.half_width(confidence)
        return Interval(low=self.value - width, high=self.value + width)

    def top(self, k: int, *, confidence: float = 0.95) -> tuple[Ranked, ...]:
        """The k largest numbers, and which of them are certainly among the k largest of what was counted.

        All statements hold at once with at least this confidence: a number is certain if its simultaneous interval
        lies above those of all numbers but k - 1. Raises ValueError for k below 1, and above 10,000 coordinates, where
        there are no labels.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        labels = self._named()
        order = sorted(range(self.dimension), key=lambda place: -self.values[place])
        around = self.intervals(confidence, simultaneous=True)
        rival = max((around[place].high for place in order[k:]), default=-math.inf)
        return tuple(
            Ranked(
                label=labels[place],
                value=self.values[place],
                interval=around[place],
                is_certain=around[place].low > rival,
            )
            for place in order[:k]
        )

    def to_numpy(self) -> Any:  # noqa: ANN401 - an array of a library that is not needed otherwise
        """The numbers as an array of doubles, (dimension,). Raises ImportError without numpy."""
        return _library("numpy").array(self.values, dtype="float64")

    def to_pandas(self) -> Any:  # noqa: ANN401 - as above
        """One row for each number: its label by column, `value` and `half_width_95`. Raises ImportError."""
        return _library("pandas").DataFrame(self._columns())

    def to_polars(self) -> Any:  # noqa: ANN401 - as above
        """The same of polars."""
        return _library("polars").DataFrame(self._columns(), strict=False)

    def to_arrow(self) -> Any:  # noqa: ANN401 - as above
        """The same as a pyarrow table."""
        return _library("pyarrow").table(self._columns())

    def plot(self, ax: Any = None, *, confidence: float = 0.95) -> Any:  # noqa: ANN401 - as above
        """Points with error bars on matplotlib axes, by default new ones, which are returned. Raises ImportError."""
        if ax is None:
            ax = _library("matplotlib.pyplot").subplots()[1]
        names = [_text(label) for label in self.labels] or [str(place) for place in range(self.dimension)]
        ax.errorbar(names, self.values, yerr=self.half_width(confidence), fmt="o", capsize=3)
        ax.set_ylabel(f"value ± {confidence:.12g} interval")
        ax.tick_params(axis="x", rotation=90 if len(names) > SHOWN_MAX // 2 else 0)
        return ax

    def __repr__(self) -> str:
        """One line, whatever the dimension."""
        shown = ", ".join(f"{value:.10g}" for value in self.values[:3]) + (", ..." if self.dimension > 3 else "")
        return f"Answer({shown} ± {self.half_width_95:.10g}, dimension={self.dimension}, id={self.id!r})"

    def _repr_html_(self) -> str:
        """A table with error bars, of the first numbers, for notebooks."""
        values = self.values[:SHOWN_MAX]
        largest = max((abs(value) + self.half_width_95 for value in values), default=1.0) or 1.0
        names = self.labels[:SHOWN_MAX] or [{"coordinate": place} for place in range(len(values))]
        rows = "".join(
            _row(label, value, self.half_width_95, largest) for label, value in zip(names, values, strict=False)
        )
        rest = "" if self.dimension <= SHOWN_MAX else f"<caption>{SHOWN_MAX} of {self.dimension:,} numbers</caption>"
        notes = "".join(f"<p>{html.escape(warning)}</p>" for warning in self.warnings)
        return f"<table>{rest}<tr><th>group</th><th>value</th><th>± 95 %</th><th></th></tr>{rows}</table>{notes}"

    def _named(self) -> Sequence[Mapping[str, object]]:
        if not self.labels:
            raise ValueError(f"an answer with {self.dimension} numbers has no labels; use .axes and .to_numpy()")
        return self.labels

    def _columns(self) -> dict[str, list[object]]:
        names = dict.fromkeys(name for label in self.labels for name in label)
        columns: dict[str, list[object]] = {name: [label.get(name) for label in self.labels] for name in names}
        if not self.labels:
            columns["coordinate"] = list(range(self.dimension))
        return columns | {"value": list(self.values), "half_width_95": [self.half_width_95] * self.dimension}


def _row(label: Mapping[str, object], value: float, width: float, largest: float) -> str:
    """The bar is the value, and the lighter part behind it the interval."""
    scale = _BAR_PX / largest
    bar = (
        f'<div style="width:{_BAR_PX}px;background:#8882;position:relative;height:1em">'
        f'<div style="position:absolute;left:{max(abs(value) - width, 0) * scale:.1f}px;'
        f'width:{2 * width * scale:.1f}px;height:1em;background:#4a7ebb66"></div>'
        f'<div style="width:{abs(value) * scale:.1f}px;height:1em;background:#4a7ebb"></div></div>'
    )
    return f"<tr><td>{html.escape(_text(label))}</td><td>{value:,.6g}</td><td>{width:,.4g}</td><td>{bar}</td></tr>"


def _text(label: Mapping[str, object]) -> str:
    groups = [str(value) for name, value in label.items() if name != "select"]
    return ", ".join([*groups, str(label["select"])] if "select" in label and not groups else groups)


def _library(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"this needs {name.partition('.')[0]}: pip install {name.partition('.')[0]}") from None
