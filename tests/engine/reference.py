"""The vector of one individual in a small world, from a query's JSON and the uploaded values, by the laws' evaluator.

Slow and obvious, and independent of the service's codes, predicates and plans: of a plan it takes nothing but the grid.
"""

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import trunc
from typing import Any

from hypothesis import assume, reject

from tests.engine.worlds import TABLES, Row
from tests.laws.fraction_evaluator import SHARE_LEFT, FractionEvaluator, Steps
from tests.laws.fraction_values import Near, Unsure
from tests.laws.functionals import Functional, functionals


class WorldEvaluator(FractionEvaluator):
    """A query over a small world, whose individuals have vectors too; it counts the numbers of each item once."""

    def __init__(self, document: dict[str, Any], tables: dict[str, Any] = TABLES) -> None:
        super().__init__(document, tables)
        self._sizes: dict[int, int] = {}

    def held(self, value: Any, column: dict[str, Any]) -> Any:
        """A value of a column; the numbers of a vector are moved to its bounds."""
        if value is None or column["type"] != "vector":
            return super().held(value, column)
        return [min(max(number, column["lower"]), column["upper"]) for number in value]

    def size(self, item: dict[str, Any]) -> int:
        """How many numbers of each group are an item's."""
        if id(item) not in self._sizes:  # of the document, which lives as long as this does
            is_linear = "linear" in item
            self._sizes[id(item)] = len(_functionals(json.dumps(item))) if is_linear else super().size(item)
        return self._sizes[id(item)]

    def added(self, item: dict[str, Any], row: Row) -> Iterator[tuple[int, Near]]:
        """The numbers that a row adds to an item's coordinates."""
        if "linear" not in item:
            yield from super().added(item, row)
            return
        name = item["linear"]["column"]
        if row[name] is not None:
            yield from enumerate(self.weight(each, row[name], name) for each in _functionals(json.dumps(item)))


@cache
def _functionals(item: str) -> list[Functional]:
    """Those of an item, made once: a matrix may have hundreds."""
    return functionals(json.loads(item))


class ByItem(WorldEvaluator):
    """Each select item is counted in steps of its own and truncated toward zero."""

    sizes: Sequence[float] = ()

    def entries(self, row: Row) -> Iterator[tuple[int, Near, bool]]:
        """Coordinate, number in steps of the item, and whether it is added once."""
        offset = 0
        for item, size in zip(self.document["select"], self.sizes, strict=True):
            for place, number in self.added(item, row):
                yield offset + place, Near(number.value / Fraction(size)), "count_individuals" in item
            offset += self.size(item)

    def rounded(self, number: Near, grid: Fraction) -> Steps:
        """Toward zero."""
        return trunc(number.value), trunc(number.value)


def vector(
    rows: list[Row],
    query: dict[str, Any],
    grid_log2: int,
    *,
    own: Row | None = None,
    left: Fraction = Fraction(1),
    sizes: Sequence[float] = (),
) -> dict[int, int]:
    """The sum over an individual's rows, unclipped, as {coordinate: steps}, without zeros.

    `own` is the individual's own record, which events see under `people.`; `left` is the part of the dataset's budget
    that it has; `sizes` are the steps of each select item, where it is counted in its own. An example that the page
    does not decide is passed over.
    """
    evaluator = ByItem(query) if sizes else WorldEvaluator(query)
    if isinstance(evaluator, ByItem):
        evaluator.sizes = sizes
    beside = {SHARE_LEFT: Near(left)} | ({} if own is None else evaluator.stored(own, "people."))
    try:
        found = evaluator.vector([evaluator.stored(row) | beside for row in rows], Fraction(2) ** grid_log2)
    except Unsure:
        reject()
    assume(all(low == high for low, high in found.values()))
    return {place: low for place, (low, _) in found.items()}
