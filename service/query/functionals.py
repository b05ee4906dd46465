"""Linear functionals of a column, and histograms of listed values of it: both are about values that a query lists.

One functional is a calculated column whose sum it is. A matrix of many is one item: the place of a value among those
that weigh anything leads to its entries. A listed histogram is that of the places.

Weights that are whole numbers are exact. Others are rounded to steps of which the largest weight has more than 2^51, as
the values of a real column are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from service.query.columns import Coding, Placed, QueryColumn, Weighted
from service.query.conditions import All, Predicate, among, disjunction
from service.query.domains import ListedValues, domain_of
from service.query.group_keys import countable
from service.query.language import Linear, Matrix, Weights
from service.query.layout import Functionals, Histogram, PlanItem, Sum
from service.query.literals_ast import Value
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns, position_of
from service.query.schema import CategoryColumn
from service.query.sparse_matrix import Triples, is_whole, matrix_of, step_log2_of


def functionals_of(asked: Linear, columns: RowColumns, place: int) -> list[PlanItem]:
    """The items of a select item: a sum for each functional, or the matrix. Raises QueryProblem naming the field."""
    field, name = f"select[{place}].linear", f"linear({asked.column})"
    of = columns.named(asked.column, f"{field}.column")
    if of.kind == "real":
        raise QueryProblem.of(f"{field}.column", f"{quoted(of.name)} is a real column; weights are for listed values")
    if asked.matrix is not None:
        return [_matrix(asked.matrix, of, columns, f"{field}.matrix", f"{name} {place}")]
    several = isinstance(asked.weights, tuple)
    items: list[PlanItem] = []
    for number, weights in enumerate(asked.functionals):
        at = f"{field}.weights[{number}]" if several else f"{field}.weights"
        column = columns.add(_functional(weights, of, f"{name} {place}.{number}", at))
        items.append(Sum(column=column.name, name=f"{name}[{number}]" if several else name))
    return items


def listed_histogram(
    name: str, values: Sequence[Value], columns: RowColumns, place: int
) -> tuple[Histogram, ListedValues]:
    """The histogram of some values, and these. Raises QueryProblem naming the field."""
    field = f"select[{place}].histogram"
    of = columns.named(name, f"{field}.column")
    domain = countable(of, f"{field}.column")
    codes = _codes(values, of, f"{field}.values")
    _check_different(codes, values, f"{field}.values")
    places = columns.add(_placed(of, codes, f"histogram({name}) {place}"))
    labels = domain_of(domain)
    listed = ListedValues(of=domain, values=tuple(labels[code] for code in codes))
    return Histogram(column=places.name, size=len(codes), name=name), listed


def weighed(items: Sequence[PlanItem], columns: Mapping[str, QueryColumn]) -> Predicate:
    """The rows that some item adds anything but zero for, where all items list their values; otherwise every row.

    It may stand beside the conditions of a query where all selected rows count, because rows that add nothing do not.
    """
    listed: dict[str, set[int]] = {}
    for item in items:
        match columns[item.column].formula if isinstance(item, (Sum, Histogram, Functionals)) else None:
            case Weighted(column=name, codes=codes, steps=steps):
                found = {code for code, step in zip(codes, steps, strict=True) if step != 0}
            case Placed(column=name, codes=codes):
                found = set(codes)
            case _:
                return All()
        listed.setdefault(name, set()).update(found)
    return disjunction(among(name, codes, span=columns[name].coding.span) for name, codes in listed.items())


def _functional(weights: Weights, of: QueryColumn, name: str, field: str) -> QueryColumn:
    codes = _codes(weights.indices, of, f"{field}.indices")
    _check_different(codes, weights.indices, f"{field}.indices")
    numbers = np.array(weights.values, dtype=np.float64)
    step_log2 = step_log2_of(numbers)
    order = np.argsort(np.array(codes, dtype=np.int64))
    steps = np.rint(np.ldexp(numbers, -step_log2)).astype(np.int64)[order].tolist()
    low, high = min(0, *steps), max(0, *steps)
    return QueryColumn(
        name=name,
        kind="integer" if is_whole(numbers) else "real",
        coding=Coding(offset=low, span=high - low, step_log2=step_log2),
        formula=Weighted(column=of.name, codes=tuple(sorted(codes)), steps=tuple(steps)),
    )


def _matrix(asked: Matrix, of: QueryColumn, columns: RowColumns, field: str, name: str) -> Functionals:
    codes = np.array(_codes(asked.indices, of, f"{field}.indices"), dtype=np.int64)
    starts = np.array(asked.starts, dtype=np.int64)
    functionals = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((codes, functionals))
    again = (np.diff(functionals[order]) == 0) & (np.diff(codes[order]) == 0)
    if again.any():
        number = int(order[1:][again].min())
        raise QueryProblem.of(f"{field}.indices[{number}]", f"is listed a second time: {quoted(asked.indices[number])}")
    weights = np.array(asked.values, dtype=np.float64)
    try:
        weighing, matrix = matrix_of(Triples(functionals=functionals, codes=codes, weights=weights))
    except ValueError as error:
        raise QueryProblem.of(f"{field}.values", str(error)) from None
    places = columns.add(_placed(of, weighing, name))
    return Functionals(column=places.name, size=starts.size - 1, name=f"linear({of.name})", matrix=matrix)


def _placed(of: QueryColumn, codes: Sequence[int], name: str) -> QueryColumn:
    return QueryColumn(
        name=name,
        kind="integer",
        coding=Coding(offset=0, span=len(codes) - 1, step_log2=0),
        formula=Placed(column=of.name, codes=tuple(codes)),
    )


def _codes(literals: Sequence[Value], of: QueryColumn, field: str) -> list[int]:
    """The code of each literal. Raises QueryProblem for what is no value of the column."""
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
    """The codes at once, where all literals are whole numbers that the column has; else None."""
    is_sized = isinstance(of.declared, CategoryColumn) and of.declared.categories is None
    if not (is_sized or of.kind == "integer") or any(type(literal) is not int for literal in literals):
        return None
    codes = np.array(literals, dtype=np.int64) - of.coding.offset
    return codes.tolist() if codes.min() >= 0 and codes.max() <= of.coding.span else None


def _check_different(codes: Sequence[int], literals: Sequence[Value], field: str) -> None:
    seen: set[int] = set()
    for number, code in enumerate(codes):
        if code in seen:
            raise QueryProblem.of(f"{field}[{number}]", f"is listed a second time: {quoted(literals[number])}")
        seen.add(code)
