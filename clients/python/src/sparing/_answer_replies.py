"""Answers as a server sends them, checked against their own axes, so that later work on an answer cannot fail or grow.

An answer states its shape three times: by `dimension`, by `axes` and by the lengths of its lists. A lying server may
state three different shapes, and a few bytes of axes may stand for endless labels.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain, cycle
from operator import eq, itemgetter
from typing import Any, Final

from sparing._answers import Answer
from sparing._average_answers import averages_of
from sparing._constants import DIMENSION_MAX
from sparing._coordinates import by_item, items_of
from sparing._decode import read
from sparing._errors import misread
from sparing._labels import Labels

ITEM: Final = "select"
"""The key of a label under which its item stands; no column has this name."""
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_DATE_LENGTH: Final = 10


def answer_of(reply: object) -> Answer:
    """The answer that a reply describes. Raises APIReplyError for a malformed reply, or one that contradicts itself."""
    answer = read(Answer, reply)
    with misread("the reply is not an Answer"):
        _check(answer)
        estimates = reply.get("estimates") if isinstance(reply, Mapping) else None
        return replace(answer, averages=averages_of(answer, estimates))


def _check(answer: Answer) -> None:
    _require(0 < answer.dimension <= DIMENSION_MAX, "dimension is out of range")
    _require(len(answer.values) == answer.dimension, f"it has {len(answer.values)} values of {answer.dimension}")
    *groups, last = answer.axes
    items = _listed(last, ITEM)
    sizes = [_group_size(axis) for axis in groups]
    block = sum([_item_size(item) for item in items])
    _require(math.prod(sizes) * block == answer.dimension, "its axes are of another dimension")
    names = [str(axis["column"]) for axis in groups]
    _require(len({*names, ITEM}) == len(names) + 1, "two of its axes have one name")
    _check_precisions(answer)
    if not isinstance(answer.labels, Labels):
        _check_labels(answer, names, items)


def _check_precisions(answer: Answer) -> None:
    """Refuse an answer unless sigma, grid and half width are all one number, or all have one number per item."""
    count = len(items_of(answer.axes))
    of_items = answer.sigma, answer.grid, answer.half_width_95
    _require(len({isinstance(each, tuple) for each in of_items}) == 1, "only some of its precisions are of each item")
    are_fit = all(not isinstance(each, tuple) or len(each) == count for each in of_items)
    _require(are_fit, "it has precisions of other items")
    _require(min(by_item(answer.sigma)) > 0 and min(by_item(answer.grid)) > 0, "its noise is not positive")
    _require(answer.scale is None or answer.scale > 0, "its noise is not positive")


def _check_labels(answer: Answer, names: Sequence[str], items: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an answer unless each number has one label, which names the groups, the item and the item's own parts."""
    _require(len(answer.labels) == answer.dimension, f"it has {len(answer.labels)} labels of {answer.dimension}")
    expected = [{*names, ITEM, *own} for item in items for own in [_own_names(item)] for _ in range(item["size"])]
    labels: Sequence[dict[str, object]] = answer.labels  # type: ignore[assignment]  # as they were read from JSON
    _require(all(map(eq, map(dict.keys, labels), cycle(expected))), "its labels have other names than its axes")
    kinds = set(map(type, chain.from_iterable(map(dict.values, labels))))
    _require(kinds <= _SCALARS, "its labels have lists")
    _require(set(map(type, map(itemgetter(ITEM), labels))) == {str}, "an item has no title")


def _own_names(item: Mapping[str, Any]) -> tuple[str, ...]:
    if "values" in item:
        return (item["values"]["column"],)
    match item[ITEM]:
        case "moments":
            return "feature", "with"
        case "gradient":
            width = len(item.get("features", range(item["size"])))
            return ("class", "feature") if "classes" in item or width < item["size"] else ("feature",)
    return ()


def _group_size(axis: Mapping[str, Any]) -> int:
    """The size of a column's axis. Raises ValueError if the axis lists another number of values."""
    _require(isinstance(axis["column"], str), "a column has no name")
    size = _size(axis)
    if "categories" in axis:
        _require(len(_listed_scalars(axis, "categories")) == size, "an axis has other categories")
    elif "edges" in axis:
        _require(len(_listed_scalars(axis, "edges")) == size + 1, "an axis has other edges")
        _require(not {bool, type(None)} & {*map(type, axis["edges"])}, "an edge is no number")
    elif isinstance(axis.get("lower"), str):
        _check_times(axis, size)
    elif isinstance(axis.get("lower"), int) and axis.get("by") is None:
        _require(axis["upper"] - axis["lower"] + 1 == size, "an axis has other bounds")
    return size


def _check_times(axis: Mapping[str, Any], size: int) -> None:
    """Refuse an axis of days whose size is not that of its bounds, and an axis of seconds beyond the year 9999."""
    lower, upper = axis["lower"], axis["upper"]
    if axis.get("by") is not None:
        return
    if len(lower) == len(upper) == _DATE_LENGTH:
        _require((date.fromisoformat(upper) - date.fromisoformat(lower)).days + 1 == size, "an axis has other days")
    else:
        first = datetime.fromisoformat(lower)
        _ = (first if first.tzinfo else first.replace(tzinfo=UTC)).astimezone(UTC) + timedelta(seconds=size)


def _item_size(item: Mapping[str, Any]) -> int:
    """The size of a select item. Raises ValueError if the item's parts do not make up this size."""
    title, size = item[ITEM], _size(item)
    _require(isinstance(title, str), "an item has no title")
    _require(isinstance(item.get("item", 0), int), "an item has no place")
    if "values" in item:
        _require(_group_size(item["values"]) == size, "a histogram has other values")
        return size
    features, classes = (_listed_scalars(item, name) if name in item else None for name in ("features", "classes"))
    if title == "moments":
        count = math.isqrt(2 * size)
        _require(count * (count + 1) == 2 * size and len(features or range(count)) == count, "moments are no triangle")
    if title == "gradient":
        divisor = len(features or (0,)) * len(classes or (0,))
        _require(size % divisor == 0, "a gradient has other classes")
        _require(features is None or classes is None or divisor == size, "a gradient has other features")
    return size


def _size(axis: Mapping[str, Any]) -> int:
    size = axis["size"]
    is_size = isinstance(size, int) and not isinstance(size, bool) and 0 < size <= DIMENSION_MAX
    _require(is_size, "the size of an axis is out of range")
    return int(size)


def _listed(axis: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = axis[name]
    _require(isinstance(found, list) and all(isinstance(each, dict) for each in found), f"{name} is no list of objects")
    _require(0 < len(found) <= DIMENSION_MAX, f"{name} is empty")
    return list(found)


def _listed_scalars(axis: Mapping[str, Any], name: str) -> list[object]:
    found = axis[name]
    _require(isinstance(found, list) and {*map(type, found)} <= _SCALARS, f"{name} is no list of values")
    _require(len(found) > 0, f"{name} is empty")
    return list(found)


def _require(is_so: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition
    if not is_so:
        raise ValueError(otherwise)
