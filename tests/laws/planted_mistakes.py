"""Mistakes to plant, one at a time, in the reference in fractions, in the engine and in the client's builder."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from service.engine import sparse_vectors
from service.query.conditions import conjunction
from sparing import Value, active
from tests.laws.fraction_evaluator import FractionEvaluator
from tests.laws.fraction_values import Near, bounds

Plant = dict[str, Callable[..., Any]]
HALF = Fraction(1, 2)


def _ends(first: str, last: str) -> Plant:
    return {
        "between": lambda self, value, low, high, blur: self.joined(
            [self.compared(first, value, low, blur), self.compared(last, value, high, blur)], decisive=False
        )
    }


def _rounding(rule: Callable[[Fraction], int]) -> Plant:
    return {
        "rounded": lambda self, number, grid: (
            rule((number.value - number.off) / grid),
            rule((number.value + number.off) / grid),
        )
    }


def _calendar(by: str, part: Callable[[Any, int], Any]) -> Plant:
    right = FractionEvaluator.calendar
    return {
        "calendar": lambda self, unit, days, hour: part(self, days) if unit == by else right(self, unit, days, hour)
    }


RIGHT = FractionEvaluator
IN_THE_REFERENCE: dict[str, Plant] = {
    "between excludes its lowest": _ends("gt", "le"),
    "between excludes its highest": _ends("ge", "lt"),
    "not unknown is true": {"negated": lambda self, inner: not inner},
    "unknown decides a junction": {
        "joined": lambda self, parts, decisive: (
            None if None in parts else decisive if decisive in parts else not decisive
        )
    },
    "a NULL is unequal": {
        "compared": lambda self, kind, left, right, blur: (
            kind == "ne" if left is None or right is None else RIGHT.compared(self, kind, left, right, blur)
        )
    },
    "a NULL is zero in arithmetic": {"without": lambda self, parts: Near(Fraction(0))},
    "a difference is turned round": {
        "calculated": lambda self, kind, left, right: RIGHT.calculated(
            self, kind, *((right, left) if kind == "sub" else (left, right))
        )
    },
    "a literal is not rounded to the step of a column": {
        "literal": lambda self, literal, node: (
            Near(Fraction(literal)) if isinstance(literal, float) else RIGHT.literal(self, literal, node)
        )
    },
    "halves are rounded down": _rounding(lambda steps: ceil(steps - HALF)),
    "halves are rounded away from zero": _rounding(lambda steps: int(abs(steps) + HALF) * (1 if steps > 0 else -1)),
    "numbers are truncated": _rounding(int),
    "the last interval excludes its end": {
        "interval": lambda self, value, intervals: (
            None if value == intervals[-1][1] else RIGHT.interval(self, value, intervals)
        )
    },
    "an interval includes its upper end": {
        "interval": lambda self, value, intervals: next(
            (place for place, (low, high) in enumerate(intervals) if low <= value <= high), None
        )
    },
    "bounds of bins are as they are stored": {
        "multiples": lambda self, width, column: RIGHT.multiples(
            self, width, dict(zip(("lower", "upper"), bounds(column), strict=True))
        )
    },
    "weeks begin on Sunday": _calendar("week", lambda self, days: RIGHT.calendar(self, "week", days + 1, 0)),
    "weekdays begin on Sunday": _calendar(
        "weekday", lambda self, days: RIGHT.calendar(self, "weekday", days, 0) % 7 + 1
    ),
    "the first key is the fastest": {"keys": lambda self: RIGHT.keys(self)[::-1]},
    "every row counts": {"weighed": lambda self, steps, _: steps},
    "rows of no group are not among those that share a weight": {
        "selected": lambda self, rows: [row for row in RIGHT.selected(self, rows) if self.group(row) is not None]
    },
    "an individual counts with every row": {
        "entries": lambda self, row: ((place, number, False) for place, number, _ in RIGHT.entries(self, row))
    },
    "a value that is not listed weighs as the first": {
        "weight": lambda self, functional, value, name: Near(
            RIGHT.weight(self, functional, value, name).value or (*functional.weights, Fraction(0))[0]
        )
    },
    "an individual with exactly the share left is not active": {
        "is_active": lambda self, row, share: RIGHT.is_active(self, row, share + Fraction(1, 2**60))
    },
    "an individual may be in all groups by its own columns": {"in_groups": lambda self: self.groups},
    "items over one column are bounded one by one": {
        "longest_squared": lambda self, items: sum((RIGHT.longest_squared(self, [item]) for item in items), Fraction(0))
    },
    "the rows of an individual do not add up in the natural bound": {
        "natural_squared": lambda self: sum(
            (self.longest_squared([item]) for item in self.document["select"]), Fraction(0)
        )
    },
}


def _halves_down(self: Any, columns: Any, _count: int) -> Any:
    """The values of a sum alone in its query, with halves rounded down."""
    steps = columns[self.column].astype(np.int64) + self.coding_offset
    if self.shift >= 0:
        return steps << self.shift
    return (steps + (1 << (-self.shift - 1)) - 1) >> -self.shift


IN_THE_ENGINE: dict[str, tuple[str, Any]] = {
    "le and between exclude their highest": ("service.query.conditions.floor", lambda place: ceil(place) - 1),
    "or is and": ("service.query.conditions.disjunction", conjunction),
    "halves are rounded down": ("service.engine.terms.Value.values", _halves_down),
    "an individual counts with every row": ("service.engine.evaluate._counted_once", lambda query, entries: entries),
    "everybody is active": ("service.engine.evaluate._only", lambda blocks, chosen: blocks),
    "every row counts": ("service.engine.evaluate._weighed", lambda query, run, entries: entries),
    "nothing is clipped": (
        "service.engine.sparse_vectors.clipped",
        lambda values, firsts, most: (values, sparse_vectors.norms_squared(values, firsts)),
    ),
}
IN_THE_BUILDER: dict[str, tuple[str, Any]] = {
    "a difference from a literal is turned round": (
        "sparing._expressions.Value.__rsub__",
        lambda value, other: Value({"sub": [value.json, other]}),
    ),
    "the active are counted by their part of the budget": (
        "sparing._builder.active",
        lambda share, active=active: active(share=share / 2),
    ),
    "between turns its ends round": (
        "sparing._expressions.Value.between",
        lambda value, low, high, between=Value.between: between(value, high, low),
    ),
    "a later key comes first": (
        "sparing._builder.QuerySteps.group_by",
        lambda steps, key: steps._with({"group_by": [key, *steps._asked.get("group_by", ())]}),
    ),
}
