"""Corrections of a record: some columns of one individual's row change, and its events and its account stay.

Earlier charges were for the earlier values, and stay.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field, Strict

from service.engine.ingest import Rows
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.journal import UploadRequest
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import UploadReport
from service.ledger.ports.row_reader import ReaderHere
from service.ledger.ports.transaction import LongAct, Transaction
from service.query.json_text import ERRORS_MAX
from service.query.keys import Key
from service.query.problems import FieldError
from service.query.schema import VECTOR_LENGTH_MAX, BudgetColumn, CategoryColumn, Column, Schema
from service.query.suggestions import did_you_mean
from service.reads.ledger import slot_of
from service.workflows.as_declared import outside
from service.workflows.datasets import refuse_changed
from service.workflows.uploads import read_upload
from service.writer.committer import BaseVersion, Operation
from service.writer.operations import Preparation
from service.writer.state import DatasetState

TEXT_MAX: Final = 1000  # as long as a category may be
_Numbers = Annotated[
    tuple[Annotated[float, Strict()], ...], Strict(strict=False), Field(fail_fast=True, max_length=VECTOR_LENGTH_MAX)
]
Value = Annotated[str, Field(max_length=TEXT_MAX)] | int | float | bool | _Numbers | None
_NDJSON: Final = "application/x-ndjson"


def correcting(record: DatasetRecord, key: Key, values: Mapping[str, Value]) -> Preparation[UploadReport]:
    """Put `values`, by column, into an individual's row. Raises NotFound, InvalidRequest naming columns."""
    people = record.schema.individuals_name
    rows = _read(record, key, values)

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[UploadReport]:
        refuse_changed(record, transaction)
        slot = slot_of(transaction, key)
        slots, codes = transaction.records(people, of=np.array([slot]))
        changed = {name: rows.codes.get(name, held) for name, held in codes.items()}
        transaction.delete_records(slot, table=people)
        transaction.add_records(people, slots, changed)
        change = base.records.changed(replaced={people: slots}, added={people: (slots, changed)})

        def act(transaction: Transaction, state: DatasetState) -> UploadReport:
            transaction.journal("correct", {"slot": slot, "table": people, "columns": sorted(values)})
            state.after_commit(lambda: state.put(change))
            return UploadReport(
                rows=1,
                individuals=0,
                clipped=dict(rows.clipped),
                out_of_domain=dict(rows.out_of_domain),
                nulls=dict(rows.nulls),
                rows_dropped=0,
                stored=True,
            )

        return act

    return prepare


def _read(record: DatasetRecord, key: Key, values: Mapping[str, Value]) -> Rows:
    """One row with these `values`, read by the rules of an upload that has these columns alone."""
    people = record.schema.individuals_name
    table = record.schema.tables[people]
    refusals = list(filter(None, (_error(name, table.columns.get(name)) for name in values)))
    if refusals or not values:
        raise InvalidRequest(*refusals or [FieldError(field="body", message="names no column")])
    columns = {name: table.columns[name] for name in values}
    only = Schema.model_construct(root={people: table.model_copy(update={"columns": columns})})
    row = io.BytesIO(json.dumps({table.key: key, **values}).encode())
    try:
        request = UploadRequest(table=people, content_type=_NDJSON, accept=tuple(values))
        rows = read_upload(replace(record, schema=only), request, row, ReaderHere())  # a row that was made here
    except InvalidRequest as refusal:
        named = (replace(each, field=each.field.removeprefix("rows[1].")) for each in refusal.errors)
        raise InvalidRequest(*named) from refusal
    undeclared = [name for name, count in rows.out_of_domain.items() if count]
    if undeclared:
        raise InvalidRequest(*(_undeclared(name, values[name], columns[name]) for name in undeclared[:ERRORS_MAX]))
    clipped = [name for name, count in rows.clipped.items() if count]
    if clipped:
        raise InvalidRequest(*(FieldError(field=name, message=outside(columns[name])) for name in clipped[:ERRORS_MAX]))
    return rows


def _error(name: str, column: Column | None) -> FieldError | None:
    if column is None:
        return FieldError(field=name, message="is no column of the individuals' table")
    if isinstance(column, BudgetColumn):
        return FieldError(field=name, message="an individual's limit is no data; only the individual can lower it")
    return None


def _undeclared(name: str, value: Value, column: Column) -> FieldError:
    """The refusal of a category that is not declared.

    An upload counts such categories and stores NULL. Here the value would be lost.
    """
    if not isinstance(column, CategoryColumn) or column.categories is None:
        return FieldError(field=name, message="is no category of the column; they are the integers below its size")
    hint = did_you_mean(value, column.codes)
    return FieldError(field=name, message=f"is no category of the column; null empties it{hint}")
