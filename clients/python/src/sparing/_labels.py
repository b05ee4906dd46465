"""The labels of an answer above 10,000 coordinates, made from its axes, as the service sends no such labels.

Three things are only in the public schema: a list of more than 1,000 categories, the first multiple of a width, and the
first part of the calendar. Until `named_axes` adds them to the axes, these values are numbered from 0 in their order.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, chain, combinations_with_replacement, pairwise, product, repeat
from math import ceil, floor, isqrt, prod
from typing import Any, Final, overload

Label = Mapping[str, object]
Axis = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Item:
    """A select item. `own` has further entries of its labels by name, such as the values of a histogram's column."""

    title: str
    size: int
    own: Mapping[str, Sequence[object]]

    def text(self, place: int) -> str:
        """The text under `select` in the label of the item's number at `place`; several functionals are numbered."""
        return f"{self.title}[{place}]" if self.size > 1 and not self.own else self.title

    def label(self, place: int) -> dict[str, object]:
        return {"select": self.text(place), **{name: values[place] for name, values in self.own.items()}}


class Labels(Sequence[Label]):
    """The labels, each made when it is read; `columns` returns all of them as columns, without making single labels."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        """The labels of an answer with these axes: by group from the outermost in, and within a group by item."""
        self._axes = axes

    @cached_property
    def _groups(self) -> dict[str, Sequence[object]]:
        return {str(axis["column"]): _values(axis) for axis in self._axes[:-1]}

    @cached_property
    def _items(self) -> list[_Item]:
        return [_item(each) for each in self._axes[-1]["select"]]

    @cached_property
    def _begins(self) -> list[int]:
        """The first coordinate of each item within a group, and at the end the number of coordinates of a group."""
        return [0, *accumulate(item.size for item in self._items)]

    def __len__(self) -> int:
        return self._begins[-1] * prod(map(len, self._groups.values()))

    @overload
    def __getitem__(self, place: int) -> Label: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Label]: ...
    def __getitem__(self, place: int | slice) -> Label | Sequence[Label]:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        group, own = divmod(range(len(self))[place], self._begins[-1])
        found = {}
        for name, values in reversed(self._groups.items()):
            group, code = divmod(group, len(values))
            found[name] = values[code]
        item = bisect_right(self._begins, own) - 1
        return {name: found[name] for name in self._groups} | self._items[item].label(own - self._begins[item])

    def __iter__(self) -> Iterator[Label]:
        for group in product(*self._groups.values()):
            outer = dict(zip(self._groups, group, strict=True))
            yield from (outer | item.label(place) for item in self._items for place in range(item.size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._axes == other._axes

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Labels(of {len(self):,} numbers)"

    def columns(self) -> dict[str, list[object]]:
        """A column for each name in the labels, with a value for every label; None if the label lacks the name."""
        times, inner, found = 1, len(self), {}
        for name, values in self._groups.items():
            inner //= len(values)
            found[name] = list(chain.from_iterable(repeat(value, inner) for value in values)) * times
            times *= len(values)
        return found | {name: column * times for name, column in self._columns_of_items().items()}

    def _columns_of_items(self) -> dict[str, list[object]]:
        named = dict.fromkeys(name for item in self._items for name in item.own)
        found: dict[str, list[object]] = {"select": [], **{name: [] for name in named}}
        for item in self._items:
            for name, column in found.items():
                if name == "select":
                    column.extend(map(item.text, range(item.size)))
                else:
                    column.extend(item.own.get(name, [None] * item.size))
        return found


def named_axes(axes: Sequence[Axis], tables: Mapping[str, Any], asked: str) -> list[Axis]:
    """The axes of an answer about the table `asked`, completed with edges and categories from the public schema.

    A column's name alone means a column of that table; a name such as `people.town` means a column of the named table.
    """
    declared = {f"{table}.{own}": column for table, each in tables.items() for own, column in each["columns"].items()}
    declared |= tables[asked]["columns"]
    items = [
        {**item, "values": _named(item["values"], declared)} if "values" in item else item
        for item in axes[-1]["select"]
    ]
    return [*(_named(axis, declared) for axis in axes[:-1]), {"select": items}]


def _named(axis: Axis, declared: Mapping[str, Axis]) -> Axis:
    """The axis with the edges or categories of its column, if their number agrees with the axis."""
    column = declared.get(str(axis["column"]), {})
    match {**column, **axis}:
        case {"width": int() | float() as width, "lower": int() | float() as lower, "upper": int() | float() as upper}:
            edges = edges_of_width(width, lower, upper)
            return {**axis, "edges": edges} if len(edges) == axis["size"] + 1 else axis
        case {"by": "day" | "week" | "month" | "quarter" | "year" as unit, "lower": lower, "upper": upper}:
            parts = list(dict.fromkeys(map(_PARTS[unit], _days(lower[:10], upper[:10]))))
            return {**axis, "categories": parts} if len(parts) == axis["size"] else axis
        case {"categories": [*categories]} if len(categories) == axis["size"]:
            return {**axis, "categories": categories}
    return axis


def _values(axis: Axis) -> Sequence[object]:
    """The values along an axis, in order; numbers from 0 if the axis does not tell them."""
    match axis:
        case {"categories": [*categories]}:
            return categories
        case {"edges": edges}:
            return interval_names(edges)
        case {"by": "weekday"}:
            return range(1, 8)
        case {"lower": int(lower), "upper": int(upper)}:
            return range(lower, upper + 1)
        case {"lower": str(lower), "upper": str(upper), "size": int(size)}:
            if len(lower) == len(upper) == _DATE_LENGTH and len(days := list(_days(lower, upper))) == size:
                return [day.isoformat() for day in days]
            first = datetime.fromisoformat(lower)
            first = first.replace(tzinfo=UTC) if first.tzinfo is None else first.astimezone(UTC)
            return [f"{(first + timedelta(seconds=second)).isoformat()[:19]}Z" for second in range(size)]
    return range(int(axis["size"]))


def edges_of_width(width: float, lower: float, upper: float) -> list[float]:
    """The edges of bins of a width: the multiples of it from below the lower bound to above the upper."""
    step = Decimal(str(width))
    first, last = floor(Decimal(str(lower)) / step), ceil(Decimal(str(upper)) / step)
    return [float(place * step) for place in range(first, max(last, first + 1) + 1)]


def interval_names(edges: Sequence[object]) -> list[str]:
    """The names of the intervals between edges, such as `[0, 10)`; the last interval includes its upper edge."""
    texts = [edge if isinstance(edge, str) else repr(edge).removesuffix(".0") for edge in edges]
    inner = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return [*inner[:-1], f"{inner[-1][:-1]}]"]


def _item(axis: Axis) -> _Item:
    title, size = str(axis["select"]), int(axis["size"])
    match axis:
        case {"values": of}:
            own = {str(of["column"]): _values(of)}
        case {"select": "moments"}:
            own = _pairs(axis.get("features", range(isqrt(2 * size))))
        case {"select": "gradient"}:
            own = _of_classes(axis.get("features"), axis.get("classes"), size)
        case _:
            own = {}
    return _Item(title, size, own)


def _of_classes(
    features: Sequence[object] | None, classes: Sequence[object] | None, size: int
) -> dict[str, Sequence[object]]:
    """The class, if there are classes, and the feature of each number of a gradient; unlisted ones are numbered."""
    if features is None:
        features = range(size // len(classes or (0,)))
    if classes is None and size > len(features):
        classes = range(size // len(features))
    if classes is None:
        return {"feature": features}
    return {"class": [value for value in classes for _ in features], "feature": [*features] * len(classes)}


def _pairs(features: Sequence[object]) -> dict[str, Sequence[object]]:
    """The first and the second feature of each pair, by the rows of the upper triangle."""
    first, second = zip(*combinations_with_replacement(features, 2), strict=True)
    return {"feature": first, "with": second}


def _days(lower: str, upper: str) -> Iterator[date]:
    first, last = date.fromisoformat(lower).toordinal(), date.fromisoformat(upper).toordinal()
    return map(date.fromordinal, range(first, last + 1))


_DATE_LENGTH: Final = 10
_PARTS: Final[Mapping[str, Callable[[date], str]]] = {
    "day": date.isoformat,
    "week": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: day.isoformat()[:7],
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}
