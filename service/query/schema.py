"""The public schema of a dataset: which tables, columns and domains there are, and how they may be extended.

Categories and bounds are declared by the curator and never taken from the data. So a message, a grid or a label that is
made from them tells nothing about any individual. The wire form is the `tables` object of a registration.

An extension may add categories, columns and tables and raise capacities, and may change nothing else. An earlier
schema's values keep their meaning: a category keeps its place, and with it its code and its label's place in a vector.
Rows that were there before have NULL in a new column.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, Strict, model_validator
from pydantic.fields import FieldInfo

from service.query.calendar import days_of, seconds_of
from service.query.literals_ast import INTEGER_MAX, NOT_EMPTY, SOME, in_pieces
from service.query.names import fault_of_name
from service.query.problems import FieldError

REAL_MAX = 1e30
REAL_MIN = 1e-30  # of the larger bound: smaller scales would run into the subnormal doubles
SIZE_MAX = 2**31
CATEGORIES_MAX = 2**20
CATEGORY_MAX = 1000  # characters
COLUMNS_MAX = 200
TABLES_MAX = 100
ROWS_PER_INDIVIDUAL_MAX = 2**20
ROWS_CAPACITY_MAX = 2**40
ROWS_FOR_EACH = 32  # of a table that declares no `rows_capacity`, for each individual of the capacity
VECTOR_LENGTH_MAX = 2**16
VECTOR_STEPS_MAX = 2**16 - 1  # of a number of a vector, on either side of zero and from the least to the greatest
VECTOR_STEP_LOG2_MAX = 100
RESERVED_NAME = "select"  # the key under which a label names its select item


def _category(category: str | int) -> str | int:
    if isinstance(category, str) and category:  # files may hold an empty text, and blanks around a value
        fault = fault_of_name(category.strip(" "), CATEGORY_MAX) if category.strip(" ") else "must not be blanks alone"
        if fault is not None:
            raise ValueError(f"a category {fault}")
    return category


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Integer = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Category = Annotated[Annotated[str, Field(max_length=CATEGORY_MAX)] | Integer, AfterValidator(_category)]
Real = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]


def doc(text: str) -> FieldInfo:
    """The description of a field, for the OpenAPI document."""
    described: FieldInfo = Field(description=text)
    return described


def optional(text: str) -> Any:  # noqa: ANN401 - as Field itself
    """A field with a description and the default None. A None is left out of JSON."""
    return Field(default=None, exclude_if=lambda value: value is None, description=text)


class ClosedModel(BaseModel):
    """A model that refuses what is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Closed(ClosedModel):
    """A closed model that does not take `true` for 1."""

    model_config = ConfigDict(strict=True)


class CategoryColumn(_Closed):
    """One of the listed `categories`, or of the integers 0 to `size` - 1. A value not declared is counted nowhere."""

    type: Annotated[Literal["category"], doc("`category`.")]
    categories: Annotated[
        Annotated[
            tuple[Category, ...],
            Strict(strict=False),
            Field(fail_fast=True, max_length=CATEGORIES_MAX, json_schema_extra=SOME),
            NOT_EMPTY,
        ]
        | None,
        doc("The categories as texts or integers, in the order of labels; or `size`."),
    ] = None
    size: Annotated[
        Annotated[int, Field(ge=1, le=SIZE_MAX)] | None,
        doc("The number of categories, which are then the integers from 0 below it; or `categories`."),
    ] = None

    @model_validator(mode="after")
    def _one_domain(self) -> "CategoryColumn":
        if (self.categories is None) == (self.size is None):
            raise ValueError("declare either categories or size")
        if self.categories is not None and len(self.codes) != len(self.categories):
            raise ValueError("a category is declared twice")
        return self

    @property
    def domain(self) -> tuple[str | int, ...] | range:
        """The categories in order: the code of a category is its place here."""
        return range(self.size or 0) if self.categories is None else self.categories

    @cached_property
    def codes(self) -> dict[str | int, int]:
        """The code of each listed category; empty for a domain given by `size`, where a category is its own code."""
        return {category: code for code, category in enumerate(self.categories or ())}

    def code_of(self, category: str | int) -> int | None:
        """The code of a category, or None if it is not declared."""
        if self.categories is not None:
            return self.codes.get(category)
        return category if isinstance(category, int) and 0 <= category < len(self.domain) else None


class IntegerColumn(_Closed):
    """An integer between `lower` and `upper`, both possible; a value outside is moved to the nearer bound."""

    type: Annotated[Literal["integer"], doc("`integer`.")]
    lower: Annotated[Integer, doc("The least value; one below it is moved to it.")]
    upper: Annotated[Integer, doc("The greatest value; one above it is moved to it.")]

    @model_validator(mode="after")
    def _ordered(self) -> "IntegerColumn":
        if self.lower > self.upper:
            raise ValueError("lower is above upper")
        return self


class RealColumn(_Closed):
    """A number between `lower` and `upper`; a value outside is moved to the nearer bound."""

    type: Annotated[Literal["real"], doc("`real`.")]
    lower: Annotated[Real, doc("The least value; one below it is moved to it.")]
    upper: Annotated[Real, doc("The greatest value; one above it is moved to it.")]

    @model_validator(mode="after")
    def _ordered(self) -> "RealColumn":
        if self.lower >= self.upper:
            raise ValueError("lower must be below upper")
        if max(abs(self.lower), abs(self.upper)) < REAL_MIN:
            raise ValueError(f"the larger bound must be at least {REAL_MIN}; choose a smaller unit of measurement")
        return self


class DateColumn(_Closed):
    """A day between `lower` and `upper`, both possible, as `2026-03-31`; one outside is moved to the nearer bound."""

    type: Annotated[Literal["date"], doc("`date`.")]
    lower: Annotated[
        str, Field(max_length=10), doc("The least day, such as `2026-01-01`; one below it is moved to it.")
    ]
    upper: Annotated[
        str, Field(max_length=10), doc("The greatest day, such as `2026-01-01`; one above it is moved to it.")
    ]

    @model_validator(mode="after")
    def _ordered(self) -> "DateColumn":
        _check_times(days_of(self.lower), days_of(self.upper), "a date, such as 2026-03-31")
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest day, in days since 1970-01-01."""
        return days_of(self.lower) or 0, days_of(self.upper) or 0


class DatetimeColumn(_Closed):
    """A second in UTC between `lower` and `upper`, both possible; one outside is moved to the nearer bound."""

    type: Annotated[Literal["datetime"], doc("`datetime`.")]
    lower: Annotated[
        str,
        Field(max_length=40),
        doc("The least second in UTC, such as `2026-01-01T00:00:00Z`; one below it is moved to it."),
    ]
    upper: Annotated[
        str,
        Field(max_length=40),
        doc("The greatest second in UTC, such as `2026-01-01T00:00:00Z`; one above it is moved to it."),
    ]

    @model_validator(mode="after")
    def _ordered(self) -> "DatetimeColumn":
        _check_times(seconds_of(self.lower), seconds_of(self.upper), "a time, such as 2026-03-31T23:59:59Z")
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest time, in seconds since 1970-01-01T00:00:00Z."""
        return seconds_of(self.lower) or 0, seconds_of(self.upper) or 0


class BooleanColumn(_Closed):
    """True or false."""

    type: Annotated[Literal["boolean"], doc("`boolean`.")]


class BudgetColumn(_Closed):
    """An individual's own limit in rho, below the dataset's. It is not data: no query can mention it."""

    type: Annotated[Literal["budget"], doc("`budget`.")]


_VectorSteps = Annotated[int, Field(ge=-VECTOR_STEPS_MAX, le=VECTOR_STEPS_MAX)]


class VectorColumn(_Closed):
    """A list of `length` whole numbers of steps, such as an image or an embedding.

    A number below `lower` or above `upper` is moved to the nearer bound, both of which are in steps.
    """

    type: Annotated[Literal["vector"], doc("`vector`.")]
    length: Annotated[int, Field(ge=1, le=VECTOR_LENGTH_MAX), doc("How many numbers each vector has.")]
    lower: Annotated[_VectorSteps, doc("The least number, in steps; one below it is moved to it.")]
    upper: Annotated[
        _VectorSteps, doc("The greatest number, in steps, at most 65,535 above the least; one above it is moved to it.")
    ]
    step_log2: Annotated[
        int,
        Field(ge=-VECTOR_STEP_LOG2_MAX, le=VECTOR_STEP_LOG2_MAX),
        doc("The step as a power of two: a number k is worth k times 2^step_log2."),
    ] = 0

    @model_validator(mode="after")
    def _ordered(self) -> "VectorColumn":
        if self.lower >= self.upper:
            raise ValueError("lower must be below upper")
        if self.upper - self.lower > VECTOR_STEPS_MAX:
            raise ValueError(f"upper must be at most {VECTOR_STEPS_MAX} above lower: a number takes 16 bits")
        return self

    @property
    def vector_bytes(self) -> int:
        """The bytes of the numbers of one vector."""
        return self.length * (1 if self.upper - self.lower < 2**8 else 2)


DataColumn = Annotated[
    CategoryColumn | IntegerColumn | RealColumn | DateColumn | DatetimeColumn | BooleanColumn,
    Field(discriminator="type"),
]
Column = Annotated[
    CategoryColumn
    | IntegerColumn
    | RealColumn
    | DateColumn
    | DatetimeColumn
    | BooleanColumn
    | VectorColumn
    | BudgetColumn,
    Field(discriminator="type"),
]


class IndividualsTable(_Closed):
    """The table with one row per individual."""

    kind: Annotated[Literal["individuals"], doc("`individuals`.")]
    key: Annotated[Name, doc("The name of the column that names the individual; no query can mention it.")]
    columns: Annotated[
        dict[Name, Column],
        Field(max_length=COLUMNS_MAX),
        in_pieces(COLUMNS_MAX),
        doc("The columns by name, without the key."),
    ]

    @model_validator(mode="after")
    def _named(self) -> "IndividualsTable":
        _check_names(self.key, self.columns)
        if sum(isinstance(column, BudgetColumn) for column in self.columns.values()) > 1:
            raise ValueError("at most one column of type budget")
        return self

    def rows_max(self, capacity: int) -> int:
        """The number of rows that the table has room for: one for each individual."""
        return capacity


class EventsTable(_Closed):
    """A table with many rows of one individual, such as its visits or purchases."""

    kind: Annotated[Literal["events"], doc("`events`.")]
    key: Annotated[Name, doc("The name of the column that names the individual; no query can mention it.")]
    columns: Annotated[
        dict[Name, DataColumn],
        Field(max_length=COLUMNS_MAX),
        in_pieces(COLUMNS_MAX),
        doc("The columns by name, without the key."),
    ]
    unknown_individuals: Annotated[
        Literal["reject", "create", "drop"],
        doc(
            "A row of an individual that is not in the dataset refuses the upload, brings the individual into it, or is"
            " dropped and counted."
        ),
    ] = "reject"
    rows_per_individual: Annotated[
        int,
        Field(ge=1, le=ROWS_PER_INDIVIDUAL_MAX),
        doc("The most rows of one individual: the bound behind every charge."),
    ] = 4096
    rows_capacity: Annotated[int, Field(ge=1, le=ROWS_CAPACITY_MAX)] | None = optional(
        "The most rows of all individuals together; left out, 32 for each individual of the capacity."
    )

    @model_validator(mode="after")
    def _named(self) -> "EventsTable":
        _check_names(self.key, self.columns)
        return self

    def rows_max(self, capacity: int) -> int:
        """The number of rows that the table has room for in a dataset with at most `capacity` individuals."""
        declared = ROWS_FOR_EACH * capacity if self.rows_capacity is None else self.rows_capacity
        return min(declared, self.rows_per_individual * capacity)


Table = Annotated[IndividualsTable | EventsTable, Field(discriminator="kind")]


class Schema(RootModel[Annotated[dict[Name, Table], Field(fail_fast=True, min_length=1, max_length=TABLES_MAX)]]):
    """The public schema: all tables by name, exactly one of them of individuals."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="after")
    def _one_of_individuals(self) -> "Schema":
        if sum(table.kind == "individuals" for table in self.root.values()) != 1:
            raise ValueError("exactly one table must be of kind individuals")
        return self

    @cached_property
    def tables(self) -> dict[str, IndividualsTable | EventsTable]:
        """The tables by name, in the order of declaration."""
        return self.root

    @cached_property
    def individuals_name(self) -> str:
        """The name of the one table of individuals."""
        return next(name for name, table in self.root.items() if table.kind == "individuals")

    @property
    def vector_bytes(self) -> int:
        """The bytes of the vectors of one individual."""
        columns = self.root[self.individuals_name].columns.values()
        return sum(column.vector_bytes for column in columns if isinstance(column, VectorColumn))

    @property
    def budget_column(self) -> str | None:
        """The column in which individuals bring limits of their own, if the schema has one."""
        columns = self.root[self.individuals_name].columns
        return next((name for name, column in columns.items() if isinstance(column, BudgetColumn)), None)

    @property
    def has_budget_column(self) -> bool:
        """Tell whether individuals may bring limits of their own."""
        return self.budget_column is not None


def _check_times(lower: int | None, upper: int | None, form: str) -> None:
    if lower is None:
        raise ValueError(f"lower must be {form}")
    if upper is None:
        raise ValueError(f"upper must be {form}")
    if lower > upper:
        raise ValueError("lower is above upper")


def _check_names(key: str, columns: dict[str, Column] | dict[str, DataColumn]) -> None:
    if key in columns:
        raise ValueError("the key is not a column: it names the individual and no query can mention it")
    if RESERVED_NAME in columns:
        raise ValueError(f"{RESERVED_NAME!r} cannot be a column: labels use the word")


def extension_errors(old: Schema, new: Schema, *, capacity_old: int, capacity_new: int) -> list[FieldError]:
    """The fields in which `new`, for at most `capacity_new` individuals, is no extension of `old`."""
    errors = []
    if capacity_new < capacity_old:
        errors.append(FieldError(field="capacity", message=f"cannot be lowered; it is {capacity_old}"))
    for name, table in old.tables.items():
        place = f"tables.{name}"
        extended = new.tables.get(name)
        if extended is None:
            errors.append(FieldError(field=place, message="cannot be removed"))
        else:
            errors += _table_errors(place, table, extended)
            is_smaller = extended.rows_max(capacity_new) < table.rows_max(capacity_old)
            if is_smaller and isinstance(table, EventsTable):
                errors.append(FieldError(field=f"{place}.rows_capacity", message="cannot be lowered"))
    return errors


def _table_errors(place: str, old: Table, new: Table) -> Iterator[FieldError]:
    fixed = ["kind", "key"]
    if isinstance(old, EventsTable):
        fixed += ["unknown_individuals", "rows_per_individual"]
    for name in fixed:
        if getattr(old, name) != getattr(new, name, None):
            yield FieldError(field=f"{place}.{name}", message=f"cannot be changed; it is {getattr(old, name)}")
    for name, column in old.columns.items():
        where = f"{place}.columns.{name}"
        extended = new.columns.get(name)
        if extended is None:
            yield FieldError(field=where, message="cannot be removed")
        elif not _extends(column, extended):
            yield FieldError(field=where, message=_message(column))
    for name, column in new.columns.items():
        if name not in old.columns and isinstance(column, BudgetColumn):
            yield FieldError(field=f"{place}.columns.{name}", message="a column of type budget cannot be added")


def _extends(old: Column | DataColumn, new: Column | DataColumn) -> bool:
    if not (isinstance(old, CategoryColumn) and isinstance(new, CategoryColumn)):
        return old == new
    if old.categories is None or new.categories is None:
        return old.categories is new.categories and (new.size or 0) >= (old.size or 0)
    return new.categories[: len(old.categories)] == old.categories


def _message(column: Column | DataColumn) -> str:
    if not isinstance(column, CategoryColumn):
        return "cannot be changed"
    if column.categories is None:
        return f"only its size can change, and not below {column.size}"
    return "categories can only be added behind those that are there, which keep their order"
