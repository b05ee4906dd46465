"""Linear functionals of a column, by the weights that a query gives to its values.

One functional is the sum of a calculated column. A matrix of many functionals is one item. There, the place of a value
among all values with a weight leads to the value's entries.

Weights that are whole numbers are exact. Others are rounded to steps of which the largest weight has more than 2^51, as
the values of a real column are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Discriminator, Field, Strict, Tag, model_validator
from pydantic_core import PydanticCustomError

from service.query.columns import Coding, QueryColumn, Weighted
from service.query.domains import Label
from service.query.extents import Extent
from service.query.item import Item, ItemPlace, PlanItem
from service.query.items.sum import Sum
from service.query.listed_values import WEIGHTS_MAX, codes_of, placed, refuse_repeated
from service.query.literals_ast import NOT_EMPTY, Closed, ColumnName, Value, count_kind, either
from service.query.noise_ast import SELECT_MAX
from service.query.phrases import shortened
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns
from service.query.schema import REAL_MAX, doc, optional
from service.query.sparse_matrix import SparseMatrix, Triples, is_whole, matrix_of, step_log2_of

ENTRIES_MAX = 2**16

STARTS_MAX = 2**20 + 1

Weight = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]


class Weights(Closed):
    """The weight of each listed value of a column; any other value weighs nothing."""

    indices: Annotated[
        tuple[Value, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=WEIGHTS_MAX),
        NOT_EMPTY,
        doc("The values of the column that weigh something."),
    ]
    values: Annotated[
        tuple[Weight, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=WEIGHTS_MAX),
        NOT_EMPTY,
        doc("Their weights, in the same order."),
    ]

    @model_validator(mode="after")
    def _pairs(self) -> "Weights":
        if len(self.indices) != len(self.values):
            raise PydanticCustomError("weights_length", "must have as many values as indices")
        return self


class Matrix(Closed):
    """Many functionals as one matrix in compressed sparse rows: each functional is a row, each value of the column a
    column of it.
    """  # noqa: D205 - one paragraph in the OpenAPI document

    starts: Annotated[
        tuple[Annotated[int, Field(ge=0)], ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=STARTS_MAX),
        doc("The place in `indices` at which each functional begins; and at the end, their number."),
    ]
    indices: Annotated[
        tuple[Value, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=ENTRIES_MAX),
        NOT_EMPTY,
        doc("The values of the column that weigh something, of all functionals one after the other."),
    ]
    values: Annotated[
        tuple[Weight, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=ENTRIES_MAX),
        NOT_EMPTY,
        doc("Their weights, in the same order."),
    ]

    @model_validator(mode="after")
    def _fits(self) -> "Matrix":
        if len(self.indices) != len(self.values):
            raise PydanticCustomError("weights_length", "must have as many values as indices")
        if self.starts[:1] != (0,) or self.starts[-1] != len(self.indices):
            raise PydanticCustomError("matrix_starts", "must have starts from 0 to the number of indices")
        if any(start > end for start, end in pairwise(self.starts)):
            raise PydanticCustomError("matrix_starts", "must have starts that never decrease")
        return self


class Linear(Closed):
    """A column and one functional of it, or several, or a matrix of many."""

    column: Annotated[ColumnName, doc("The column.")]
    weights: (
        Annotated[
            Annotated[Weights, Tag("(one)")]
            | Annotated[
                tuple[Weights, ...],
                Strict(strict=False),
                Field(fail_fast=True, max_length=SELECT_MAX),
                NOT_EMPTY,
                Tag("(several)"),
            ],
            Discriminator(count_kind),
        ]
        | None
    ) = optional("One functional, or a list of them, each of which makes a number; or `matrix`.")
    matrix: Matrix | None = optional("Many functionals as one sparse matrix; or `weights`.")

    _has_functionals = either("weights", "matrix")

    @property
    def functionals(self) -> tuple[Weights, ...]:
        """The single functionals, one for each coordinate; none for a matrix."""
        if self.weights is None:
            return ()
        return self.weights if isinstance(self.weights, tuple) else (self.weights,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Functionals(PlanItem):
    """Functionals of a column as a matrix: each selected row adds the matrix's entries at the place of its value."""

    is_scalar: ClassVar = False

    column: str
    matrix: SparseMatrix

    def extent(self, columns: Mapping[str, QueryColumn]) -> Extent:  # noqa: ARG002 - the matrix has all of it
        """The entries of each place."""
        return self.matrix.extent

    def labels(self) -> list[Label]:
        """The number of each functional."""
        return [{"select": f"{self.title}[{number}]"} for number in range(self.size)]


class LinearItem(Item):
    """One coordinate for each functional: the weight of the column's value of each selected row."""

    linear: Annotated[Linear, doc("The column and its weights.")]

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401 - JSON
        """Words that count the weights and name the column."""
        if "matrix" in body:
            matrix = body["matrix"]
            return f"{len(matrix['starts']) - 1} functionals of {body['column']} with {len(matrix['values'])} weights"
        weights = body["weights"] if isinstance(body["weights"], list | tuple) else [body["weights"]]
        counts = shortened([str(len(each["indices"])) for each in weights])
        return f"weights of {', '.join(counts)} values of {body['column']}"

    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """A sum for each functional, or the matrix."""
        asked, columns, field = self.linear, place.columns, f"{place.field}.linear"
        title, name = f"linear({asked.column})", f"linear({asked.column}) {place.number}"
        of = columns.named(asked.column, f"{field}.column")
        if of.kind == "real":
            problem = f"{quoted(of.name)} is a real column; weights are for listed values"
            raise QueryProblem.of(f"{field}.column", problem)
        if asked.matrix is not None:
            return [_matrix(asked.matrix, of, columns, f"{field}.matrix", name)]
        several = isinstance(asked.weights, tuple)
        items: list[PlanItem] = []
        for number, weights in enumerate(asked.functionals):
            at = f"{field}.weights[{number}]" if several else f"{field}.weights"
            column = columns.add(_functional(weights, of, f"{name}.{number}", at))
            items.append(Sum(column=column.name, title=f"{title}[{number}]" if several else title))
        return items


def _functional(weights: Weights, of: QueryColumn, name: str, field: str) -> QueryColumn:
    codes = codes_of(weights.indices, of, f"{field}.indices")
    refuse_repeated(codes, weights.indices, f"{field}.indices")
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
    codes = np.array(codes_of(asked.indices, of, f"{field}.indices"), dtype=np.int64)
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
    places = columns.add(placed(of, weighing, name))
    return Functionals(
        column=places.name, size=starts.size - 1, title=f"linear({of.name})", matrix=matrix, entries_of_row=matrix.most
    )
