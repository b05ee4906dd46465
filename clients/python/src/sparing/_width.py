"""The half width of a released number around what was counted."""

from math import ceil, isfinite, nextafter
from statistics import NormalDist

__all__ = ["half_width"]

_MARGIN = 1 + 2.0**-47  # the quantile is good to a few units in the last place


def half_width(*, sigma: float, grid: float, confidence: float = 0.95) -> float:
    """The least multiple of the grid within which a number is of what was counted, with at least this confidence.

    `sigma` and `grid` as an answer or a preview states them. The noise is whole grid steps, a Gaussian rounded, so it
    is within k steps with probability 2 Phi((k + 1/2) grid / sigma) - 1. What was counted is the clipped sum over the
    individuals that could pay; the truth, which also includes those left out, may be further off.

    Raises:
        ValueError: sigma or grid is not positive and finite, or the confidence not above 0 and below 1.
    """
    if not (sigma > 0 and grid > 0 and isfinite(sigma) and isfinite(grid)):
        raise ValueError(f"sigma and grid must be positive and finite, got {sigma} and {grid}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
    quantile = -_MARGIN * NormalDist().inv_cdf(nextafter(1 - confidence, 0.0) / 2)
    return max(0, ceil(quantile * (sigma / grid) - 0.5)) * grid
