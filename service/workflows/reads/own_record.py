"""An individual's own record as the service holds it: the row of the individuals' table, and the rows of events."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ldexp
from typing import Annotated, Final

import numpy as np

from service.query.columns import Coding, coding_of
from service.query.layout import Domain, domain_of
from service.query.schema import BudgetColumn, RealColumn, doc
from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import DatasetName
from service.workflows.ports.transaction import Transaction

ROWS_SHOWN_MAX: Final = 1000

Value = str | int | float | bool | None
"""A stored value: clipped to its column's bounds; None for NULL and for a category that is not declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRows:
    """Your rows of one table. The order of events is not kept."""

    count: Annotated[int, doc("How many rows there are.")]
    rows: Annotated[
        tuple[Mapping[str, Value], ...],
        doc("The first 1,000 rows, as values by column; null for NULL and for a category that is not declared."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRecord:
    """Everything that the dataset holds about one individual besides its account."""

    dataset: DatasetName
    individual: Annotated[str, doc("The key under which the record is kept.")]
    tables: Annotated[dict[str, OwnRows], doc("The rows by table.")]


def own_record(record: DatasetRecord, transaction: Transaction, slot: int, key: str) -> OwnRecord:
    """The rows of one slot; of no other slot is anything read."""
    return OwnRecord(
        dataset=record.name,
        individual=key,
        tables={name: _rows(record, transaction, name, slot) for name in record.schema.tables},
    )


def _rows(record: DatasetRecord, transaction: Transaction, table: str, slot: int) -> OwnRows:
    slots, codes = transaction.records(table, of=np.array([slot]))
    columns = {
        name: column
        for name, column in record.schema.tables[table].columns.items()
        if not isinstance(column, BudgetColumn)
    }
    codings = {name: coding_of(column) for name, column in columns.items()}
    rows = tuple(
        {name: value_of(columns[name], codings[name], int(codes[name][place])) for name in columns}
        for place in range(min(slots.size, ROWS_SHOWN_MAX))
    )
    return OwnRows(count=int(slots.size), rows=rows)


def value_of(column: Domain | RealColumn, coding: Coding, code: int) -> Value:
    """The value that a code stands for."""
    if code > coding.span:
        return None
    if isinstance(column, RealColumn):
        return ldexp(code + coding.offset, coding.step_log2)
    return domain_of(column)[code]
