"""The columns that one query may read, found by name or calculated, with their codings; all of it public."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from service.query.arithmetic import Amount, clipped, difference, product, total, without_sign
from service.query.calendar import DAY_S, instant_of
from service.query.columns import (
    DIGEST,
    DIGEST_CODING,
    REAL_ERROR,
    Coding,
    Folded,
    OwnColumn,
    QueryColumn,
    coding_of,
    meant_by,
)
from service.query.expressions_ast import (
    Abs,
    Add,
    Clip,
    ColumnRef,
    FoldOf,
    Mul,
    OfValue,
    Operand,
    Own,
    Predict,
    Row,
    Sub,
)
from service.query.literals_ast import Value
from service.query.problems import QueryProblem, quoted
from service.query.schema import (
    BudgetColumn,
    CategoryColumn,
    Column,
    EventsTable,
    IndividualsTable,
    Schema,
    VectorColumn,
)
from service.query.suggestions import did_you_mean
from service.query.vector_columns import VectorCoding, vectors_of

DataTable = IndividualsTable | EventsTable
VALUE_LOG2_MAX: Final = 332
"""A calculated value is below 2^332, near 1e100, so that doubles hold its square and sums of it."""
_AS_FEATURE = '{"vector": column}'


class RowColumns(ABC):
    """The columns of one table in one query. `used` collects those that the query has named.

    `service.query.query_columns.QueryColumns` reads the values that are made of features and conditions.
    """

    def __init__(self, schema: Schema, table: str) -> None:
        """Begin with no column read. Raises QueryProblem if there is no table of this name."""
        if table not in schema.tables:
            raise QueryProblem.of("from", f"there is no table {quoted(table)}{did_you_mean(table, schema.tables)}")
        self.schema = schema
        self.table: DataTable = schema.tables[table]
        self.used: dict[str, QueryColumn] = {}
        self._people = schema.individuals_name
        self._individuals = schema.tables[self._people]

    def named(self, name: str, field: str) -> QueryColumn:
        """The column of that name. Raises QueryProblem if there is none, or if it is not data."""
        prefix, _, own = name.partition(".")
        formula = None
        declared: Column | None = self.table.columns.get(name)
        if isinstance(self.table, EventsTable) and prefix == self._people and own:
            formula, declared = OwnColumn(column=own), self._individuals.columns.get(own)
        if declared is None:
            meant = did_you_mean(name, self._queryable())
            raise QueryProblem.of(field, f"there is no column {quoted(name)} in this table{meant}")
        if isinstance(declared, BudgetColumn):
            raise QueryProblem.of(
                field, f"{quoted(name)} holds the individuals' limits; it is not data and cannot be queried"
            )
        if isinstance(declared, VectorColumn):
            raise QueryProblem.of(field, f"{quoted(name)} is a vector; only a feature reads it, as {_AS_FEATURE}")
        coding = coding_of(declared)
        error = REAL_ERROR * Fraction(2) ** coding.step_log2 if declared.type == "real" else Fraction(0)
        return self.add(
            QueryColumn(name=name, kind=declared.type, coding=coding, declared=declared, formula=formula, error=error)
        )

    def _queryable(self) -> dict[str, None]:
        """The names of the columns that a query of this table may have."""
        found = {name: None for name, each in self.table.columns.items() if not isinstance(each, BudgetColumn)}
        if isinstance(self.table, EventsTable):
            own = self._individuals.columns.items()
            found |= {f"{self._people}.{name}": None for name, each in own if not isinstance(each, BudgetColumn)}
        return found

    def vector(self, name: str, field: str) -> VectorCoding:
        """The coding of a column of vectors. Raises QueryProblem if there is none of that name."""
        vectors = vectors_of(self.table.columns)
        if name not in vectors:
            raise QueryProblem.of(field, f"there is no column of vectors {quoted(name)}{did_you_mean(name, vectors)}")
        return vectors[name]

    def of_value(self, asked: OfValue, field: str) -> tuple[QueryColumn, str]:
        """The column of a value, and the field that names it. Raises QueryProblem naming the field."""
        if asked.of is not None:
            return self.value(asked.of, f"{field}.of"), f"{field}.of"
        return self.named(asked.column or "", f"{field}.column"), f"{field}.column"

    def value(self, node: Row, field: str) -> QueryColumn:
        """The column from which a value of the row is read or calculated. Raises QueryProblem naming the field."""
        match node:
            case ColumnRef(col=name):
                return self.named(name, f"{field}.col")
            case Add(add=(left, right)):
                first, second = self._number(left, f"{field}.add[0]"), self._number(right, f"{field}.add[1]")
                return self.add(_bounded(total(_between(left, "+", right), first, second), field))
            case Sub(sub=(left, right)):
                return self.add(_bounded(self._difference(left, right, f"{field}.sub"), field))
            case Mul(mul=(left, right)):
                first, second = self._number(left, f"{field}.mul[0]"), self._number(right, f"{field}.mul[1]")
                return self.add(_bounded(product(_between(left, "*", right), first, second), field))
            case Abs(abs=inner):
                return self.add(without_sign(f"abs({text_of(inner)})", self._number(inner, f"{field}.abs")))
            case Clip(clip=(inner, low, high)):
                amount, fields = self._number(inner, f"{field}.clip[0]"), (f"{field}.clip[1]", f"{field}.clip[2]")
                return self.add(within_bounds(text_of(node), amount, (low, high), fields))
            case Predict():
                return self.add(self.predicted(node, f"{field}.predict"))
            case Own():
                return self.add(self.of_own_events(node, f"{field}.own"))

    @abstractmethod
    def predicted(self, node: Predict, field: str) -> QueryColumn:
        """The column of a model's predictions. Raises QueryProblem naming the field."""

    @abstractmethod
    def of_own_events(self, node: Own, field: str) -> QueryColumn:
        """The column of a count or sum over own events. Raises QueryProblem naming the field."""

    def compared(self, left: Row, right: Row, field: str, *, is_ordered: bool) -> QueryColumn:
        """A column that is below, at or above zero where `left` is below, at or above `right`."""
        first, second = self.value(left, f"{field}[0]"), self.value(right, f"{field}[1]")
        name = _between(left, "-", right)
        if {first.kind, second.kind} <= {"integer", "real"} or (
            first.kind == second.kind != "category" and first.is_ordered
        ):
            return self.add(difference(name, Amount.of_column(first), Amount.of_column(second)))
        if first.kind != second.kind or not _same_domain(first, second):
            raise QueryProblem.of(f"{field}[1]", f"is {_kind(second)} and cannot be compared with {_kind(first)}")
        if is_ordered:
            raise QueryProblem.of(
                f"{field}[0]", "has no order; lt, le, gt, ge and between take numbers, dates and times"
            )
        codes = Amount.of_codes(first), Amount.of_codes(second)
        return self.add(difference(f"codes of {name}", *codes))

    def fold(self, asked: FoldOf) -> QueryColumn:
        """The column of the individual's part in a division into folds."""
        seed = int.from_bytes(hashlib.sha256(asked.seed.encode()).digest()[:8], "big")
        name = f"part of {asked.of} by {quoted(asked.seed)}"
        coding = Coding(offset=0, span=asked.of - 1, step_log2=0)
        own = OwnColumn(column=DIGEST) if isinstance(self.table, EventsTable) else None
        digest = self.add(QueryColumn(name=DIGEST, kind="integer", coding=DIGEST_CODING, formula=own))
        formula = Folded(column=digest.name, seed=seed, count=asked.of)
        return self.add(QueryColumn(name=name, kind="integer", coding=coding, formula=formula))

    def add(self, column: QueryColumn) -> QueryColumn:
        """Note a column that the query reads, and return it."""
        self.used[column.name] = column
        return column

    def _number(self, node: Operand, field: str) -> Amount:
        if isinstance(node, (bool, str)):
            raise QueryProblem.of(field, f"must be a number; got {quoted(node)}")
        if isinstance(node, (int, float)):
            return Amount.of_number(node)
        column = self.value(node, field)
        if not column.is_number:
            raise QueryProblem.of(field, f"must be a number; it is {_kind(column)}")
        return Amount.of_column(column)

    def _difference(self, left: Operand, right: Operand, field: str) -> QueryColumn:
        """The difference of two numbers, of two dates in days, or of two times in seconds."""
        name = _between(left, "-", right)
        first, second = self._column(left, f"{field}[0]"), self._column(right, f"{field}[1]")
        if (
            first is not None
            and second is not None
            and first.kind == second.kind
            and first.kind in {"date", "datetime"}
        ):
            return difference(name, Amount.of_column(first), Amount.of_column(second))
        return difference(name, self._number(left, f"{field}[0]"), self._number(right, f"{field}[1]"))

    def _column(self, node: Operand, field: str) -> QueryColumn | None:
        return None if isinstance(node, (bool, int, float, str)) else self.value(node, field)


def within_bounds(name: str, amount: Amount, bounds: tuple[float, float], fields: Sequence[str]) -> QueryColumn:
    """A column of the amount moved into the bounds. Raises QueryProblem for bounds that are none, naming theirs."""
    if bounds[0] > bounds[1]:
        raise QueryProblem.of(fields[1], "must not be below the lower bound")
    for bound, field in zip(bounds, fields, strict=True):
        if amount.is_whole and meant_by(bound).denominator != 1:
            raise QueryProblem.of(field, "must be a whole number, as the value is")
    return clipped(name, amount, *map(meant_by, bounds))


def _bounded(column: QueryColumn, field: str) -> QueryColumn:
    """The column, if its numbers are far enough within the range of doubles. Raises QueryProblem naming the field."""
    coding = column.coding
    largest = max(abs(coding.offset), abs(coding.offset + coding.span))
    if largest.bit_length() + coding.step_log2 > VALUE_LOG2_MAX:
        raise QueryProblem.of(field, "may be larger than 1e100 within the declared bounds")
    return column


def position_of(literal: Value, column: QueryColumn, field: str) -> int | Fraction:
    """The place of a literal on the scale of codes; outside the domain it may be negative or above `span`.

    The place is exact on a column of whole numbers, where 39.5 lies between two codes. It is exact on a calculated
    column too, whose `slack` says how near counts as equal. On a declared real column a literal is rounded to the
    column's step as the data were, so that `eq 0.1` finds the rows that were uploaded as 0.1. Raises QueryProblem.
    """
    coding = column.coding
    match column.kind:
        case "category":
            return _category(literal, column, field)
        case "boolean":
            if not isinstance(literal, bool):
                raise QueryProblem.of(field, f"must be true or false, as the column is boolean; got {quoted(literal)}")
            return int(literal)
        case "date" | "datetime":
            return _time(literal, column, field) - coding.offset
        case _:
            if isinstance(literal, (bool, str)):
                raise QueryProblem.of(field, f"must be a number, as the column is numeric; got {quoted(literal)}")
            if column.declared is not None and column.kind == "real":
                return coding.code_of(literal)
            if isinstance(literal, int) and column.kind != "real":
                return literal - coding.offset
            return meant_by(literal) / Fraction(2) ** coding.step_log2 - coding.offset


def text_of(node: Operand) -> str:
    """The text of a value for readers, which is also the name of its column. Different values have different texts."""
    match node:
        case ColumnRef(col=name):
            return name
        case Add(add=(left, right)):
            return _between(left, "+", right)
        case Sub(sub=(left, right)):
            return _between(left, "-", right)
        case Mul(mul=(left, right)):
            return _between(left, "*", right)
        case Abs(abs=inner):
            return f"abs({text_of(inner)})"
        case Clip(clip=(inner, low, high)):
            return f"clip({text_of(inner)}, {low}, {high})"
        case Predict() | Own():
            digest = hashlib.sha256(node.model_dump_json(by_alias=True).encode()).hexdigest()
            return f"{node.KIND} {digest[:32]}"
        case _:
            return repr(node)


def _between(left: Operand, sign: str, right: Operand) -> str:
    return f"({text_of(left)} {sign} {text_of(right)})"


def _same_domain(first: QueryColumn, second: QueryColumn) -> bool:
    if isinstance(first.declared, CategoryColumn) and isinstance(second.declared, CategoryColumn):
        return first.declared.domain == second.declared.domain
    return first.kind == second.kind == "boolean"


def _kind(column: QueryColumn) -> str:
    return {"integer": "a number", "real": "a number", "datetime": "a time"}.get(column.kind, f"a {column.kind}")


def _time(literal: Value, column: QueryColumn, field: str) -> Fraction:
    """The literal in days or seconds. A date means the midnight at its beginning, so that it compares with a time."""
    found = instant_of(literal) if isinstance(literal, str) else None
    if found is None:
        form = "a date, such as 2026-03-31" if column.kind == "date" else "a time, such as 2026-03-31T23:59:59Z"
        raise QueryProblem.of(field, f"must be {form}; got {quoted(literal)}")
    return found / DAY_S if column.kind == "date" else found


def _category(literal: Value, column: QueryColumn, field: str) -> int:
    declared = column.declared
    if not isinstance(declared, CategoryColumn):
        raise TypeError("a category is always declared")
    if isinstance(literal, float) and literal.is_integer():
        literal = int(literal)
    code = None if isinstance(literal, (bool, float)) else declared.code_of(literal)
    if code is None:
        listed = declared.categories is not None
        domain = "a declared category" if listed else f"an integer from 0 to {len(declared.domain) - 1}"
        meant = did_you_mean(literal, declared.codes)
        raise QueryProblem.of(field, f"must be {domain} of the column; got {quoted(literal)}{meant}")
    return code
