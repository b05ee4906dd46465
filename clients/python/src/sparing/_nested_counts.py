"""Noisy counts of nested intervals, made consistent: least squares in two passes over a forest.

Each level divides the same cells into intervals, and each interval of a level is a union of intervals of the finer
level below it. Going up, the count of an interval is averaged with the sum of its parts, weighted by their inverse
variances. Going down, the difference between an interval and its parts is shared out among the parts by their
variances. The result has the least variance of all unbiased linear estimates, and the parts of an interval add up to
it.

Source: Hay, Rastogi, Miklau & Suciu, Boosting the accuracy of differentially private histograms through consistency,
VLDB 2010, section 4, for equal variances and equal branching. Here variances and branching may differ, and the
variances of the results are worked out too: given the count of an interval, its parts are normal numbers conditioned on
their sum.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLevel:
    """One noisy count for each interval of a level."""

    bounds: tuple[int, ...]  # the first cell of each interval, then the number of cells
    counts: tuple[float, ...]
    variance: float  # of the noise in each count


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum:
    """A weighted sum over all cells: cells from cuts[j] to before cuts[j + 1] have the weight weights[j]."""

    cuts: tuple[int, ...]  # increasing, from 0 to the number of cells
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pooled:
    """A level whose counts are averaged with those of the finer levels below it."""

    bounds: tuple[int, ...]
    counts: tuple[float, ...]
    variances: tuple[float, ...]
    variance_sums: tuple[float, ...]  # of the intervals before each, then of all
    firsts: tuple[int, ...]  # the first part of each interval in the level below, then the number of parts


class NestedCounts:
    """Consistent counts of the cells, and the variance of any weighted sum of these counts."""

    def __init__(self, levels: Sequence[NoisyLevel]) -> None:
        """Make consistent counts from noisy levels, the finest first, whose intervals are the cells."""
        self._levels = [_finest(levels[0])]
        for level in levels[1:]:
            self._levels.append(_pooled(level, self._levels[-1]))
        counts = self._levels[-1].counts
        for pooled, below in pairwise(reversed(self._levels)):
            counts = _shared_out(counts, pooled, below)
        self.cells = counts

    def variance(self, of: WeightedSum) -> float:
        """The variance of a weighted sum. The time depends on the numbers of cuts and levels, not of cells."""
        parts: dict[int, tuple[float, float]] = {}
        for below, level in pairwise(self._levels):
            inside = {interval for cut in of.cuts[1:-1] if (interval := _cut_by(cut, level.bounds)) is not None}
            parts = {interval: _given_its_count(level, interval, below, of, parts) for interval in inside}
        top = self._levels[-1]
        return sum(weight**2 * spread + rest for weight, spread, rest in _runs(top, 0, len(top.counts), of, parts))


def _finest(level: NoisyLevel) -> _Pooled:
    variances = (level.variance,) * len(level.counts)
    return _Pooled(
        bounds=level.bounds,
        counts=level.counts,
        variances=variances,
        variance_sums=(0.0, *accumulate(variances)),
        firsts=(),
    )


def _pooled(level: NoisyLevel, below: _Pooled) -> _Pooled:
    """The upward pass: the count of each interval, averaged with the sum of its parts."""
    firsts = tuple(bisect_right(below.bounds, bound) - 1 for bound in level.bounds)
    counts, variances = [], []
    for own, (first, last) in zip(level.counts, pairwise(firsts), strict=True):
        spread = below.variance_sums[last] - below.variance_sums[first]
        both = spread + level.variance
        counts.append((own * spread + sum(below.counts[first:last]) * level.variance) / both)
        variances.append(spread * level.variance / both)
    return _Pooled(
        bounds=level.bounds,
        counts=tuple(counts),
        variances=tuple(variances),
        variance_sums=(0.0, *accumulate(variances)),
        firsts=firsts,
    )


def _shared_out(counts: Sequence[float], level: _Pooled, below: _Pooled) -> tuple[float, ...]:
    """The downward pass: the parts of each interval, changed in proportion to their variances to add up to it."""
    finer = list(below.counts)
    for count, (first, last) in zip(counts, pairwise(level.firsts), strict=True):
        missing = count - sum(below.counts[first:last])
        spread = below.variance_sums[last] - below.variance_sums[first]
        for part in range(first, last):
            finer[part] += missing * below.variances[part] / spread
    return tuple(finer)


def _given_its_count(
    level: _Pooled, interval: int, below: _Pooled, of: WeightedSum, parts: Mapping[int, tuple[float, float]]
) -> tuple[float, float]:
    """The slope and the variance of a weighted sum's part within one interval, given the interval's count."""
    spread = covariance = variance = left = 0.0
    for weight, share, rest in _runs(below, level.firsts[interval], level.firsts[interval + 1], of, parts):
        spread += share
        covariance += weight * share
        variance += weight**2 * share
        left += rest
    return covariance / spread, max(variance - covariance**2 / spread, 0.0) + left


def _runs(
    level: _Pooled, first: int, last: int, of: WeightedSum, parts: Mapping[int, tuple[float, float]]
) -> Iterator[tuple[float, float, float]]:
    """The weight, variance and conditional variance of each interval with a cut inside and of each run between."""
    interval = first
    while interval < last:
        if interval in parts:
            (weight, rest), end = parts[interval], interval + 1
        else:
            piece = bisect_right(of.cuts, level.bounds[interval]) - 1
            weight, rest = of.weights[piece], 0.0
            end = min(last, bisect_right(level.bounds, of.cuts[piece + 1]) - 1)
        yield weight, level.variance_sums[end] - level.variance_sums[interval], rest
        interval = end


def _cut_by(cut: int, bounds: Sequence[int]) -> int | None:
    """The interval with a cut in its inside; None if the cut lies between two intervals."""
    interval = bisect_right(bounds, cut) - 1
    return None if bounds[interval] == cut else interval
