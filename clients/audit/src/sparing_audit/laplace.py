"""Rounded Laplace noise, round(Lap(b)), as the audit knows it: probabilities, losses and tests of its law.

With x = 1 / (2 b) the probability of 0 is 1 - e^-x, and that of another whole number k is sinh(x) e^(-|k| / b).
"""

import math

import numpy as np
from numpy.typing import NDArray

from sparing_audit.service import Doubles

__all__ = ["laplace_losses", "laplace_quantiles", "size_of"]

Integers = NDArray[np.int64]


def laplace_losses(steps: Integers, counted: Integers, scale_steps: float) -> Doubles:
    """The log of how much likelier answers (k,) are with the counted numbers (k,) than without, both in whole steps.

    Never above |counted| / b, but for a rounding of doubles.
    """
    return _log_shape(steps - counted, scale_steps) - _log_shape(steps, scale_steps)


def laplace_quantiles(steps: Integers, scale_steps: float, rng: np.random.Generator) -> Doubles:
    """Noise (k,) in whole steps as independent numbers in [0, 1], evenly distributed if its law is the right one.

    The distribution function, at a place drawn at random within the jump at each whole number.
    """
    size, x = np.abs(steps), 1 / (2 * scale_steps)
    inner, outer = 0.5 * np.exp(-(2 * size - 1) * x), 0.5 * np.exp(-(2 * size + 1) * x)  # beyond k - 1/2 and k + 1/2
    drawn = rng.random(size.size)
    tails = np.where(size == 0, 0.5 * math.exp(-x) + drawn * -math.expm1(-x), outer + drawn * (inner - outer))
    found: Doubles = np.where(steps > 0, 1 - tails, tails)
    return found


def size_of(scale_steps: float) -> tuple[float, float]:
    """The mean of |k|, 1 / (2 sinh x), and its variance over the square of that, 2 cosh x - 1."""
    x = 1 / (2 * scale_steps)
    return 1 / (2 * math.sinh(x)), 2 * math.cosh(x) - 1


def _log_shape(steps: Integers, scale_steps: float) -> Doubles:
    """The log of the probability but for the common factor sinh(x)."""
    x = 1 / (2 * scale_steps)
    at_zero = math.log(-math.expm1(-x) / math.sinh(x))
    found: Doubles = np.where(steps == 0, at_zero, -np.abs(steps) / scale_steps)
    return found
