"""Values of a column that a query lists: their codes, their places, and the rows that have them."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from service.query.columns import Coding, Placed, QueryColumn, Weighted
from service.query.conditions import All, Predicate, among, disjunction
from service.query.item import PlanItem
from service.query.literals_ast import Value
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import position_of
from service.query.schema import CategoryColumn

WEIGHTS_MAX: Final = 2**15
"""The most values that a list may have."""


def weighed(items: Sequence[PlanItem], columns: Mapping[str, QueryColumn]) -> Predicate:
    """The rows to which some item gives a weight, where all items list their values; otherwise every row.

    In a query where all selected rows count, this may be added to the conditions, because the other rows add nothing.
    """
    listed: dict[str, set[int]] = {}
    for item in items:
        match None if item.column is None else columns[item.column].formula:
            case Weighted(column=name, codes=codes, steps=steps):
                found = {code for code, step in zip(codes, steps, strict=True) if step != 0}
            case Placed(column=name, codes=codes):
                found = set(codes)
            case _:
                return All()
        listed.setdefault(name, set()).update(found)
    return disjunction(among(name, codes, span=columns[name].coding.span) for name, codes in listed.items())


def placed(of: QueryColumn, codes: Sequence[int], name: str) -> QueryColumn:
    """A column with the place of each value among the listed `codes`; NULL for other values."""
    return QueryColumn(
        name=name,
        kind="integer",
        coding=Coding(offset=0, span=len(codes) - 1, step_log2=0),
        formula=Placed(column=of.name, codes=tuple(codes)),
    )


def codes_of(literals: Sequence[Value], of: QueryColumn, field: str) -> list[int]:
    """The code of each literal. Raises QueryProblem for a literal that is no value of the column."""
    if (quickly := _codes_of_integers(literals, of)) is not None:
        return quickly
    codes = []
    for number, literal in enumerate(literals):
        code = position_of(literal, of, f"{field}[{number}]")
        if code != int(code) or not 0 <= code <= of.coding.span:
            raise QueryProblem.of(f"{field}[{number}]", f"is no value of the column: {quoted(literal)}")
        codes.append(int(code))
    return codes


def _codes_of_integers(literals: Sequence[Value], of: QueryColumn) -> list[int] | None:
    """The codes, worked out together, where all literals are whole numbers that the column has; otherwise None."""
    is_sized = isinstance(of.declared, CategoryColumn) and of.declared.categories is None
    if not (is_sized or of.kind == "integer") or any(type(literal) is not int for literal in literals):
        return None
    codes = np.array(literals, dtype=np.int64) - of.coding.offset
    return codes.tolist() if codes.min() >= 0 and codes.max() <= of.coding.span else None


def refuse_repeated(codes: Sequence[int], literals: Sequence[Value], field: str) -> None:
    """Raise QueryProblem naming the first value whose code occurs earlier in the list."""
    seen: set[int] = set()
    for number, code in enumerate(codes):
        if code in seen:
            raise QueryProblem.of(f"{field}[{number}]", f"is listed a second time: {quoted(literals[number])}")
        seen.add(code)
