"""The numbers to which a vector sum may be reduced, and the most that an individual is charged for such a number.

Feldman and Zrnic (2021), Example 2.7: for one number that is a Lipschitz function of the sum, an individual is charged
by how much its vector can change that number. A function of the noisy answer is free and needs no reduction. The
maximum and the norm are here because they need noise on one number, where the noisy vector has noise in each of its
coordinates. The vectors are summed as for any query. The arithmetic on the sum is in `service.engine.reduction`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Final, Literal

Reduce = Literal["max", "norm"]
ROUNDING_STEPS: Final = 1
"""The steps that rounding the norm adds to the change that one individual makes (`service.engine.reduction`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """One number of a vector sum.

    `charged_squared` gives the largest squared steps that an individual is charged for, where vectors are within a
    clip. Its arguments are the clip's squared norm and a bound on each entry, in steps.
    """

    words: str
    is_rounded: bool  # to whole steps, so that these are to be small beside the clip
    is_of_entries: bool  # an individual is charged for its entries, and not for its norm
    charged_squared: Callable[[int, int], int]


def _largest_squared(clip_squared: int, peak: int) -> int:
    return min(isqrt(clip_squared), peak) ** 2


def _length_squared(clip_squared: int, _peak: int) -> int:
    root = isqrt(clip_squared)
    return (root + (root * root < clip_squared) + ROUNDING_STEPS) ** 2


REDUCTIONS: Final[Mapping[str, Reduction]] = {
    "max": Reduction(
        words="the largest number", is_rounded=False, is_of_entries=True, charged_squared=_largest_squared
    ),
    "norm": Reduction(
        words="the norm of the numbers", is_rounded=True, is_of_entries=False, charged_squared=_length_squared
    ),
}
"""The reductions by their words in a query. `service.engine.reduction` has the arithmetic by the same words."""
