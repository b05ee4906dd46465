"""Which queries may have their vector sum reduced to one number, and the most that a reduced vector is charged for.

Feldman and Zrnic (2021), Example 2.7: of a Lipschitz function of the sum, one number, an individual is charged by how
much its vector can change that number. A function of the noisy answer is free and needs none of this; the maximum and
the norm are here because they need one noise, where the noisy vector has one in each of its coordinates. The vectors
are summed as ever; the arithmetic on them is in `service.engine.reduction`.
"""

from math import isqrt
from typing import Final, Literal

Reduce = Literal["max", "norm"]
ROUNDING_STEPS: Final = 1
"""What rounding a norm to a step adds to the change of one individual, in steps (`service.engine.reduction`)."""


def charged_squared(reduce: Reduce, clip_squared: int, *, peak: int) -> int:
    """The largest squared steps that an individual is charged for, of vectors within a clip.

    `peak` bounds each entry of a vector, and `clip_squared` its squared norm, in steps.
    """
    root = isqrt(clip_squared)
    if reduce == "max":
        return min(root, peak) ** 2
    return (root + (root * root < clip_squared) + ROUNDING_STEPS) ** 2
