"""Averages from the answer to their linear query, each in its group with an interval."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from sparing._answers import Answer, Average, Interval
from sparing._averages import AverageItem, LinearQuery, Span
from sparing._estimates import ratios, variances
from sparing._expressions import Item
from sparing._histograms import ConsistentHistogram, consistent_histogram
from sparing._normal import half_width

INTERPOLATED_SHARE: Final = 0.1
"""Where a bin has more of the rows, a quantile within it is said to be interpolated."""
Bounds = tuple[float, float]
IntervalAt = Callable[[float], Interval]
"""The interval around a number, by confidence."""


def averaged(answer: Answer, query: LinearQuery) -> Answer:
    """The answer with its averages, group by group, and in each group in the order in which they were asked for."""
    items = _titles(answer)
    rows = [
        list(_of_item(item, span, [items[place] for place in places], answer)) for item, span, places in query.selected
    ]
    groups = math.gcd(*map(len, rows))
    return replace(
        answer,
        averages=tuple(
            replace(each, coverage_certified=answer.coverage_certified)
            for group in range(groups)
            for row in rows
            for each in row[group * len(row) // groups : (group + 1) * len(row) // groups]
        ),
    )


def _titles(answer: Answer) -> list[list[str]]:
    """Of each item that was sent, its titles in the labels: several functionals have one each."""
    axes = answer.axes[-1]["select"]
    found: dict[object, list[str]] = {}
    for place, axis in enumerate(axes if isinstance(axes, list | tuple) else ()):
        found.setdefault(axis.get("item", place), []).append(str(axis["select"]))
    return list(found.values())


def _of_item(
    item: Item | AverageItem, span: Span | None, titles: Sequence[Sequence[str]], answer: Answer
) -> Iterator[Average]:
    parts = [(answer, title) for title, *_ in titles]
    if isinstance(item, Item) or span is None:
        yield from _as_it_is(answer, titles[0])
    elif item.kind == "quantile":
        yield from _quantiles(item, span, answer)
    elif item.kind == "mean":
        for ratio in ratios(*parts):
            yield _average(item, ratio.label, ratio.value, ratio.interval, span.middle, (span.low, span.high))
    else:
        sums, counts, squares = parts
        for found in variances(squares, sums, counts):
            shift, bounds = span.half**2 / 2, (0.0, span.half**2)
            each = _average(item, found.label, found.value, found.interval, shift, bounds)
            yield _root(each, span.half) if item.kind == "stddev" else each


def _average(
    item: AverageItem, label: Mapping[str, object], value: float, interval: IntervalAt, shift: float, bounds: Bounds
) -> Average:
    """A number that was worked out around `shift`, with an interval that keeps to the bounds of what it estimates.

    A mean keeps to them itself. A variance does not: the mean of many that were cut would be biased.
    """
    number = value + shift
    if item.kind == "mean":
        number = min(max(number, bounds[0]), bounds[1])

    def within(confidence: float) -> Interval:
        found = interval(confidence)
        return _kept(found.low + shift, found.high + shift, bounds)

    around = Interval(low=bounds[0], high=bounds[1])
    return Average(label={**label, "select": item.title}, value=number, interval_at=within, bounds=around)


def _kept(low: float, high: float, bounds: Bounds) -> Interval:
    """The part of an interval within the bounds.

    One that the noise puts beyond a bound begins there and keeps its width. It is no certainty, as a part of width 0
    would seem to be.
    """
    width = high - low
    if high <= bounds[0]:
        low, high = bounds[0], bounds[0] + width
    elif low >= bounds[1]:
        low, high = bounds[1] - width, bounds[1]
    return Interval(low=max(low, bounds[0]), high=min(high, bounds[1]))


def _root(of: Average, half: float) -> Average:
    """The deviation of a variance, from 0 to half the domain."""

    def within(confidence: float) -> Interval:
        found = of.interval(confidence)
        return Interval(low=math.sqrt(found.low), high=math.sqrt(found.high))

    value = of.value if math.isnan(of.value) else min(math.sqrt(max(of.value, 0.0)), half)
    return Average(label=of.label, value=value, interval_at=within, bounds=Interval(low=0.0, high=half))


def _as_it_is(answer: Answer, titles: Sequence[str]) -> Iterator[Average]:
    """The numbers of a linear item."""
    for label, value, sigma, grid in zip(answer.labels, answer.values, answer.sigmas, answer.grids, strict=True):
        if label["select"] in titles or str(label["select"]).rpartition("[")[0] in titles:
            yield Average(label=label, value=value, interval_at=partial(_around, value, sigma, grid))


def _around(value: float, sigma: float, grid: float, confidence: float) -> Interval:
    width = half_width(sigma=sigma, grid=grid, confidence=confidence)
    return Interval(low=value - width, high=value + width)


def _quantiles(item: AverageItem, span: Span, answer: Answer) -> Iterator[Average]:
    """One for each group of the columns before the bins, which are the innermost.

    Where each bin is of one whole number, a quantile is that of the bin it falls into.
    """
    probability = item.probability or 0.5
    *outer, bins, last = answer.axes
    columns, column, size = [str(axis["column"]) for axis in outer], str(bins["column"]), int(str(bins["size"]))
    for start in range(0, answer.dimension, size):
        labels = answer.labels[start : start + size]
        one = replace(
            answer,
            values=answer.values[start : start + size],
            labels=tuple({column: label[column], "select": label["select"]} for label in labels),
            axes=(bins, last),
            dimension=size,
        )
        counts = consistent_histogram([one])
        is_whole = span.is_whole and item.edges is None and counts.edges[1] - counts.edges[0] == 1
        value = counts.quantile(probability).value
        bounds = (span.low, span.high) if item.edges is None else (counts.edges[0], counts.edges[-1])
        yield Average(
            label={**{name: labels[0][name] for name in columns}, "select": item.title},
            value=min(max(math.floor(value) if is_whole else value, bounds[0]), bounds[1]),
            interval_at=partial(_around_quantile, counts, probability, bounds, is_whole=is_whole),
            bounds=Interval(low=bounds[0], high=bounds[1]),
            is_interpolated=not is_whole and _share_beside(counts, value) > INTERPOLATED_SHARE,
        )


def _share_beside(counts: ConsistentHistogram, value: float) -> float:
    """The share of the rows that the bin of a value has."""
    place = min(bisect_right(counts.edges, value), len(counts.values)) - 1
    return counts.values[place] / max(math.fsum(counts.values), 1.0)


def _around_quantile(
    counts: ConsistentHistogram, probability: float, bounds: Bounds, confidence: float, *, is_whole: bool
) -> Interval:
    """The interval within the bounds; of whole numbers with a bin each, from the first to the last of them."""
    found = counts.quantile(probability, confidence=confidence).interval
    return Interval(low=max(found.low, bounds[0]), high=min(found.high - is_whole, bounds[1]))
