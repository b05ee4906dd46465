"""The vector of one individual and the grid it is counted on, from a query's JSON and docs/query-language.md alone."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from itertools import count, pairwise
from math import ceil, floor, prod, trunc
from typing import Any

from tests.laws.fraction_values import (
    EPOCH,
    Extent,
    FractionValues,
    Near,
    Row,
    as_number,
    bounds,
    decimal,
    domain,
    nearest,
    place_of,
    point,
)
from tests.laws.functionals import Functional, functionals

Steps = tuple[int, int]
"""The lowest and the highest number of grid steps that the page allows: mostly one number."""

DAY_S, HOUR_S = 86_400, 3600
SHARE_LEFT = "(share left)"
"""In the row of an individual, the part of the dataset's budget that it has left; no column has such a name."""


class FractionEvaluator(FractionValues):
    """A query as JSON, and the tables of its dataset."""

    # Which coordinate

    @property
    def dimension(self) -> int:
        """How many numbers the answer has."""
        return self.groups * self.block

    @property
    def groups(self) -> int:
        """How many groups there are, empty ones included."""
        return prod(len(self.parts(key)) for key in self.keys())

    @property
    def block(self) -> int:
        """How many numbers a group has."""
        return sum(map(self.size, self.document["select"]))

    def keys(self) -> list[Any]:
        """The keys of group_by."""
        return list(self.document.get("group_by", []))

    def parts(self, key: Any) -> Sequence[Any]:
        """The groups that a key makes, in order: values, intervals or parts of the calendar."""
        if isinstance(key, str):
            return domain(self.columns[key])
        ((kind, body),) = key.items()
        column = self.columns[body["column"]]
        if kind == "bin":
            return list(pairwise(self.edges(body, column)))
        if body["by"] in {"hour", "weekday"}:
            return range(24) if body["by"] == "hour" else range(1, 8)
        day_s = DAY_S if column["type"] == "datetime" else 1
        first, last = (int(end // day_s) for end in bounds(column))
        return list(dict.fromkeys(self.calendar(body["by"], day, 0) for day in range(first, last + 1)))

    def edges(self, cut: dict[str, Any], column: dict[str, Any]) -> list[Fraction]:
        """The stated edges, or multiples of a width: from the last not above the bounds to the first not below them."""
        low, high = bounds(column)
        edges = cut["edges"] if "edges" in cut else self.multiples(decimal(cut["width"]), column)
        if column["type"] == "real":
            return [self.real(float(edge), max(abs(low), abs(high))) for edge in edges]
        return [point(edge, column["type"]) if isinstance(edge, str) else Fraction(edge) for edge in edges]

    def multiples(self, width: Fraction, column: dict[str, Any]) -> list[Fraction]:
        """The multiples of a width, from bound to bound, all of them decimals."""
        low, high = (decimal(column[end]) / width for end in ("lower", "upper"))
        return [number * width for number in range(floor(low), ceil(high) + 1)]

    def part(self, key: Any, row: Row) -> int | None:
        """The place of a row's group among those of a key, or None if it is in none."""
        name = key if isinstance(key, str) else next(iter(key.values()))["column"]
        value, parts = row[name], self.parts(key)
        if value is None:
            return None
        if isinstance(key, str):
            return place_of(value, self.columns[name])
        if "bin" in key:
            return self.interval(value.value, parts)
        day, second = divmod(int(value.value), DAY_S) if self.columns[name]["type"] == "datetime" else (value.value, 0)
        return parts.index(self.calendar(key["bucket"]["by"], int(day), second // HOUR_S))

    def interval(self, value: Fraction, intervals: Sequence[Any]) -> int | None:
        """An interval includes its lower end, the last one its upper end too."""
        inside = (place for place, (low, high) in enumerate(intervals) if low <= value < high)
        return next(inside, len(intervals) - 1 if value == intervals[-1][1] else None)

    def calendar(self, by: str, days: int, hour: int) -> Any:
        """The part of the calendar that a day and an hour of it are in."""
        day: date = EPOCH.date() + timedelta(days=days)
        year, week, weekday = day.isocalendar()
        return {
            "day": days,
            "week": (year, week),
            "month": (day.year, day.month),
            "quarter": (day.year, (day.month + 2) // 3),
            "year": day.year,
            "weekday": weekday,
            "hour": hour,
        }[by]

    def group(self, row: Row) -> int | None:
        """The place of a row's group: the first key is the slowest."""
        group = 0
        for key in self.keys():
            place = self.part(key, row)
            if place is None:
                return None
            group = group * len(self.parts(key)) + place
        return group

    # Which numbers

    def size(self, item: dict[str, Any]) -> int:
        """How many numbers of each group are an item's."""
        if "linear" in item:
            return len(functionals(item))
        return len(self.counted_values(item["histogram"])) if "histogram" in item else 1

    def counted_values(self, histogram: dict[str, Any]) -> Sequence[Any]:
        """The values that a histogram counts, in order: those of the schema, those listed, or parts."""
        if "column" not in histogram:
            return self.parts(histogram)
        of = {"col": histogram["column"]}
        if "values" in histogram:
            return [self.literal(each, of) for each in histogram["values"]]
        return domain(self.columns[of["col"]])

    def vector(self, rows: list[Row], grid: Fraction) -> dict[int, Steps]:
        """The sum over the stored rows of an individual, before the clip; coordinates of zero are left out.

        Of an individual with more selected rows than count, each has the weight of those that count over all of them.
        """
        total: dict[int, Steps] = {}
        once: set[int] = set()
        selected = self.selected(rows)
        for row in selected:
            group = self.group(row)
            if group is None:
                continue
            for offset, number, is_once in self.entries(row):
                low, high = self.rounded(number, grid)
                place = group * self.block + offset
                before = (0, 0) if is_once else total.get(place, (0, 0))
                total[place] = before[0] + low, before[1] + high
                once |= {place} if is_once else set()
        weighed = {
            place: self.weighed(steps, len(once) if place in once else len(selected)) for place, steps in total.items()
        }
        return {place: steps for place, steps in weighed.items() if steps != (0, 0)}

    def weighed(self, steps: Steps, shared_by: int) -> Steps:
        """Steps that so many rows or groups of an individual share, times as many as count; toward zero."""
        if self.is_weighed and shared_by > self.rows_max:
            low, high = (trunc(Fraction(self.rows_max * each, shared_by)) for each in steps)
            return low, high
        return steps

    def rounded(self, number: Near, grid: Fraction) -> Steps:
        """To the nearest multiple of the grid, halves up."""
        low, high = (number.value - number.off) / grid, (number.value + number.off) / grid
        return floor(low + Fraction(1, 2)), floor(high + Fraction(1, 2))

    def selected(self, rows: list[Row]) -> list[Row]:
        """The rows that the condition selects."""
        where = self.document.get("where")
        return rows if where is None else [row for row in rows if self.truth(where, row) is True]

    def bounded(self, name: str) -> Any:
        """A bound of per_individual, or None."""
        return self.document.get("per_individual", {}).get(name)

    def entries(self, row: Row) -> Iterator[tuple[int, Near, bool]]:
        """Coordinate within the group, number, and whether it is added once to the group, for each item."""
        offset = 0
        for item in self.document["select"]:
            is_once = "count_individuals" in item
            yield from ((offset + place, number, is_once) for place, number in self.added(item, row))
            offset += self.size(item)

    def added(self, item: dict[str, Any], row: Row) -> Iterator[tuple[int, Near]]:
        """The numbers that a row adds to an item's coordinates."""
        ((kind, body),) = item.items()
        if kind in {"count", "count_individuals"}:
            yield 0, Near(Fraction(1))
            return
        if kind == "active":
            yield from [(0, Near(Fraction(1)))] if self.is_active(row, Fraction(body["share"])) else []
            return
        if kind == "histogram" and "column" not in body:
            part = self.part(body, row)
            yield from [] if part is None else [(part, Near(Fraction(1)))]
            return
        value = self.value(body["of"], row) if "of" in body else row[body["column"]]
        if value is None:
            return
        if kind == "sum":
            yield 0, as_number(value)
        elif "values" in body:
            yield from ((place, Near(Fraction(1))) for place in find(value, self.counted_values(body)))
        elif kind == "histogram":
            yield place_of(value, self.columns[body["column"]]), Near(Fraction(1))
        else:
            yield from enumerate(self.weight(weights, value, body["column"]) for weights in functionals(item))

    def is_active(self, row: Row, share: Fraction) -> bool:
        """Tell whether an individual has at least a share of the dataset's budget left."""
        left: Near = row[SHARE_LEFT]
        return left.value >= share

    def weight(self, functional: Functional, value: Any, name: str) -> Near:
        """The weight of a value: whole weights are exact, others in steps of which the largest has more than 2^51."""
        for place in find(value, [self.literal(each, {"col": name}) for each in functional.indices]):
            weight = functional.weights[place]
            return Near(weight if functional.is_whole else nearest(weight, functional.beside))
        return Near(Fraction(0))

    # On which grid

    def natural_squared(self) -> Fraction:
        """The square of the longest vector that the declared domains allow: rows of one value, the dearest one."""
        rows, once = self.rows_max, [item for item in self.document["select"] if "count_individuals" in item]
        together: dict[Any, list[dict[str, Any]]] = {}
        for place, item in enumerate(self.document["select"]):
            ((_, body),) = item.items()
            if item not in once:
                together.setdefault(body.get("column", place), []).append(item)
        squared = sum((self.longest_squared(items) for items in together.values()), Fraction(0))
        return squared * rows**2 + len(once) * min(rows, self.in_groups())

    def in_groups(self) -> int:
        """How many groups the rows of an individual may be in: by its own columns it is in one."""
        names = [(key, key if isinstance(key, str) else next(iter(key.values()))["column"]) for key in self.keys()]
        return prod(len(self.parts(key)) for key, name in names if "." not in name)

    @property
    def rows_stored_max(self) -> int:
        """The most rows that an individual may have."""
        table = self.tables[self.table]
        rows: int = table["rows_per_individual"] if table["kind"] == "events" else 1
        return rows

    @property
    def rows_max(self) -> int:
        """The most rows of an individual that count."""
        return min(self.rows_stored_max, self.bounded("rows") or self.rows_stored_max)

    @property
    def is_weighed(self) -> bool:
        """True if an individual may have more rows than count."""
        return self.rows_max < self.rows_stored_max

    def longest_squared(self, items: list[dict[str, Any]]) -> Fraction:
        """The square of the longest vector that a row adds to items over one column: the entries of one value."""
        listing = [item for item in items if "linear" in item or "values" in item.get("histogram", {})]
        if not listing:
            return sum((extent.largest**2 for item in items for extent in self.extents(item)), Fraction(0))
        ((_, body), *_) = (next(iter(item.items())) for item in listing)
        listed = [self.literal(each, {"col": body["column"]}) for item in listing for each in self.listed(item)]
        others: list[Any] = [None]
        if any("sum" in item for item in items):
            numbers, (low, high) = {each.value for each in listed}, bounds(self.columns[body["column"]])
            ends = (next(n for n in around if n not in numbers) for around in (count(int(low)), count(int(high), -1)))
            others = [Near(Fraction(end)) for end in ends if low <= end <= high]
        squares = (sum((self.squares(item, each) for item in items), Fraction(0)) for each in [*listed, *others])
        return max(squares)

    def listed(self, item: dict[str, Any]) -> Iterator[Any]:
        """The values that an item lists."""
        if "histogram" in item:
            yield from item["histogram"]["values"]
            return
        for functional in functionals(item):
            yield from functional.indices

    def squares(self, item: dict[str, Any], value: Any) -> Fraction:
        """The square of what a value of its column adds to an item; None is a value that no item lists."""
        ((kind, body),) = item.items()
        if kind == "sum":
            return Fraction(value.value) ** 2
        if kind == "histogram" and "values" not in body:
            return Fraction(1)
        if kind == "histogram":
            return Fraction(len(find(value, self.counted_values(body))))
        name = {"col": body["column"]}
        weights = (
            weight
            for functional in functionals(item)
            for index, weight in zip(functional.indices, functional.weights, strict=True)
            if self.literal(index, name) == value
        )
        return sum((weight**2 for weight in weights), Fraction(0))

    def extents(self, item: dict[str, Any]) -> Iterator[Extent]:
        """The numbers that a row may add to each coordinate of an item."""
        if "linear" in item:
            yield from (functional.extent for functional in functionals(item))
        elif "sum" in item:
            body = item["sum"]
            yield self.extent(body["of"] if "of" in body else {"col": body["column"]})
        else:
            yield self.extent(1)

    def clip_squared(self) -> tuple[Fraction, bool]:
        """The square of the bound on a vector, and whether a vector can be beyond it."""
        natural, clip = self.natural_squared(), self.bounded("l2_clip")
        binds = clip is not None and Fraction(clip) ** 2 < natural
        return (Fraction(clip) ** 2, True) if binds else (natural, False)

    def grid(self, sigma: float) -> Fraction:
        """The power of two that numbers are rounded to: the first of the page's that suits all items, or 0."""
        squared, binds = self.clip_squared()
        extents = [extent for item in self.document["select"] for extent in self.extents(item)]
        is_whole = all(extent.is_whole for extent in extents) and not self.is_weighed
        if is_whole and not binds and squared <= 2**60 and sigma <= 2**32:
            return Fraction(1)
        span = Fraction(1)
        while span**2 < squared:
            span *= 2
        while (span / 2) ** 2 >= squared:
            span /= 2
        least = 19 if self.is_weighed else 18
        fine = [span / 2**s for s in range(30, least - 1, -1) if sigma <= 2**28 * span / 2**s]
        coarse = [span / 2**s for s in range(least, 31) if sigma <= 2**32 * span / 2**s]
        kept = (grid for grid in fine + coarse if all(self.suits(extent, grid) for extent in extents))
        return next(kept, Fraction(0))

    def suits(self, extent: Extent, grid: Fraction) -> bool:
        """Tell whether a grid leaves an item its own steps or 256, and its sum within 2^61: numbers not on the page."""
        is_lost = extent.step < grid and 0 < extent.largest < 256 * grid
        summed = self.rows_stored_max * (self.rows_max if self.is_weighed else 1)
        return not is_lost and extent.largest * summed <= 2**61 * grid


def find(value: Any, listed: Sequence[Any]) -> list[int]:
    """The places of a value in a list: one or none."""
    return [place for place, each in enumerate(listed) if each == value]
