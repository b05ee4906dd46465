"""Tables of counts that share some columns, made consistent, so that parts add up to their totals.

Every table is a sum over the cells of one cross table of all columns. A cross table is a sum of effects, one for each
set of columns: the mean, the deviations of each column, the interactions. A table by the columns S measures the effects
of all subsets of S and no other effects. These measurements are independent, so that least squares averages each effect
by itself.

Source: for the decomposition, Scheffé, The Analysis of Variance, 1959, chapter 4; for its use on noisy tables, Xiao,
He, Zhang & Kifer, An optimal and scalable matrix mechanism for noisy marginals under convex loss functions, NeurIPS
2023.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sparing._combine import check_independent
from sparing._estimates import Estimate
from sparing._normal import chi_square_tail
from sparing._selected import Selected, Selection, are_certified, have_laplace, selected

Columns = tuple[str, ...]
Cell = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistentTables:
    """Estimates that add up: summing a table over some of its columns gives the table by the other columns."""

    tables: tuple[tuple[Estimate, ...], ...]  # in the order of the answers, and each in the order of its numbers
    misfit_p: float  # the probability that noise alone makes the tables contradict each other as much as they do


def consistent_tables(tables: Sequence[Selection]) -> ConsistentTables:
    """The numbers of several tables, such as a total, its parts and a cross table, minimally changed to add up.

    They are the least-squares estimates for the sigmas of the answers: unbiased, with the least variance. The true
    tables add up only if each row is in exactly one group of each table. There are three exceptions. A row whose group
    is NULL or not declared is in the total and in no part. An individual with events in several groups is in several
    parts of `count_individuals`. An individual may be left out of one answer and not of another. A small `misfit_p`,
    say below 0.001, is a reason to look for such rows and not to use the result.

    Args:
        tables: answers of the same item, grouped by columns or by none, in any order; for an answer with several items,
            the pair of the answer and the title of one item.

    Raises:
        ValueError: the items or the values of a column differ, an answer is given twice, or the epochs differ.
    """
    if not tables:
        raise ValueError("tables must not be empty")
    found = [selected(selection, f"tables[{place}]") for place, selection in enumerate(tables)]
    check_independent([table.released for table in found], "tables")
    values = _values(found)
    effects = _effects(found, values)
    estimated = tuple(
        _table(table, effects, values, is_certified=are_certified(*found), has_laplace=have_laplace(*found))
        for table in found
    )
    squares = math.fsum(
        (number - estimate.value) ** 2 / table.variance
        for table, estimates in zip(found, estimated, strict=True)
        for number, estimate in zip(table.numbers.values(), estimates, strict=True)
    )
    degrees = sum(len(table.numbers) for table in found) - sum(_degrees(effect, values) for effect in effects)
    return ConsistentTables(tables=estimated, misfit_p=chi_square_tail(squares, degrees))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effect:
    columns: Columns
    numbers: Mapping[Cell, float]  # in the units of a cell of the cross table
    precision: float  # 1 / variance, along each of its degrees of freedom


def _values(tables: Sequence[Selected]) -> dict[str, tuple[object, ...]]:
    """The values of each column. Raises ValueError if tables differ in their item or in the values of a column."""
    found: dict[str, tuple[object, ...]] = {}
    for table in tables:
        if table.measure != tables[0].measure:
            raise ValueError(f"{table.name} has the item {table.item}, and {tables[0].name} {tables[0].item}")
        for place, column in enumerate(table.columns):
            values = tuple(dict.fromkeys(key[place] for key in table.numbers))
            if set(values) != set(found.setdefault(column, values)):
                raise ValueError(f"{table.name} has other values of {column} than a table before it")
        if len(table.numbers) != _product(table.columns, found):
            raise ValueError(f"{table.name} has not a number for each combination of {', '.join(table.columns)}")
    return found


def _effects(tables: Sequence[Selected], values: Mapping[str, Sequence[object]]) -> list[_Effect]:
    """The effects that the tables measure, each as the mean of the measurements weighted by precision."""
    sums: dict[Columns, dict[Cell, float]] = {}
    precisions: dict[Columns, float] = {}
    for table in tables:
        columns = tuple(column for column in values if column in table.columns)
        precision = _product([column for column in values if column not in columns], values) / table.variance
        for effect, numbers in _decomposed(table, columns, values).items():
            held = sums.setdefault(effect, dict.fromkeys(numbers, 0.0))
            for cell, number in numbers.items():
                held[cell] += number / table.variance
            precisions[effect] = precisions.get(effect, 0.0) + precision
    return [
        _Effect(
            columns=effect,
            numbers={cell: number / precisions[effect] for cell, number in numbers.items()},
            precision=precisions[effect],
        )
        for effect, numbers in sums.items()
    ]


def _decomposed(
    table: Selected, columns: Columns, values: Mapping[str, Sequence[object]]
) -> dict[Columns, dict[Cell, float]]:
    """The effects in a table: for each subset of its columns, the means less the effects of all smaller subsets."""
    found: dict[Columns, dict[Cell, float]] = {}
    for subset in _subsets(columns):
        means = dict.fromkeys(product(*(values[column] for column in subset)), 0.0)
        places = [table.columns.index(column) for column in subset]
        share = len(means) / len(table.numbers)
        for key, number in table.numbers.items():
            means[tuple(key[place] for place in places)] += number * share
        for smaller in _subsets(subset):
            if smaller != subset:
                inner = [subset.index(column) for column in smaller]
                for cell in means:
                    means[cell] -= found[smaller][tuple(cell[place] for place in inner)]
        found[subset] = means
    return found


def _table(
    table: Selected,
    effects: Sequence[_Effect],
    values: Mapping[str, Sequence[object]],
    *,
    is_certified: bool,
    has_laplace: bool,
) -> tuple[Estimate, ...]:
    """The cells of a table as sums of effects, each with a standard error."""
    inside = [
        (effect, [table.columns.index(column) for column in effect.columns])
        for effect in effects
        if set(effect.columns) <= set(table.columns)
    ]
    cells = _product(values, values)
    merged = cells // len(table.numbers)  # cells of the cross table in one cell of this one
    variance = math.fsum(_degrees(effect, values) / effect.precision for effect, _ in inside) * merged**2 / cells
    return tuple(
        Estimate(
            label=dict(zip(table.columns, key, strict=True)) | {"select": table.item},
            value=merged * math.fsum(effect.numbers[tuple(key[at] for at in places)] for effect, places in inside),
            standard_error=math.sqrt(variance),
            coverage_certified=is_certified,
            has_laplace=has_laplace,
        )
        for key in table.numbers
    )


def _degrees(effect: _Effect, values: Mapping[str, Sequence[object]]) -> int:
    return math.prod(len(values[column]) - 1 for column in effect.columns)


def _product(columns: Iterable[str], values: Mapping[str, Sequence[object]]) -> int:
    return math.prod(len(values[column]) for column in columns)


def _subsets(columns: Columns) -> Iterator[Columns]:
    """All subsets of some columns, smaller ones first."""
    for size in range(len(columns) + 1):
        yield from combinations(columns, size)
