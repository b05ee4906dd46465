"""The estimates of an answer: its items that are worked out from linear ones, in each group.

A client reads the estimates from the answer. To have them at another confidence it runs the same functions, which need
the standard library alone.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from service.query.estimates import (
    QUANTILE_95,
    DeviationOf,
    DifferenceOf,
    Estimate,
    Estimator,
    Itself,
    MeanOf,
    Noisy,
    QuantileOf,
    RatioOf,
    VarianceOf,
)

Label = Mapping[str, object]
Numbers = float | Sequence[float]
"""One number, or one for each select item."""

_KINDS: Final[Mapping[str, type[Estimator]]] = {
    "number": Itself,
    "mean": MeanOf,
    "variance": VarianceOf,
    "stddev": DeviationOf,
    "quantile": QuantileOf,
    "ratio": RatioOf,
}
"""The estimators of one group, by the word under which an answer has their numbers."""
_WORDS: Final = {kind: word for word, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two values of a column that groups are of, whose estimates are subtracted."""

    by: str
    first: object
    second: object


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedItem:
    """An item that was asked for. `parts` are the places of its linear items in the axis of the items."""

    title: str
    parts: tuple[int, ...]
    estimator: Estimator
    contrast: Contrast | None = None

    def stated(self) -> dict[str, object]:
        """The item as an answer states it."""
        estimator = self.estimator.each if isinstance(self.estimator, DifferenceOf) else self.estimator
        found: dict[str, object] = {
            "title": self.title,
            "parts": list(self.parts),
            _WORDS[type(estimator)]: _facts(estimator),
        }
        if self.contrast is None:
            return found
        contrast = self.contrast
        return found | {"difference": {"by": contrast.by, "from": contrast.first, "to": contrast.second}}


class ReleasedNumbers(NamedTuple):
    """The numbers of an answer with their names and their noise, as an answer states them."""

    values: Sequence[float]
    labels: Sequence[Label]
    axes: Sequence[Mapping[str, Any]]
    sigma: Numbers
    grid: Numbers


def stated_estimates(items: Sequence[EstimatedItem], released: ReleasedNumbers) -> dict[str, Any]:
    """The estimates as an answer states them, at a confidence of 0.95."""
    rows = [_row(label, item.estimator.of(parts, QUANTILE_95)) for label, item, parts in in_groups(items, released)]
    return {"confidence": 0.95, "items": [item.stated() for item in items], "rows": rows}


def items_of(stated: Sequence[Mapping[str, Any]], axes: Sequence[Mapping[str, Any]]) -> list[EstimatedItem]:
    """The items that an answer states. Raises LookupError, TypeError or ValueError for a statement that is no item."""
    return [_item_of(each, axes[-1]["select"]) for each in stated]


def in_groups(
    items: Sequence[EstimatedItem], released: ReleasedNumbers
) -> Iterator[tuple[dict[str, object], EstimatedItem, list[Noisy]]]:
    """For each item in each group: its label, the item, and the numbers that it is worked out from.

    Groups are in the order of the answer, and items are in order within each group. A difference stands at its second
    group.
    """
    *axes, last = released.axes
    names = [str(axis["column"]) for axis in axes]
    parts = _parts(last["select"])
    block = sum(size for _, size, _ in parts)
    groups = [tuple(released.labels[start][name] for name in names) for start in range(0, len(released.values), block)]
    starts = {group: place * block for place, group in enumerate(groups)}
    for group in groups:
        named = dict(zip(names, group, strict=True))
        for item in items:
            contrast, of_groups = item.contrast, [group]
            label = named
            if contrast is not None:
                if named[contrast.by] != contrast.second:
                    continue
                first = named | {contrast.by: contrast.first}
                of_groups = [tuple(first[name] for name in names), group]
                label = {name: value for name, value in named.items() if name != contrast.by}
            noisy = [_noisy(released, starts[each], parts[part]) for each in of_groups for part in item.parts]
            yield label | {"select": item.title}, item, noisy


def _parts(items: Sequence[Mapping[str, Any]]) -> list[tuple[int, int, int]]:
    """The offset within a group, the size, and the place in `select`, for each item of the axis."""
    return [(item["offset"], item["size"], item.get("item", place)) for place, item in enumerate(items)]


def _noisy(released: ReleasedNumbers, start: int, part: tuple[int, int, int]) -> Noisy:
    offset, size, place = part
    values = tuple(map(float, released.values[start + offset : start + offset + size]))
    return Noisy(values, _number(released.sigma, place), _number(released.grid, place))


def _number(numbers: Numbers, place: int) -> float:
    return float(numbers[place] if isinstance(numbers, Sequence) else numbers)


def _row(label: Label, estimate: Estimate) -> dict[str, object]:
    interval = estimate.interval
    row: dict[str, object] = {
        "label": label,
        "value": _finite(estimate.value),
        "low": _finite(interval.low),
        "high": _finite(interval.high),
        "is_reliable": estimate.is_reliable,
    }
    return row | ({"is_interpolated": True} if estimate.is_interpolated else {})


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _facts(estimator: Estimator) -> dict[str, object]:
    """The numbers of an estimator, without the edges of a quantile: these stand in the axis of its counts."""
    names = [field.name for field in fields(estimator) if field.name != "edges"]  # type: ignore[arg-type]  # dataclasses
    return {name: getattr(estimator, name) for name in names}


def _item_of(stated: Mapping[str, Any], axis: Sequence[Mapping[str, Any]]) -> EstimatedItem:
    parts = tuple(stated["parts"])
    [(word, facts)] = [(word, stated[word]) for word in _KINDS if word in stated]
    if word == "quantile":
        facts = {**facts, "edges": tuple(map(float, axis[parts[0]]["values"]["edges"]))}
    estimator: Estimator = _KINDS[word](**facts)
    if (found := stated.get("difference")) is None:
        return EstimatedItem(title=stated["title"], parts=parts, estimator=estimator)
    contrast = Contrast(by=found["by"], first=found["from"], second=found["to"])
    return EstimatedItem(title=stated["title"], parts=parts, estimator=DifferenceOf(estimator), contrast=contrast)
