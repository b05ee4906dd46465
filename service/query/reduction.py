"""Which queries may have their vector sum reduced to one number, and the most that a reduced vector is charged for.

Feldman and Zrnic (2021), Example 2.7: of a Lipschitz function of the sum, one number, an individual is charged by how
much its vector can change that number. A function of the noisy answer is free and needs none of this; the maximum and
the norm are here because they need one noise, where the noisy vector has one in each of its coordinates. The vectors
are summed as ever; the arithmetic on them is in `service.engine.reduction`.
"""

from math import isqrt
from typing import Final, Literal

from service.query.language import ActiveItem, ExhaustedItem, Query
from service.query.learning_ast import GradientItem, MomentsItem
from service.query.problems import QueryProblem

Reduce = Literal["max", "norm"]
ROUNDING_STEPS: Final = 1
"""What rounding a norm to a step adds to the change of one individual, in steps (`service.engine.reduction`)."""


def refuse_unreducible(query: Query) -> None:
    """Raise QueryProblem for a query of which no sum is reduced, whatever its dataset; the field is `reduce` or `rule`.

    Select items of one query have units of their own. Rule clip shortens a vector by the norm of it, and measures it
    again: neither is what a reduced query charges, and an individual short of budget would change a number that has
    one noise by next to nothing.
    """
    if query.rule == "clip":
        raise QueryProblem.of("rule", "clip shortens vectors to what their norms cost; with reduce, use skip")
    if len(query.select) > 1:
        raise QueryProblem.of("reduce", "is for one select item: ask each item in a query of its own")
    if isinstance(query.select[0], ActiveItem | ExhaustedItem | MomentsItem | GradientItem):
        raise QueryProblem.of("reduce", f"is for counts and sums, and not for {query.select[0].KIND}")
    if query.is_by_item:
        raise QueryProblem.of("reduce", "has one number: give one number for its precision and its clip")


def charged_squared(reduce: Reduce, clip_squared: int, *, peak: int) -> int:
    """The largest squared steps that an individual is charged for, of vectors within a clip.

    `peak` bounds each entry of a vector, and `clip_squared` its squared norm, in steps.
    """
    root = isqrt(clip_squared)
    if reduce == "max":
        return min(root, peak) ** 2
    return (root + (root * root < clip_squared) + ROUNDING_STEPS) ** 2
