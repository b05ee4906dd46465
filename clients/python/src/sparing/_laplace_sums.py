"""Quantiles of weighted sums of normal and Laplace noise, for numbers worked out from several answers.

A sum of independent Laplace numbers with the scales c_1, c_2, ... and a normal one with the standard deviation s has
the characteristic function e^(-s^2 t^2 / 2) prod 1 / (1 + c_i^2 t^2). Wrapped around a circle of circumference 2 L, its
distribution is a Fourier series with the values of this function at pi k / L. The series is cut off early, as these
values fall with the fourth power of k. The errors from the wrapping and from the cut are bounded, and both bounds are
added to the confidence.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from sparing._normal import two_sided_quantile

_SPARE: Final = 2.0**-12
"""The most that each of the two errors may be, as a part of the smaller probability beside the quantile."""
_LEAST_SHARE: Final = 1 / 8
"""The least ratio of a scale to the largest. Smaller scales are raised to it, which only widens the sum."""
_HALVINGS: Final = 48
_NOTHING: Final = 60.0
"""The exponent from which on terms are negligible: below e^-60."""


def laplace_sum_quantile(scales: Sequence[float], confidence: float, *, sigma: float = 0.0) -> float:
    """The x that the absolute value of a sum of independent noise does not exceed, with at least this probability.

    `scales` are those of the Laplace summands, their weights included, and `sigma` is the standard deviation of the
    normal one. The bound is exact for one Laplace number alone. For a sum whose scales are at least an eighth of the
    largest, the probability beyond the bound is at least 0.999 times 1 - confidence.

    Raises:
        ValueError: a scale is not positive and finite, or there is none; sigma is negative or not finite; or the
            confidence is not above 0 and below 1.
    """
    if not scales or not all(0 < scale < math.inf for scale in scales) or not 0 < confidence < 1:
        raise ValueError(f"scales and confidence are out of range: {list(scales)} and {confidence}")
    if not 0 <= sigma < math.inf:
        raise ValueError(f"sigma must not be negative, and must be finite, got {sigma}")
    largest = max(*scales, sigma)
    spread = tuple(sorted(max(scale / largest, _LEAST_SHARE) for scale in scales))
    return largest * _quantile(spread, max(sigma / largest, _LEAST_SHARE) if sigma else 0.0, confidence)


@lru_cache(maxsize=256)
def widest_quantile(confidence: float) -> float:
    """The q for which sums of Laplace and normal noise are within q standard deviations, at this confidence.

    It is the largest quantile among sums of 1, 2, 4, ... and 64 Laplace numbers of one scale, and of a normal number.
    It is not proven for other scales; the tests draw some, and found none with a larger quantile.
    """
    counts = [2**power for power in range(7)]
    of_sums = [laplace_sum_quantile([1.0] * count, confidence) / math.sqrt(2 * count) for count in counts]
    return max(two_sided_quantile(confidence), *of_sums)


def noise_quantile(confidence: float, *, has_laplace: bool) -> float:
    """The number of standard deviations within which a sum of noise lies with at least this probability."""
    return widest_quantile(confidence) if has_laplace else two_sided_quantile(confidence)


@lru_cache(maxsize=256)
def _quantile(scales: tuple[float, ...], sigma: float, confidence: float) -> float:
    """The bound of `laplace_sum_quantile` for increasing scales; the largest of the scales and sigma must be 1."""
    beyond = 1 - confidence
    if len(scales) == 1 and not sigma:
        return -math.log1p(-confidence) * (1 + 2.0**-47)
    allowed = min(beyond, confidence) * _SPARE
    # Chernoff's bound at half of the largest rate: beyond L lies at most 2 e^(-L / 2 + s^2 / 8) prod 1 / (1 - c^2 / 4).
    rest = sigma * sigma / 8 - math.fsum(math.log1p(-scale * scale / 4) for scale in scales)
    half_circle = 2 * (math.log(2 / allowed) + rest)
    # e^(-s^2 t^2 / 2) is at most 1 / (1 + s^2 t^2 / 2). So after k terms the rest is at most the sum of
    # (2 / pi) / (c_1^2 c_2^2 (k step)^4 k), which is below the fourth power here.
    step = math.pi / half_circle
    *_, second, first = sorted([*scales, *([sigma / math.sqrt(2)] if sigma else [])])
    count = math.ceil((0.5 / (math.pi * allowed)) ** 0.25 / (step * math.sqrt(first * second)))
    parts = []
    for k in range(1, count + 1):
        at = k * step
        spread = (sigma * at) ** 2 / 2 + math.fsum(math.log1p((scale * at) ** 2) for scale in scales)
        parts.append((at, 2 / math.pi * math.exp(-spread) / k))
        if spread > _NOTHING:
            break
    low, high = 0.0, half_circle
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        within = middle / half_circle + math.fsum(part * math.sin(at * middle) for at, part in parts)
        low, high = (low, middle) if within >= confidence + 2 * allowed else (middle, high)
    return high
