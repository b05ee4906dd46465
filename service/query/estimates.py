"""Means, variances, quantiles, ratios and differences of released numbers, each with the error that the noise causes.

Estimates are functions of an answer alone, so that they cost nothing. The service states them, and a client works them
out again at another confidence. Both run this module, which needs the standard library alone. It only adds, multiplies,
divides and takes roots, so that every machine makes the same bytes.

The noise of different numbers is independent and normal. Rounding it to a grid adds grid^2 / 12 to its variance. An
interval is about the sum that was counted, as that of an answer is. It does not cover sampling: the individuals are
taken as given.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

QUANTILE_95: Final = 1.9599639845400676
"""The size that a standard normal number exceeds with probability 0.05, rounded up."""
RELIABLE_MIN: Final = 5
"""The standard deviations from 0 at which a denominator counts as reliable.

At exactly this distance, an interval of 1.96 standard errors holds a ratio in 93 to 97 of 100 cases.
"""
INTERPOLATED_SHARE: Final = 0.1
"""The share of the rows in one bin above which a quantile in that bin is stated to be interpolated."""


@dataclass(frozen=True, slots=True)
class Noisy:
    """The released numbers of one linear item in one group, with the noise in each in query units."""

    values: tuple[float, ...]
    sigma: float
    grid: float

    @property
    def variance(self) -> float:
        """The variance of the noise in each number."""
        return self.sigma * self.sigma + self.grid * self.grid / 12

    @property
    def is_far_from_zero(self) -> bool:
        """Tell whether the first number is far enough from 0 to divide by it."""
        return abs(self.values[0]) >= RELIABLE_MIN * math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of an interval; infinite where it has no end."""

    low: float
    high: float


EVERYTHING: Final = Interval(-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that is worked out from released ones."""

    value: float  # nan where 0 was divided by
    standard_error: float  # that the noise gives it; infinite where 0 was divided by
    interval: Interval
    is_reliable: bool = True  # False where a denominator is within five standard deviations of 0
    is_interpolated: bool = False  # a quantile within a bin that has more than a tenth of the rows


class Estimator(ABC):
    """A function of the numbers of one group."""

    @abstractmethod
    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The estimate. Its interval reaches `quantile` standard deviations of a normal number to either side."""

    @property
    def bounds(self) -> Interval | None:
        """The interval to which the declared bounds confine the estimate, whatever is counted; None for all numbers."""
        return None


@dataclass(frozen=True, slots=True)
class Itself(Estimator):
    """One released number as it is."""

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The number. The interval's ends are the least multiple of its grid, to either side, that holds the noise."""
        [part] = parts
        [value] = part.values
        width = max(0, math.ceil(quantile * (part.sigma / part.grid) - 0.5)) * part.grid
        return Estimate(value, math.sqrt(part.variance), Interval(value - width, value + width))


@dataclass(frozen=True, slots=True)
class RatioOf(Estimator):
    """A released number over another one."""

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The ratio with Fieller's interval, and the standard error of the delta method."""
        above, below = parts
        [numerator], [denominator] = above.values, below.values
        interval = fieller(numerator, denominator, above.variance, below.variance, quantile)
        if denominator == 0:
            return Estimate(math.nan, math.inf, interval, is_reliable=False)
        value = numerator / denominator
        error = math.sqrt(above.variance + value * value * below.variance) / abs(denominator)
        return Estimate(value, error, interval, is_reliable=below.is_far_from_zero)


@dataclass(frozen=True, slots=True)
class MeanOf(Estimator):
    """The mean of a value between two bounds, from the sum of the value less `middle`, and the number of rows."""

    low: float
    middle: float
    high: float

    @property
    def bounds(self) -> Interval:
        """The bounds of the value."""
        return Interval(self.low, self.high)

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The mean within the bounds, with the part of Fieller's interval that is within the bounds."""
        ratio = RatioOf().of(parts, quantile)
        interval = _kept(_shifted(ratio.interval, self.middle), self.bounds)
        value = min(max(ratio.value + self.middle, self.low), self.high) if ratio.value == ratio.value else math.nan
        return replace(ratio, value=value, interval=interval)


@dataclass(frozen=True, slots=True)
class VarianceOf(Estimator):
    """The population variance of a value that is at most `half` from the middle of its bounds.

    Let x be the value less that middle. The parts are the sum of x, the number of rows, and the sum of x^2 - half^2 /
    2.
    """

    half: float

    @property
    def bounds(self) -> Interval:
        """The interval from 0 to half^2."""
        return Interval(0.0, self.half * self.half)

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The variance, which the noise may make negative. Cutting it at 0 would bias the mean of many estimates."""
        sums, counts, squares = parts
        shift = self.half * self.half / 2
        interval = _kept(_shifted(variance_interval(squares, sums, counts, quantile), shift), self.bounds)
        [count] = counts.values
        if count == 0:
            return Estimate(math.nan, math.inf, interval, is_reliable=False)
        mean_square, mean = squares.values[0] / count, sums.values[0] / count
        slopes = 1.0, -2 * mean, 2 * mean * mean - mean_square  # by the three numbers, times the count
        spread = sum(slope * slope * part.variance for slope, part in zip(slopes, (squares, sums, counts), strict=True))
        value = mean_square - mean * mean + shift
        return Estimate(value, math.sqrt(spread) / abs(count), interval, is_reliable=counts.is_far_from_zero)


@dataclass(frozen=True, slots=True)
class DeviationOf(Estimator):
    """The population standard deviation, from the parts of a variance."""

    half: float

    @property
    def bounds(self) -> Interval:
        """The interval from 0 to `half`."""
        return Interval(0.0, self.half)

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The root of the variance, from 0 to half the distance between the bounds."""
        variance = VarianceOf(self.half).of(parts, quantile)
        interval = Interval(math.sqrt(variance.interval.low), math.sqrt(variance.interval.high))
        if variance.value != variance.value:
            return replace(variance, interval=interval)
        value = min(math.sqrt(max(variance.value, 0.0)), self.half)
        error = variance.standard_error / (2 * value) if value else math.inf
        return replace(variance, value=value, standard_error=error, interval=interval)


@dataclass(frozen=True, slots=True)
class QuantileOf(Estimator):
    """The point below which a share of the rows lies, from counts between edges."""

    probability: float
    edges: tuple[float, ...]
    low: float
    high: float
    is_whole: bool = False  # each bin is of one whole number, and the quantile that of the bin it falls into

    @property
    def bounds(self) -> Interval:
        """The bounds of the value, or the outermost edges."""
        return Interval(self.low, self.high)

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The point at which the number of rows below, less the share of the total, is 0 after isotonic regression.

        For the point itself, rows are taken to be spread evenly within a bin. The interval does not need that: it goes
        from an edge to an edge. At a confidence c the quantile is beyond each end with probability (1 - c) / 2 at most.

        Source: Woodruff, Confidence intervals for medians and other position measures, J. Am. Stat. Assoc. 47 (1952);
        Barlow, Bartholomew, Bremner & Brunk, Statistical Inference under Order Restrictions, 1972.
        """
        [counts] = parts
        below = [0.0, *accumulate(counts.values)]
        excess = [count - self.probability * below[-1] for count in below]  # at each edge
        value = crossing(isotonic(excess), self.edges)
        interval = self._not_ruled_out(excess, counts.variance, quantile)
        place = min(sum(edge <= value for edge in self.edges), len(counts.values)) - 1
        is_coarse = counts.values[place] > INTERPOLATED_SHARE * max(below[-1], 1.0)
        return Estimate(
            value=min(max(math.floor(value) if self.is_whole else value, self.low), self.high),
            standard_error=math.nan,
            interval=Interval(max(interval.low, self.low), min(interval.high - self.is_whole, self.high)),
            is_reliable=below[-1] >= RELIABLE_MIN * math.sqrt(counts.variance * len(counts.values)),
            is_interpolated=is_coarse and not self.is_whole,
        )

    def _not_ruled_out(self, excess: Sequence[float], variance: float, quantile: float) -> Interval:
        """The interval of the bins that may hold the quantile.

        The first bin is the first whose end may be above the quantile. The last bin is the last whose beginning may be
        below the quantile.
        """
        cells, share = len(self.edges) - 1, self.probability
        slacks = [
            quantile * math.sqrt(variance * (cut * (1 - share) * (1 - share) + (cells - cut) * share * share))
            for cut in range(cells + 1)
        ]
        first = next((cut - 1 for cut in range(1, cells + 1) if excess[cut] >= -slacks[cut]), 0)
        last = next((cut + 1 for cut in range(cells - 1, -1, -1) if excess[cut] <= slacks[cut]), cells)
        return Interval(self.edges[first], self.edges[last])


@dataclass(frozen=True, slots=True)
class DifferenceOf(Estimator):
    """The estimate in a second group less that in a first one. The parts are those of the first, then of the second."""

    each: Estimator

    def of(self, parts: Sequence[Noisy], quantile: float) -> Estimate:
        """The difference, by the delta method: the squares of the standard errors add up."""
        half = len(parts) // 2
        first, second = self.each.of(parts[:half], quantile), self.each.of(parts[half:], quantile)
        value, is_reliable = second.value - first.value, first.is_reliable and second.is_reliable
        error = math.sqrt(first.standard_error * first.standard_error + second.standard_error * second.standard_error)
        interval = Interval(value - quantile * error, value + quantile * error) if is_reliable else EVERYTHING
        return Estimate(value, error, interval, is_reliable=is_reliable)


def fieller(
    numerator: float, denominator: float, numerator_variance: float, denominator_variance: float, quantile: float
) -> Interval:
    """Fieller's interval, which holds the ratio of the counted numbers with the probability of the quantile.

    With numerator N, denominator D and quantile q it has all r for which |N - r D| is at most q standard deviations of
    N - r D. For normal noise it holds the ratio with exactly this probability, however noisy D is. Where D itself is
    within q standard deviations of 0, the set of these r has no end, and the interval is all numbers. The interval is
    not symmetric around the value.

    Source: Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16 (1954).
    """
    squared = quantile * quantile
    leading = denominator * denominator - squared * denominator_variance
    if leading <= 0:
        return EVERYTHING
    middle = numerator * denominator
    within = numerator_variance * leading + denominator_variance * numerator * numerator
    width = math.sqrt(squared * within)
    return Interval((middle - width) / leading, (middle + width) / leading)


def variance_interval(squares: Noisy, sums: Noisy, counts: Noisy, quantile: float) -> Interval:
    """An interval like Fieller's for the variance, from the squares Q, the sum S and the count N.

    Without noise Q N - S^2 - v N^2 is 0 where v is the variance, and with noise it has a mean that depends on the noise
    alone. The interval has all v for which this number is within `quantile` standard deviations of that mean, to the
    first order in the noise. Where N is so near to 0 that the set of these v has no end, the interval is all numbers.
    """
    squared = quantile * quantile
    [of_squares], [total], [count] = squares.values, sums.values, counts.values
    product = of_squares * count - total * total + sums.variance
    square = count * count - counts.variance
    leading = square * square - 4 * squared * count * count * counts.variance
    if square <= 0 or leading <= 0:
        return EVERYTHING
    middle = product * square - 2 * squared * of_squares * count * counts.variance
    first_order = (
        count * count * squares.variance + of_squares * of_squares * counts.variance + 4 * total * total * sums.variance
    )
    width = math.sqrt(max(middle * middle - leading * (product * product - squared * first_order), 0.0))
    return Interval((middle - width) / leading, (middle + width) / leading)


def isotonic(numbers: Sequence[float]) -> list[float]:
    """The nearest numbers that never fall: neighbours that fall are averaged."""
    blocks: list[tuple[float, int]] = []  # means and lengths
    for number in numbers:
        mean, length = number, 1
        while blocks and blocks[-1][0] >= mean:
            before, longer = blocks.pop()
            mean, length = (before * longer + mean * length) / (longer + length), longer + length
        blocks.append((mean, length))
    return [mean for mean, length in blocks for _ in range(length)]


def crossing(rising: Sequence[float], edges: Sequence[float]) -> float:
    """The point at which numbers at the edges, which never fall, pass 0. Between edges they are taken as linear."""
    high = next((place for place, number in enumerate(rising) if number >= 0), None)
    if high is None or high == 0:
        return edges[-1 if high is None else 0]
    share = -rising[high - 1] / (rising[high] - rising[high - 1])
    return edges[high - 1] + share * (edges[high] - edges[high - 1])


def _shifted(interval: Interval, shift: float) -> Interval:
    return Interval(interval.low + shift, interval.high + shift)


def _kept(interval: Interval, bounds: Interval) -> Interval:
    """The part of an interval within bounds.

    An interval that lies beyond a bound is moved to that bound and keeps its width: an interval of width 0 would look
    certain.
    """
    low, high, width = interval.low, interval.high, interval.high - interval.low
    if high <= bounds.low:
        low, high = bounds.low, bounds.low + width
    elif low >= bounds.high:
        low, high = bounds.high - width, bounds.high
    return Interval(max(low, bounds.low), min(high, bounds.high))
