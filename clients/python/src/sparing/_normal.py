"""Quantiles for intervals, half widths of Gaussian and Laplace noise, and the tail of the chi-square distribution."""

import math
from statistics import NormalDist
from typing import Final

_MARGIN: Final = 1 + 2.0**-47  # the quantile is good to a few units in the last place


def two_sided_quantile(confidence: float) -> float:
    """The q for which a standard normal number is within q of 0 with this probability, rounded up.

    Raises ValueError for a confidence that is not above 0 and below 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
    return -_MARGIN * NormalDist().inv_cdf(math.nextafter(1 - confidence, 0.0) / 2)


def half_width(*, sigma: float, grid: float, confidence: float = 0.95) -> float:
    """The largest distance of a number from what was counted, with at least this confidence; a multiple of the grid.

    `sigma` and `grid` are those of an answer or a preview. The noise is a Gaussian rounded to whole grid steps, so that
    it is within k steps with probability 2 Phi((k + 1/2) grid / sigma) - 1. What was counted is the clipped sum over
    the individuals that could pay. The truth also includes the individuals that were left out, and may be further off.

    Raises:
        ValueError: sigma or grid is not positive and finite, or the confidence not above 0 and below 1.
    """
    if not (sigma > 0 and grid > 0 and math.isfinite(sigma) and math.isfinite(grid)):
        raise ValueError(f"sigma and grid must be positive and finite, got {sigma} and {grid}")
    return max(0, math.ceil(two_sided_quantile(confidence) * (sigma / grid) - 0.5)) * grid


def laplace_half_width(*, scale: float, grid: float, confidence: float = 0.95) -> float:
    """The half width of Laplace noise, which is within k steps with probability 1 - e^(-(k + 1/2) grid / scale).

    Raises:
        ValueError: scale or grid is not positive and finite, or the confidence not above 0 and below 1.
    """
    if not (scale > 0 and grid > 0 and math.isfinite(scale) and math.isfinite(grid) and 0 < confidence < 1):
        raise ValueError(f"scale, grid and confidence are out of range: {scale}, {grid} and {confidence}")
    return max(0, math.ceil(-_MARGIN * math.log1p(-confidence) * (scale / grid) - 0.5)) * grid


def chi_square_tail(number: float, degrees: int) -> float:
    """The probability that the sum of `degrees` squared standard normal numbers exceeds `number`; 1 for no degrees.

    It is worked out as a finite sum: Abramowitz & Stegun, Handbook of Mathematical Functions, 26.4.4 and 26.4.5.
    """
    half = number / 2
    if degrees == 0 or half <= 0:
        return 1.0
    powers = [place + degrees % 2 / 2 for place in range(degrees // 2)]
    terms = [math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers]
    return min(math.fsum([math.erfc(math.sqrt(half)) * (degrees % 2), *terms]), 1.0)
