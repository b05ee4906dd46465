"""The averages of an answer: means and other numbers worked out from it, with an interval for each group."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sparing._answers import Answer, Average, Interval
from sparing._normal import two_sided_quantile
from sparing._rooms.estimates import QUANTILE_95, EstimatedItem, Noisy, ReleasedNumbers, in_groups, items_of

ITEMS_MAX: Final = 64
PARTS_MAX: Final = 3
LABELLED_MAX: Final = 10_000
"""The dimension above which an answer has neither labels nor estimates."""


def averages_of(answer: Answer, estimates: Mapping[str, Any] | None) -> tuple[Average, ...]:
    """The averages that a reply's `estimates` describe, worked out from the numbers of its answer.

    Raises ArithmeticError, LookupError, TypeError or ValueError if the description is impossible.
    """
    if estimates is None:
        return ()
    stated = estimates["items"]
    if (
        len(stated) > ITEMS_MAX
        or answer.dimension > LABELLED_MAX
        or max(len(each["parts"]) for each in stated) > PARTS_MAX
    ):
        raise ValueError("it has too many estimates")
    items = items_of(stated, answer.axes)
    released = ReleasedNumbers(answer.values, answer.labels, answer.axes, answer.sigma, answer.grid)
    return tuple(_average(answer, label, item, parts) for label, item, parts in in_groups(items, released))


def _average(answer: Answer, label: Mapping[str, object], item: EstimatedItem, parts: list[Noisy]) -> Average:
    estimate, bounds = item.estimator.of(parts, QUANTILE_95), item.estimator.bounds
    return Average(
        label=label,
        value=float(estimate.value),
        interval_at=partial(_interval, item, parts),
        coverage_certified=answer.coverage_certified,
        bounds=None if bounds is None else Interval(low=bounds.low, high=bounds.high),
        is_reliable=estimate.is_reliable,
        is_interpolated=estimate.is_interpolated,
    )


def _interval(item: EstimatedItem, parts: list[Noisy], confidence: float) -> Interval:
    found = item.estimator.of(parts, two_sided_quantile(confidence)).interval
    return Interval(low=found.low, high=found.high)
