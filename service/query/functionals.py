"""Linear functionals of a column: a weight for each listed value, as a calculated column whose sum is the functional.

Weights that are whole numbers are exact. Others are rounded to steps of which the largest weight has more than 2^51, as
the values of a real column are.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import frexp
from typing import Final

from service.query.coding import REAL_BITS, Coding
from service.query.formulas import QueryColumn, Weighted
from service.query.language import Linear, Weights
from service.query.layout import PlanItem, Sum
from service.query.predicate import All, Predicate, among, disjunction
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns, position_of

__all__ = ["functionals_of", "weighed"]

WHOLE_MAX: Final = 2**53


def functionals_of(asked: Linear, columns: RowColumns, place: int) -> list[QueryColumn]:
    """A column for each functional. Raises QueryProblem naming the field."""
    field = f"select[{place}].linear"
    of = columns.named(asked.column, f"{field}.column")
    if of.kind == "real":
        raise QueryProblem.of(f"{field}.column", f"{quoted(of.name)} is a real column; weights are for listed values")
    several = isinstance(asked.weights, tuple)
    return [
        columns.add(
            _functional(
                weights,
                of,
                f"linear({of.name}) {place}.{number}",
                f"{field}.weights[{number}]" if several else f"{field}.weights",
            )
        )
        for number, weights in enumerate(asked.functionals)
    ]


def weighed(items: Sequence[tuple[PlanItem, object]], columns: Mapping[str, QueryColumn]) -> Predicate:
    """The rows that some item adds anything but zero for, where all items are functionals; otherwise every row.

    It may stand beside the conditions of a query where all selected rows count, because rows that add nothing do not.
    """
    listed: dict[str, set[int]] = {}
    for item, _ in items:
        formula = columns[item.column].formula if isinstance(item, Sum) else None
        if not isinstance(formula, Weighted):
            return All()
        codes = listed.setdefault(formula.column, set())
        codes.update(code for code, steps in zip(formula.codes, formula.steps, strict=True) if steps != 0)
    return disjunction(among(name, codes, span=columns[name].coding.span) for name, codes in listed.items())


def _functional(weights: Weights, of: QueryColumn, name: str, field: str) -> QueryColumn:
    numbers = [Fraction(value) for value in weights.values]
    is_whole = all(number.denominator == 1 and abs(number) < WHOLE_MAX for number in numbers)
    step_log2 = 0 if is_whole else _step_log2(max(abs(float(number)) for number in numbers))
    steps_of: dict[int, int] = {}
    for number, (literal, weight) in enumerate(zip(weights.indices, numbers, strict=True)):
        code = position_of(literal, of, f"{field}.indices[{number}]")
        if code != int(code) or not 0 <= code <= of.coding.span:
            raise QueryProblem.of(f"{field}.indices[{number}]", f"is no value of the column: {quoted(literal)}")
        if int(code) in steps_of:
            raise QueryProblem.of(f"{field}.indices[{number}]", f"is listed a second time: {quoted(literal)}")
        steps_of[int(code)] = round(weight / Fraction(2) ** step_log2)
    codes = tuple(sorted(steps_of))
    steps = tuple(steps_of[code] for code in codes)
    low, high = min(0, *steps), max(0, *steps)
    return QueryColumn(
        name=name,
        kind="integer" if is_whole else "real",
        coding=Coding(offset=low, span=high - low, step_log2=step_log2),
        formula=Weighted(column=of.name, codes=codes, steps=steps),
    )


def _step_log2(largest: float) -> int:
    """As of a real column with this bound."""
    mantissa, exponent = frexp(largest)
    return exponent - REAL_BITS - (mantissa == 0.5)
