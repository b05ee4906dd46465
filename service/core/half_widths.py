"""The distance from 0 within which the noise of an answer is, with a stated probability.

The noise round(Z) is within k steps of 0 exactly if Z is within k + 1/2 of 0. For a continuous Z the probability of
that is 2 Phi((k + 1/2) / sigma) - 1 at every sigma: the law of round(Z) summed from -k to k, where neighbouring cells
cancel. The quantile q of Z alone would ignore the grid, since q sigma contains only floor(q sigma) steps. An interval
of floor(q sigma) steps that is stated to hold 95 per cent holds 68 at sigma 1/2 and 87 at sigma 1. The interval here
covers the sum of what was counted. It takes no account of individuals left out or of what was clipped. Laplace noise
Lap(b) is within h of 0 with probability 1 - e^(-h / b).
"""

from functools import lru_cache
from math import ceil, floor, isfinite, log1p, nextafter
from statistics import NormalDist
from typing import Final

# NormalDist evaluates Wichura's algorithm AS 241 (Applied Statistics 37, 1988), good to about one part in 10^16. The
# quantile is enlarged by 64 units in the last place, so that what is said to be covered is.
_MARGIN: Final = 1 + 2.0**-47


def half_width_steps(sigma_steps: float, confidence: float) -> int:
    """The least k for which the noise is within k grid steps of 0 with at least this probability.

    The result may be k + 1 where k suffices by less than a part in 10^14 of sigma. Raises ValueError unless sigma is
    positive and finite, and the confidence above 0 and below 1.
    """
    if not (sigma_steps > 0 and isfinite(sigma_steps)):
        raise ValueError(f"sigma_steps must be positive and finite, got {sigma_steps}")
    return max(0, ceil(_normal_quantile(confidence) * sigma_steps - 0.5))


def sigma_steps_within(steps: int, confidence: float) -> float:
    """The largest sigma, less a part in 10^14, at which the noise is within `steps` steps of 0 at this confidence.

    So half_width_steps(sigma_steps_within(k, c), c) <= k. Raises ValueError for negative steps and for a confidence
    that is not above 0 and below 1.
    """
    return _within(steps, _normal_quantile(confidence))


def laplace_half_width_steps(scale_steps: float, confidence: float) -> int:
    """The k of `half_width_steps` for Laplace noise, rarely k + 1. Raises ValueError unless 0 < confidence < 1."""
    return max(0, -floor(0.5 - _laplace_quantile(confidence) * scale_steps))


def scale_steps_within(steps: int, confidence: float) -> float:
    """The largest scale of Laplace noise, less a part in 10^13; everything else as in `sigma_steps_within`."""
    return _within(steps, _laplace_quantile(confidence))


def _within(steps: int, quantile: float) -> float:
    if steps < 0:
        raise ValueError(f"steps must not be negative, got {steps}")
    return nextafter((steps + 0.5) / quantile, 0.0)


@lru_cache(maxsize=1024)
def _normal_quantile(confidence: float) -> float:
    """An upper bound of the q for which a standard normal number is within q of 0 with this probability."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
    # 1 - confidence is exact from 1/2 up, and below that it errs by less than the step down.
    return -_MARGIN * NormalDist().inv_cdf(nextafter(1 - confidence, 0.0) / 2)


def _laplace_quantile(confidence: float) -> float:
    """An upper bound of the q for which Lap(1) is within q of 0 with this probability."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
    return -_MARGIN * log1p(-confidence)
