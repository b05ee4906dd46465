"""An individual's record as the service holds it: the row of the individuals' table, and the rows of events."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import DatasetName
from service.ledger.ports.transaction import Transaction
from service.query.columns import Coding, codings_of, scalars_of
from service.query.domains import Domain, domain_of
from service.query.keys import Key
from service.query.schema import BudgetColumn, RealColumn, doc
from service.query.vector_columns import numbers_of, vectors_of

ROWS_SHOWN_MAX: Final = 1000

Value = str | int | float | bool | list[int] | None
"""A stored value: clipped to its column's bounds; None for NULL and for a category that is not declared.

The value of a vector is the list of its numbers, in steps.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualRows:
    """An individual's rows of one table. The order of events is not kept."""

    count: Annotated[int, doc("How many rows there are.")]
    rows: Annotated[
        tuple[Mapping[str, Value], ...],
        doc("The first 1,000 rows, as values by column; null for NULL and for a category that is not declared."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualRecord:
    """Everything that the dataset holds about one individual besides its account."""

    dataset: DatasetName
    individual: Annotated[str, doc("The key under which the record is kept.")]
    tables: Annotated[dict[str, IndividualRows], doc("The rows by table.")]


def individual_record(record: DatasetRecord, transaction: Transaction, slot: int, key: Key) -> IndividualRecord:
    """The rows of one slot; no row of another slot is read."""
    return IndividualRecord(
        dataset=record.name,
        individual=key,
        tables={name: _rows(record, transaction, name, slot) for name in record.schema.tables},
    )


def as_arrays(record: IndividualRecord, lengths: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Each vector in steps as doubles (length,), NaN where there is none; and all other values as JSON, under `record`.

    `lengths` has the length of each column of vectors, under the name `table.column` of its array.
    """
    members: dict[str, NDArray[Any]] = {name: np.full(length, np.nan) for name, length in lengths.items()}
    rest = asdict(record)
    for member in lengths:
        table, _, name = member.partition(".")
        for row in rest["tables"][table]["rows"]:
            numbers = row.pop(name)
            members[member] = members[member] if numbers is None else np.array(numbers, dtype=np.float64)
    return {"record": np.array(orjson.dumps(rest).decode()), **members}


def _rows(record: DatasetRecord, transaction: Transaction, table: str, slot: int) -> IndividualRows:
    slots, codes = transaction.records(table, of=np.array([slot]))
    declared = record.schema.tables[table].columns
    columns, codings, vectors = scalars_of(declared), codings_of(declared), vectors_of(declared)

    def value(name: str, place: int) -> Value:
        if name in vectors:
            return numbers_of(vectors[name], codes[name][place])
        return value_of(columns[name], codings[name], int(codes[name][place]))

    names = [name for name, column in declared.items() if not isinstance(column, BudgetColumn)]
    rows = tuple({name: value(name, place) for name in names} for place in range(min(slots.size, ROWS_SHOWN_MAX)))
    return IndividualRows(count=int(slots.size), rows=rows)


def value_of(column: Domain | RealColumn, coding: Coding, code: int) -> Value:
    """The value that a code stands for; in a real column, the shortest decimal that has the code."""
    if code > coding.span:
        return None
    if isinstance(column, RealColumn):
        return coding.decimal_of(code)
    return domain_of(column)[code]
