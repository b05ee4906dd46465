"""Items that the service works out from linear ones: means, variances, quantiles, ratios and differences."""

from collections.abc import Iterable, Mapping
from typing import Final

from sparing._expressions import Column, Exact, Item, Literal, Number, Value, literal_json, of_value, plain

AVERAGES: Final = frozenset({"mean", "variance", "stddev", "quantile", "ratio", "difference"})
"""The kinds of composite items; an answer has their results in `averages`."""


def mean(value: str | Value) -> Item:
    """The mean of a column or of a calculated value, over the rows with a value."""
    return Item({"mean": of_value(value)})


def variance(value: str | Value) -> Item:
    """The population variance, over the rows that have a value."""
    return Item({"variance": of_value(value)})


def stddev(value: str | Value) -> Item:
    """The population standard deviation, over the rows that have a value."""
    return Item({"stddev": of_value(value)})


def quantile(
    value: str | Value, probability: Exact, *, bins: int | None = None, edges: Iterable[Number] | None = None
) -> Item:
    """The point below which this share of the rows with a value lies; 0.5 for the median.

    It is interpolated from counts in bins: 64 or `bins` of them between the declared bounds, or those between `edges`.

    Raises ValueError for a probability that is not above 0 and below 1.
    """
    share = plain(probability)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise ValueError(f"the probability of a quantile must be above 0 and below 1, got {probability}")
    counted: dict[str, object] = {} if bins is None else {"bins": plain(bins)}
    if edges is not None:
        counted["edges"] = [plain(edge) for edge in edges]
    return Item({"quantile": {**of_value(value), "probability": share, **counted}})


def ratio(of: Item, to: Item) -> Item:
    """A count or a sum divided by another one: `ratio(sum_("spend"), count())`."""
    return Item({"ratio": {"of": of.json, "to": to.json}})


def difference(of: Item, by: str | Column, *, first: Literal, second: Literal) -> Item:
    """An item in the second of two groups of a column, less the same item in the first.

    Write `difference(mean("income"), "treated", first=False, second=True)`. The column must also be in `group_by`. The
    item is a mean, a variance, a standard deviation, a ratio, a count or a sum.
    """
    name = by.name if isinstance(by, Column) else by
    groups = {"from": literal_json(first), "to": literal_json(second)}
    return Item({"difference": {"of": of.json, "by": name, **groups}})


def is_average(item: Mapping[str, object]) -> bool:
    """Tell whether an item, given as its JSON, is a composite one."""
    return not AVERAGES.isdisjoint(item)
