"""A value about the middle of its bounds, and the sums that a mean and a variance are worked out from.

A mean is a sum over a count. Its error is the least for its cost where the sum is taken of x - c, for the middle c of
the declared bounds: no row then adds more than half of their distance, h. With noise of sigma_n on the count n and of
sigma_s on the sum, the error's square is (sigma_s^2 + u^2 h^2 sigma_n^2) / n^2 where the mean is u h from c (the delta
method). A part w of the worst case buys sigma_n^2 = 1 / (2 w rho) and sigma_s^2 = h^2 / (2 w rho). So the division w_s
: w_n = 1 : |u| is best, but u is not known beforehand. Over all u between -1 and 1, u^2 is 1 / 3 on average. The
division 1 : sqrt(1 / 3), near 7 : 4, then makes the square of the error least on average. That square is 8 % more than
with the best division where the mean is at a bound, and 57 % more where it is c itself.

A variance also needs the sum of (x - c)^2 - h^2 / 2, a number between -h^2 / 2 and h^2 / 2. By the same method the
division 12 : 7 : 5 for sum, count and squares is best. The average is over means u h and then over the variances that
each mean allows.

The count is the sum of clip(x, 1, 1): 1 for each row with a value, and nothing where x is NULL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from service.query.columns import number_of
from service.query.declared_bounds import bounds_of
from service.query.expressions_ast import Abs, Clip, ColumnRef, Mul, OfValue, Row, Sub
from service.query.item import Item, ItemPlace
from service.query.items.sum import SumItem
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import text_of

MEAN_PARTS: Final = 7, 4
"""The parts of the cost of the sum and the count."""
VARIANCE_PARTS: Final = 12, 7, 5
"""The parts of the cost of the sum, the count and the squares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CentredValue:
    """A value of numbers whose two bounds differ."""

    value: Row
    low: Fraction
    high: Fraction

    @property
    def text(self) -> str:
        """The value as labels have it."""
        return text_of(self.value)

    @property
    def middle(self) -> int | float:
        """The middle of the bounds, or the nearest double."""
        return number_of((self.low + self.high) / 2)

    @property
    def half(self) -> Fraction:
        """The distance from the middle to either bound."""
        return (self.high - self.low) / 2

    def sums(self, parts: Sequence[int]) -> list[tuple[Item, int]]:
        """The sum, the count and, where there is a third part, the squares, each with its part of the cost."""
        return list(zip((self.total, self.count, self.squares), parts, strict=False))

    @property
    def total(self) -> SumItem:
        """The sum of what the value is above the middle."""
        above = self._above
        return SumItem(sum=OfValue(column=above.col) if isinstance(above, ColumnRef) else OfValue(of=above))

    @property
    def count(self) -> SumItem:
        """The number of rows with a value."""
        return SumItem(sum=OfValue(of=Clip(clip=(self.value, 1, 1))))

    @property
    def squares(self) -> SumItem:
        """The sum of the squares of the value less the middle, each less half of the largest square."""
        distance = Abs(abs=self._above)
        return SumItem(sum=OfValue(of=Sub(sub=(Mul(mul=(distance, distance)), number_of(self.half * self.half / 2)))))

    @property
    def _above(self) -> Row:
        return self.value if self.middle == 0 else Sub(sub=(self.value, self.middle))


def centred(asked: OfValue, place: ItemPlace, kind: str, *, is_counted: bool = True) -> CentredValue:
    """The value of an item. Raises QueryProblem naming the field unless it is of numbers whose bounds differ.

    Where its rows are counted beside it, the value's steps must be no larger than 1.
    """
    value = ColumnRef(col=asked.column or "") if asked.of is None else asked.of
    column, field = place.columns.of_value(asked, f"{place.field}.{kind}")
    if not column.is_number:
        raise QueryProblem.of(field, f"{quoted(column.name)} is not numeric: a {kind} is of numbers")
    if is_counted and column.coding.step_log2 > 0:
        raise QueryProblem.of(field, "has bounds so large that no row can be counted beside it: multiply it by less")
    bounds = bounds_of(value, place.columns)
    if bounds is None:
        raise QueryProblem.of(field, "has a prediction without declared bounds; give it some by clip")
    low, high = bounds
    if low == high:
        raise QueryProblem.of(field, "is a value that its bounds allow one number for")
    return CentredValue(value=value, low=low, high=high)
