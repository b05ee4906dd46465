"""A histogram made consistent from noisy counts of nested bins: its counts, totals and quantiles, with error bars."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sparing._answers import Interval
from sparing._bins import bins_of
from sparing._combine import Released, check_independent
from sparing._estimates import Estimate
from sparing._laplace_sums import noise_quantile
from sparing._nested_counts import NestedCounts, NoisyLevel, WeightedSum
from sparing._rooms.estimates import crossing, isotonic
from sparing._selected import Selection, selected


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A point with a stated share of the counted rows below it."""

    probability: float
    value: float  # rows are taken to be spread evenly within a bin
    interval: Interval  # from an edge to an edge, without that assumption


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ConsistentHistogram:
    """Counts of bins that add up to the counts of coarser bins; made by `consistent_histogram`.

    The counts are the least-squares estimates from all levels: unbiased, of least variance, and possibly negative.
    """

    column: str
    edges: tuple[float, ...]  # one more than there are bins
    values: tuple[float, ...]  # of the finest bins
    coverage_certified: bool  # of every answer that it is worked out from
    has_laplace: bool  # some of the noise is Laplace noise
    _counts: NestedCounts

    def between(self, low: float, high: float) -> Estimate:
        """The count between two edges. Raises ValueError unless both are edges and `low` is below `high`."""
        for name, edge in (("low", low), ("high", high)):
            if edge not in self.edges:
                raise ValueError(f"{name} must be an edge of {self.column}, got {edge}")
        if low >= high:
            raise ValueError(f"low must be below high, got {low} and {high}")
        first, last, cells = self.edges.index(low), self.edges.index(high), len(self.values)
        pieces = [(0, 0.0)] * (first > 0) + [(first, 1.0)] + [(last, 0.0)] * (last < cells)
        cuts, weights = (*(cut for cut, _ in pieces), cells), tuple(weight for _, weight in pieces)
        return Estimate(
            label={self.column: (low, high)},
            value=math.fsum(self.values[first:last]),
            standard_error=math.sqrt(self._counts.variance(WeightedSum(cuts=cuts, weights=weights))),
            coverage_certified=self.coverage_certified,
            has_laplace=self.has_laplace,
        )

    def quantile(self, probability: float, *, confidence: float = 0.95) -> Quantile:
        """The point below which this share of the counted rows lies: 0.5 for the median.

        The value is the point at which the number of rows below equals the share of the total, after isotonic
        regression. The interval ends at the outermost edges that the noise does not rule out: the true quantile is
        beyond each end with a probability of at most (1 - confidence) / 2. As in the service, a bin includes its lower
        edge; the bin of an integer ends at the next integer.

        Raises:
            ValueError: the probability or the confidence is not above 0 and below 1.

        Source: Woodruff, Confidence intervals for medians and other position measures, J. Am. Stat. Assoc. 47 (1952);
        Barlow, Bartholomew, Bremner & Brunk, Statistical Inference under Order Restrictions, 1972.
        """
        if not 0 < probability < 1:
            raise ValueError(f"probability must be above 0 and below 1, got {probability}")
        deviations = noise_quantile(confidence, has_laplace=self.has_laplace)
        below = [0.0, *accumulate(self.values)]
        excess = [count - probability * below[-1] for count in below]  # at each edge
        return Quantile(
            probability=probability,
            value=crossing(isotonic(excess), self.edges),
            interval=self._not_ruled_out(excess, probability, deviations),
        )

    def __repr__(self) -> str:
        """A text of one line, whatever the number of bins."""
        ends = f"{self.edges[0]:.10g} to {self.edges[-1]:.10g}"
        certified = f"coverage_certified={self.coverage_certified}"
        return f"ConsistentHistogram({self.column} from {ends}, bins={len(self.values)}, {certified})"

    def _not_ruled_out(self, excess: Sequence[float], probability: float, deviations: float) -> Interval:
        """The interval from the first bin that may end above the quantile to the last bin that may begin below it."""
        cells = len(self.values)

        def slack(cut: int) -> float:
            inner = 0 < cut < cells
            cuts = (0, cut, cells) if inner else (0, cells)
            weights = (1 - probability, -probability) if inner else (1.0 * (cut == cells) - probability,)
            return deviations * math.sqrt(self._counts.variance(WeightedSum(cuts=cuts, weights=weights)))

        first = next((cut - 1 for cut in range(1, cells + 1) if excess[cut] >= -slack(cut)), 0)
        last = next((cut + 1 for cut in range(cells - 1, -1, -1) if excess[cut] <= slack(cut)), cells)
        return Interval(low=self.edges[first], high=self.edges[last])


def consistent_histogram(
    levels: Sequence[Selection], *, within: Mapping[str, object] | None = None
) -> ConsistentHistogram:
    """The histogram that best fits answers to queries grouped by coarser and coarser bins of one column.

    Args:
        levels: an answer for each level of `bin_levels`, in any order; for an answer with several items, the pair of
            the answer and the title of one item. Sigmas may differ, levels may be missing, and one level is enough.
        within: the values of other columns that the answers are grouped by, such as `{"country": "NO"}`.

    Raises:
        ValueError: an answer has no column of bins or several; its bins are not unions of the finest level's bins; an
            answer is given twice; or the answers are of several epochs.

    Source: Hay, Rastogi, Miklau & Suciu, Boosting the accuracy of differentially private histograms through
    consistency, VLDB 2010; see the module `_nested_counts`.
    """
    if not levels:
        raise ValueError("levels must not be empty")
    found = [_level(selection, within or {}, f"levels[{place}]") for place, selection in enumerate(levels)]
    check_independent([level.released for level in found], "levels")
    found.sort(key=lambda level: -len(level.counts))
    for finer, coarser in pairwise(found):
        _check_nested(finer, coarser)
    cells = {edge: cell for cell, edge in enumerate(found[0].edges)}
    counts = NestedCounts([level.noisy(cells) for level in found])
    return ConsistentHistogram(
        column=found[0].column,
        edges=found[0].edges,
        values=counts.cells,
        coverage_certified=all(level.released.coverage_certified for level in found),
        has_laplace=any(level.released.has_laplace for level in found),
        _counts=counts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    name: str  # of the argument, for messages
    released: Released
    measure: str
    column: str
    edges: tuple[float, ...]
    counts: tuple[float, ...]
    variance: float

    def noisy(self, cells: Mapping[float, int]) -> NoisyLevel:
        bounds = tuple(cells[edge] for edge in self.edges)
        return NoisyLevel(bounds=bounds, counts=self.counts, variance=self.variance)


def _level(selection: Selection, within: Mapping[str, object], name: str) -> _Level:
    found = selected(selection, name)
    column, edges = bins_of(found.released, found.item, within, name)
    counts = found.within(within)
    if len(counts) != len(edges) - 1:
        raise ValueError(f"{name} has {len(counts)} numbers for {len(edges) - 1} bins within {dict(within)}")
    return _Level(
        name=name,
        released=found.released,
        measure=found.measure,
        column=column,
        edges=edges,
        counts=counts,
        variance=found.variance,
    )


def _check_nested(finer: _Level, coarser: _Level) -> None:
    for word in ("column", "measure"):
        if getattr(finer, word) != getattr(coarser, word):
            raise ValueError(
                f"{coarser.name} has the {word} {getattr(coarser, word)}, {finer.name} {getattr(finer, word)}"
            )
    ends, wanted = _ends(coarser), _ends(finer)
    if ends != wanted:
        raise ValueError(f"{coarser.name} is from {ends}, and {finer.name} from {wanted}")
    if foreign := sorted(set(coarser.edges) - set(finer.edges)):
        raise ValueError(f"{coarser.name} has the edge {foreign[0]:.12g}, and the finer {finer.name} has not")


def _ends(level: _Level) -> str:
    return f"{level.edges[0]:.12g} to {level.edges[-1]:.12g}"
