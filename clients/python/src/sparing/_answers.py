"""A released answer: its numbers with their names, intervals around them, and the same as arrays and data frames."""

import html
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sparing._coordinates import PerItem, by_coordinate, by_item, common
from sparing._errors import misread
from sparing._labels import Labels, named_axes
from sparing._matrices import matrix_of
from sparing._models import Dataset
from sparing._normal import half_width, laplace_half_width
from sparing._printable import printable
from sparing._result_names import ResultNames
from sparing._rounding import with_error, with_half_widths

SHOWN_MAX: Final = 20
"""The most numbers of an answer that a notebook shows."""
_BAR_PX: Final = 160
_NAMED_MAX: Final = 3
"""The most averages that one sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The ends of an interval around one number."""

    low: float
    high: float

    def __contains__(self, number: float) -> bool:
        """Tell whether a number lies in the interval, ends included."""
        return self.low <= number <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One of the k largest numbers of an answer; `is_certain` if the noise leaves no doubt about this."""

    label: Mapping[str, object]
    value: float
    interval: Interval
    is_certain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """A number worked out from an answer, such as a mean, with its label and the intervals around it."""

    label: Mapping[str, object]
    value: float  # nan where a count of 0 was divided by
    interval_at: Callable[[float], Interval] = field(repr=False, compare=False)  # by confidence
    coverage_certified: bool = False  # of the answer that it is worked out from
    bounds: Interval | None = None  # what the declared bounds allow
    is_reliable: bool = True  # False where a count that is divided by is within five standard deviations of 0
    is_interpolated: bool = False  # a quantile within a bin that has more than a tenth of the rows

    @property
    def is_useless(self) -> bool:
        """Tell whether the interval at 95 % is as wide as the declared bounds, and so says nothing."""
        return self.bounds is not None and self.interval() == self.bounds

    def distances(self, confidence: float = 0.95) -> tuple[float, float]:
        """The distances from the value to the two ends of the interval."""
        around = self.interval(confidence)
        return self.value - around.low, around.high - self.value

    def interval(self, confidence: float = 0.95) -> Interval:
        """The interval that holds the number without noise, with at least this confidence.

        Raises ValueError for a confidence not above 0 and below 1.
        """
        return self.interval_at(confidence)

    def half_width(self, confidence: float = 0.95) -> float:
        """The distance from the value to the further end of the interval."""
        return max(self.distances(confidence))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """A released answer: the exact clipped sum over all individuals that could afford the query, plus noise.

    That sum is what was counted. The truth also includes the individuals that could not pay, and is not clipped: it may
    differ from a number by more than `half_width_95`. If `coverage_certified`, no individual with the dataset's limit
    was left out. `values` has one number per coordinate, in the order of `labels`; each is a multiple of `grid`. If
    items have precisions of their own, `sigma`, `grid` and `half_width_95` have a number for each item.
    """

    id: str
    sequence: int  # its place in the dataset's ledger
    values: tuple[float, ...]
    labels: Sequence[Mapping[str, object]]  # {"country": "NO", "select": "count"}; above 10,000 made when they are read
    axes: tuple[Mapping[str, object], ...]  # the same in a few lines: the groups from the outermost in, then the items
    sigma: PerItem  # standard deviation of the noise in each coordinate, in the query's units
    grid: PerItem
    dimension: int
    half_width_95: PerItem  # value ± this covers what was counted with probability 0.95 or more; not always the truth
    worst_case_rho: Decimal
    coverage_certified: bool  # public arithmetic alone proves that no one was left out
    reused: bool  # released before; nothing was charged again
    epoch: int
    released_at: datetime
    worst_case_share: float | None = None  # of the dataset's budget
    largest_countable_norm: PerItem | None = None  # a longer vector is beyond the smallest limit
    warnings: tuple[str, ...] = ()  # likely mistakes, in words
    idempotency_key: str | None = None  # the idempotency key of the query; None for a fetched answer
    mechanism: str = "gaussian"  # "laplace" for Laplace noise
    scale: float | None = None  # of Laplace noise
    tick: int | None = None  # its number, of a tick of the dataset's monitor
    averages: tuple[Average, ...] = ()  # of a query with averages, all that it selects; the rest is of linear items
    coverage_words: str = ""  # who may be missing, in a sentence
    notes: tuple[str, ...] = ()  # bounds by which an individual may count for less; the day of a repeated answer
    table: str  # that was asked, whose columns labels and axes name

    def __post_init__(self) -> None:
        """Make the labels from the axes if the service sent none, as it does above 10,000 coordinates."""
        if not self.labels and self.axes:
            object.__setattr__(self, "labels", Labels(self.axes))

    def named(self, dataset: Dataset) -> "Answer":
        """The answer with labels completed from the public schema; only answers above 10,000 coordinates need this.

        Before that, such an answer numbers three kinds of values from 0 in their order: more than 1,000 categories,
        bins of a width, and parts of the calendar.
        """
        if not isinstance(self.labels, Labels):
            return self
        with misread("the schema is not that of this answer"):
            return replace(self, axes=tuple(named_axes(self.axes, dataset.tables, self.table)), labels=())

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences on why the numbers may differ from the truth by more than noise; all forms of output show them."""
        return (*self.missing, *self.notes, *_words_of(self.averages))

    @property
    def has_laplace(self) -> bool:
        """Tell whether some of the noise is Laplace noise."""
        return self.scale is not None

    @property
    def missing(self) -> tuple[str, ...]:
        """The sentence that people may be missing; empty if `coverage_certified`."""
        return () if self.coverage_certified or not self.coverage_words else (self.coverage_words,)

    @property
    def value(self) -> float:
        """The one number that was asked for, which may be an average. Raises ValueError if there are several."""
        _, values, _ = self.measured()
        if len(values) != 1:
            raise ValueError(f"this answer has {len(values)} values; use .{'averages' if self.averages else 'values'}")
        return values[0]

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The standard deviation of the noise in each coordinate."""
        return by_coordinate(self.sigma, self.axes, self.dimension)

    @property
    def grids(self) -> tuple[float, ...]:
        """The grid of each coordinate."""
        return by_coordinate(self.grid, self.axes, self.dimension)

    @property
    def half_widths(self) -> tuple[float, ...]:
        """The half width of each coordinate at 95 %."""
        return by_coordinate(self.half_width_95, self.axes, self.dimension)

    def half_width(self, confidence: float = 0.95, *, simultaneous: bool = False) -> float:
        """The largest distance of each number from what was counted, with at least this confidence.

        With `simultaneous`, the confidence is that all numbers are within the distance at once. As the noise of the d
        coordinates is independent, each coordinate then needs confidence^(1/d).

        Raises ValueError for a confidence not above 0 and below 1, and if items have precisions of their own: use
        `intervals` then.
        """
        return common(self._half_width(confidence, simultaneous=simultaneous))

    def intervals(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Interval, ...]:
        """The interval around each number; the arguments are those of `half_width`."""
        widths = self._half_widths(confidence, simultaneous=simultaneous)
        return tuple(
            Interval(low=value - width, high=value + width) for value, width in zip(self.values, widths, strict=True)
        )

    def interval(self, confidence: float = 0.95) -> Interval:
        """The interval around `value`. Raises ValueError if there are several numbers."""
        if len(self.averages) == 1:
            return self.averages[0].interval(confidence)
        width = self.half_width(confidence)
        return Interval(low=self.value - width, high=self.value + width)

    def _half_widths(self, confidence: float, *, simultaneous: bool = False) -> tuple[float, ...]:
        return by_coordinate(self._half_width(confidence, simultaneous=simultaneous), self.axes, self.dimension)

    def _half_width(self, confidence: float, *, simultaneous: bool) -> PerItem:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
        each = math.exp(math.log(confidence) / self.dimension) if simultaneous else confidence
        if self.scale is not None and not isinstance(self.grid, tuple):
            return laplace_half_width(scale=self.scale, grid=self.grid, confidence=each)
        widths = tuple(
            half_width(sigma=sigma, grid=grid, confidence=each)
            for sigma, grid in zip(by_item(self.sigma), by_item(self.grid), strict=True)
        )
        return widths if isinstance(self.sigma, tuple) else widths[0]

    def top(self, k: int, *, confidence: float = 0.95) -> tuple[Ranked, ...]:
        """The k largest numbers, and which of them are certainly among the k largest of what was counted.

        All statements hold at once with at least this confidence. A number is certain if its simultaneous interval lies
        above the intervals of all numbers outside the k. Raises ValueError for k below 1.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        order = sorted(range(self.dimension), key=lambda place: -self.values[place])
        around = self.intervals(confidence, simultaneous=True)
        rival = max((around[place].high for place in order[k:]), default=-math.inf)
        return tuple(
            Ranked(
                label=self.labels[place],
                value=self.values[place],
                interval=around[place],
                is_certain=around[place].low > rival,
            )
            for place in order[:k]
        )

    def to_numpy(self) -> Any:  # noqa: ANN401 - an array of a library that is not needed otherwise
        """The numbers as an array of doubles, (dimension,). Raises ImportError without numpy."""
        return _library("numpy").array(self.values, dtype="float64")

    @property
    def matrix(self) -> Any:  # noqa: ANN401 - as above
        """The symmetric matrix (d, d) of the moments of d features, or a gradient as an array (d,).

        A gradient of several classes is an array (classes, d). Raises ValueError for other items, ImportError without
        numpy.
        """
        return matrix_of(self.values, self.axes, _library("numpy"))

    def to_pandas(self) -> Any:  # noqa: ANN401 - as above
        """A pandas data frame with a row for each number: its label by column, `value` and `half_width_95`.

        `coverage_certified` is a column too, so that it stays with the numbers, and `attrs["caveats"]` has the caveats.
        A query with averages has a row for each average, and the columns `low_95` and `high_95` for the ends of its
        interval. If the data has a column of the same name, the result's column gets an underscore: `value_`. Raises
        ImportError without pandas.
        """
        frame = _library("pandas").DataFrame(self._columns())
        frame.attrs["caveats"] = list(self.caveats)
        return frame

    def to_polars(self) -> Any:  # noqa: ANN401 - as above
        """The columns of `to_pandas` as a data frame of polars. Raises ImportError without polars."""
        return _library("polars").DataFrame(self._columns(), strict=False)

    def to_arrow(self) -> Any:  # noqa: ANN401 - as above
        """The columns of `to_pandas` as a pyarrow table, with the caveats in the metadata of its schema."""
        table = _library("pyarrow").table(self._columns())
        return table.replace_schema_metadata({"caveats": "\n".join(self.caveats)})

    def plot(self, ax: Any = None, *, item: str | None = None, confidence: float = 0.95) -> Any:  # noqa: ANN401 - as above
        """Draw the numbers as points with error bars, and return the matplotlib axes, which are new ones by default.

        `item`, a title as in the labels, draws this item alone: counts and sums differ in scale. Raises ValueError for
        an unknown item, and ImportError without matplotlib.
        """
        measured = zip(*self.measured(confidence), strict=True)
        chosen = [each for each in measured if item is None or each[0]["select"] == item]
        if not chosen:
            raise ValueError(f"this answer has no item {item}")
        labels, values, distances = zip(*chosen, strict=True)
        if ax is None:
            ax = _library("matplotlib.pyplot").subplots()[1]
        names = [_plain(name) for name in _texts(labels)]
        ax.errorbar(names, values, yerr=[*zip(*distances, strict=True)], fmt="o", capsize=3)
        if words := (*self.warnings, *self.caveats):
            ax.set_title(_plain("\n".join(words)), fontsize="small", wrap=True)
        ax.set_ylabel(f"value ± {confidence:.12g} interval")
        ax.tick_params(axis="x", rotation=90 if len(names) > SHOWN_MAX // 2 else 0)
        return ax

    def __repr__(self) -> str:
        """A text of one line, whatever the dimension."""
        if self.averages:
            shown = _beside([with_error(each.value, *each.distances()) for each in self.averages[:3]])
            shown += ", ..." if len(self.averages) > 3 else ""
        else:
            rest = ", ..." if self.dimension > 3 else ""
            shown = with_half_widths(self.values[:3], self.half_widths[:3], rest=rest)
        more = f", caveats={list(self.caveats)}" if self.caveats else ""
        more += f", warnings={list(self.warnings)}" if self.warnings else ""
        more += f", averages={len(self.averages)}" if self.averages else ""
        return f"Answer({shown}{more}, dimension={self.dimension}, id={self.id!r})"

    def _repr_html_(self) -> str:
        """An HTML table of the first numbers with error bars, for notebooks."""
        labels, values, distances = self.measured()
        labels, values, distances = labels[:SHOWN_MAX], values[:SHOWN_MAX], distances[:SHOWN_MAX]
        ends = [abs(value) + max(around) for value, around in zip(values, distances, strict=True)]
        items, largest = [str(label.get("select")) for label in labels], dict[str, float]()  # items differ in scale
        for item, end in zip(items, ends, strict=True):
            largest[item] = max(largest.get(item, 0.0), end if math.isfinite(end) else 0.0)
        named = zip(_texts(labels), values, distances, items, strict=True)
        rows = "".join(_row(name, value, around, largest[item] or 1.0) for name, value, around, item in named)
        count = len(self.averages) or self.dimension
        rest = "" if count <= SHOWN_MAX else f"<caption>{SHOWN_MAX} of {count:,} numbers</caption>"
        notes = "".join(f"<p><strong>Warning:</strong> {_html(warning)}</p>" for warning in self.warnings)
        notes += "".join(
            f"<p>{_html(words)}</p>" for words in dict.fromkeys((*self.caveats, self.coverage_words)) if words
        )
        return f"{notes}<table>{rest}<tr><th>group</th><th>value</th><th>± 95 %</th><th></th></tr>{rows}</table>"

    def measured(
        self, confidence: float | None = None
    ) -> tuple[Sequence[Mapping[str, object]], Sequence[float], Sequence[tuple[float, float]]]:
        """The labels, the numbers, and the distances from each number to the ends of its interval.

        They are those of the averages if there are any. Without a confidence, intervals are at 95 %; the half widths of
        counted numbers are then as the service states them.
        """
        if not self.averages:
            widths = self.half_widths if confidence is None else self._half_widths(confidence)
            return self.labels, self.values, [(width, width) for width in widths]
        distances = [each.distances(confidence or 0.95) for each in self.averages]
        return [each.label for each in self.averages], [each.value for each in self.averages], distances

    def _columns(self) -> dict[str, list[object]]:
        labels, values, distances = self.measured()
        if isinstance(labels, Labels):
            columns = labels.columns()
        else:
            names = dict.fromkeys(name for label in labels for name in label)
            columns = {name: [label.get(name) for label in labels] for name in names}
        results: dict[str, list[object]] = {"value": list(values), "half_width_95": [max(each) for each in distances]}
        if self.averages:
            around = [each.interval() for each in self.averages]
            results |= {"low_95": [each.low for each in around], "high_95": [each.high for each in around]}
        results["coverage_certified"] = [self.coverage_certified] * len(values)
        free = ResultNames(columns).free
        return columns | {free(name): column for name, column in results.items()}


def _row(name: str, value: float, distances: tuple[float, float], largest: float) -> str:
    """An HTML table row with a bar for the value, and a lighter bar behind it for the interval."""
    scale, (shown, below, above) = _BAR_PX / largest, (min(abs(each), largest) for each in (value, *distances))
    bar = (
        f'<div style="width:{_BAR_PX}px;background:#8882;position:relative;height:1em">'
        f'<div style="position:absolute;left:{max(shown - below, 0) * scale:.1f}px;'
        f'width:{(below + above) * scale:.1f}px;height:1em;background:#4a7ebb66"></div>'
        f'<div style="width:{shown * scale:.1f}px;height:1em;background:#4a7ebb"></div></div>'
    )
    number, error = with_error(value, *distances, mark=",")
    return f"<tr><td>{_html(name)}</td><td>{number}</td><td>{error}</td><td>{bar}</td></tr>"


def _html(text: str) -> str:
    return html.escape(printable(text))


def _beside(shown: Sequence[tuple[str, str]]) -> str:
    """Numbers with their errors: `139 ± 16, 26.7 (25.1, 28.0)`."""
    return ", ".join(f"{number} {error}" if error.startswith("(") else f"{number} ± {error}" for number, error in shown)


def _words_of(averages: Sequence[Average]) -> Iterator[str]:
    """The sentences that warn of averages: those with useless intervals, and those interpolated within a wide bin."""
    useless = [each for each in averages if each.is_useless]
    if useless:
        yield f"The interval is the whole domain, and so of no use: {_named(useless)}."
    interpolated = [each for each in averages if each.is_interpolated]
    if interpolated:
        yield f"The number is interpolated within a bin that has more than a tenth of the rows: {_named(interpolated)}."


def _named(averages: Sequence[Average]) -> str:
    """The first few averages by their items and groups, and the number of the rest."""
    names = []
    for each in averages[:_NAMED_MAX]:
        groups = ", ".join(str(value) for name, value in each.label.items() if name != "select")
        names.append(f"{each.label['select']}{' of ' * bool(groups)}{groups}")
    rest = len(averages) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _texts(labels: Sequence[Mapping[str, object]]) -> list[str]:
    """The groups of each label as a text; with the item if there are several items or no groups."""
    has_items = len({label.get("select") for label in labels}) > 1
    found = []
    for label in labels:
        groups = [str(value) for name, value in label.items() if name != "select"]
        item = [str(label["select"])] if "select" in label and (has_items or not groups) else []
        found.append(", ".join([*groups, *item]))
    return found


def _plain(text: str) -> str:
    """The text with its dollars escaped, as matplotlib reads a formula between two dollars."""
    return text.replace("$", r"\$")


def _library(name: str) -> Any:  # noqa: ANN401 - a module
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"this needs {name.partition('.')[0]}: pip install {name.partition('.')[0]}") from None
