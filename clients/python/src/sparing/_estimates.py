"""Ratios, means, rates and variances of released numbers, with their standard errors and intervals.

The noise of different numbers is independent and normal; its rounding to a grid adds grid^2 / 12 to the variance. With
Laplace noise, intervals use the widest quantile that a sum of such noise may have. As for an answer, an interval is
about what was counted: it covers the noise, and not the sampling of the individuals from a population.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparing._answers import Interval
from sparing._laplace_sums import noise_quantile
from sparing._rooms.estimates import RELIABLE_MIN, Noisy, fieller, variance_interval
from sparing._selected import Selected, Selection, are_certified, have_laplace, selected


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number worked out from released numbers, with its standard error."""

    label: Mapping[str, object]
    value: float  # nan where a denominator is 0
    standard_error: float  # that the noise gives it; infinite where a denominator is 0
    is_reliable: bool = True  # False where a denominator is within five standard deviations of 0
    coverage_certified: bool = False  # of every answer that it is worked out from
    has_laplace: bool = field(default=False, repr=False)  # some of the noise is Laplace noise

    def interval(self, confidence: float = 0.95) -> Interval:
        """The value and enough standard errors on both sides for this confidence; unbounded if it is unreliable.

        Raises ValueError for a confidence not above 0 and below 1.
        """
        quantile = noise_quantile(confidence, has_laplace=self.has_laplace)
        width = quantile * self.standard_error if self.is_reliable else math.inf
        return _EVERYTHING if width == math.inf else Interval(low=self.value - width, high=self.value + width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Estimate):
    """A noisy number divided by a noisy number, with a standard error by the delta method."""

    numerator: float
    denominator: float
    numerator_variance: float  # of the noise
    denominator_variance: float  # of the noise

    def interval(self, confidence: float = 0.95) -> Interval:
        """Fieller's interval, which holds the ratio of the counted numbers with at least this confidence.

        It is not symmetric around the value. If the denominator is too near to 0, it has all real numbers
        (`sparing._rooms.estimates.fieller`). Raises ValueError for a confidence not above 0 and below 1.
        """
        quantile = noise_quantile(confidence, has_laplace=self.has_laplace)
        found = fieller(self.numerator, self.denominator, self.numerator_variance, self.denominator_variance, quantile)
        return Interval(low=found.low, high=found.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(Estimate):
    """A variance of noisy numbers: squares / count - (sum / count)^2, with a standard error by the delta method."""

    squares: float
    sum: float
    count: float
    noise_variances: tuple[float, float, float]  # of squares, sum and count

    def interval(self, confidence: float = 0.95) -> Interval:
        """An interval of the variance by Fieller's method for ratios (`sparing._rooms.estimates.variance_interval`).

        Raises ValueError for a confidence not above 0 and below 1.
        """
        quantile = noise_quantile(confidence, has_laplace=self.has_laplace)
        numbers = zip((self.squares, self.sum, self.count), self.noise_variances, strict=True)
        squares, sums, counts = (Noisy((number,), math.sqrt(variance), 0.0) for number, variance in numbers)
        found = variance_interval(squares, sums, counts, quantile)
        return Interval(low=found.low, high=found.high)


def ratios(numerators: Selection, denominators: Selection) -> tuple[Ratio, ...]:
    """The numbers of one item divided by those of another: a mean, a rate or a share for each group.

    For a mean, divide the sum by the count of the rows `where=~col("spend").is_null()`, as NULL adds nothing to a sum.
    Numerators and denominators may come from different answers with different sigmas. The denominators may be grouped
    by fewer columns: each numerator is divided by the denominator of the larger group around it.

    Args:
        numerators: an answer with one item, or the pair of an answer and the title of one of its items.
        denominators: the denominators, given in the same way.

    Returns:
        A ratio for each number of the numerators, in their order.

    Raises:
        ValueError: an item or a group is missing, or a number would be divided by itself.
    """
    above, below = selected(numerators, "numerators"), selected(denominators, "denominators")
    if above.shares_noise_with(below):
        raise ValueError(f"numerators and denominators are both {above.item} of one answer, with the same noise")
    return tuple(_ratio(group, above, below) for group in _groups(above))


def variances(squares: Selection, sums: Selection, counts: Selection) -> tuple[Variance, ...]:
    """The population variance of a column in each group: squares / counts - (sums / counts)^2.

    Ask for the squares as `sum_(col("spend") * col("spend"))`. The noise may make a small variance negative. It is not
    raised to 0, as this would bias the mean of many variances.

    Args:
        squares: sums of squares: an answer with one item, or the pair of an answer and the title of one of its items.
        sums: sums of the column, given in the same way.
        counts: numbers of rows, given in the same way.

    Returns:
        An estimate for each number of the squares, in their order.

    Raises:
        ValueError: an item or a group is missing, or two arguments are the same item of one answer.
    """
    parts = selected(squares, "squares"), selected(sums, "sums"), selected(counts, "counts")
    for place, part in enumerate(parts):
        for other in parts[:place]:
            if part.shares_noise_with(other):
                raise ValueError(f"{other.name} and {part.name} are both {part.item} of one answer")
    return tuple(_variance(group, *parts) for group in _groups(parts[0]))


def _groups(of: Selected) -> list[dict[str, object]]:
    return [dict(zip(of.columns, key, strict=True)) for key in of.numbers]


def _ratio(group: dict[str, object], above: Selected, below: Selected) -> Ratio:
    numerator, denominator = above.number(group), below.number(group)
    value, error = math.nan, math.inf
    if denominator != 0:
        value = numerator / denominator
        error = math.hypot(math.sqrt(above.variance), value * math.sqrt(below.variance)) / abs(denominator)
    return Ratio(
        label=group | {"select": f"{above.item} / {below.item}"},
        value=value,
        standard_error=error,
        is_reliable=_is_reliable(denominator, below),
        coverage_certified=are_certified(above, below),
        has_laplace=have_laplace(above, below),
        numerator=numerator,
        denominator=denominator,
        numerator_variance=above.variance,
        denominator_variance=below.variance,
    )


def _variance(group: dict[str, object], squares: Selected, sums: Selected, counts: Selected) -> Variance:
    count = counts.number(group)
    value, error = math.nan, math.inf
    if count != 0:
        mean_square, mean = squares.number(group) / count, sums.number(group) / count
        value = mean_square - mean * mean
        slopes = 1.0, -2 * mean, 2 * mean * mean - mean_square  # by the three numbers, times the count
        parts = zip(slopes, (squares, sums, counts), strict=True)
        error = math.hypot(*(slope * math.sqrt(part.variance) for slope, part in parts)) / abs(count)
    return Variance(
        label=group | {"select": f"{squares.item} / {counts.item} - ({sums.item} / {counts.item})^2"},
        value=value,
        standard_error=error,
        is_reliable=_is_reliable(count, counts),
        coverage_certified=are_certified(squares, sums, counts),
        has_laplace=have_laplace(squares, sums, counts),
        squares=squares.number(group),
        sum=sums.number(group),
        count=count,
        noise_variances=(squares.variance, sums.variance, counts.variance),
    )


def _is_reliable(denominator: float, of: Selected) -> bool:
    return abs(denominator) >= RELIABLE_MIN * math.sqrt(of.variance)


_EVERYTHING: Final = Interval(low=-math.inf, high=math.inf)
