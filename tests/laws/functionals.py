"""The functionals of a `linear` item, in fractions, however they are written."""

from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from tests.laws.fraction_values import Extent, real_step


class Functional(NamedTuple):
    """Weights of listed values; `beside` is the largest of those that are rounded to the same steps."""

    indices: list[Any]
    weights: list[Fraction]
    beside: Fraction
    is_whole: bool

    @property
    def extent(self) -> Extent:
        """The extent of the weights."""
        step = Fraction(1) if self.is_whole else real_step(self.beside)
        largest = max(map(abs, self.weights), default=Fraction(0))
        return Extent(-largest, largest, step, self.is_whole)


def functionals(item: dict[str, Any]) -> list[Functional]:
    """One, several, or the rows of a matrix, which share their steps."""
    weights, matrix = (item["linear"].get(name) for name in ("weights", "matrix"))
    if matrix is None:
        return [_functional(each, each["values"]) for each in (weights if isinstance(weights, list) else [weights])]
    rows = [
        {name: matrix[name][start:end] for name in ("indices", "values")} for start, end in pairwise(matrix["starts"])
    ]
    return [_functional(row, matrix["values"]) for row in rows]


def _functional(row: dict[str, Any], alike: list[float]) -> Functional:
    numbers = [Fraction(each) for each in alike]
    is_whole = all(number.denominator == 1 for number in numbers)
    return Functional(row["indices"], [Fraction(each) for each in row["values"]], max(map(abs, numbers)), is_whole)
