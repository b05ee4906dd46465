"""Rows into a dataset, all or nothing: checked before the line is entered, then placed in one transaction."""

from collections.abc import Sequence
from importlib import import_module
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from service.engine.ingest import RowError, Rows, RowsProblem
from service.query.schema import EventsTable, Table
from service.workflows.desk import Act
from service.workflows.errors import FieldError, InvalidRequest, NotFound
from service.workflows.ports import Transaction
from service.workflows.records import DatasetRecord
from service.workflows.secrets import Pepper
from service.workflows.state import DatasetState
from service.workflows.views import UploadReport

_UNKNOWN = -1
_ERRORS_MAX = 20


def import_reader() -> None:
    """Import what reads an upload, so that the first that comes need not wait for it; a start does not need it."""
    import_module("service.engine.ingest.reader")


def read_upload(record: DatasetRecord, table_name: str, content_type: str, source: BinaryIO) -> Rows:
    """Parse and check an upload. Raises NotFound, or InvalidRequest naming rows and columns."""
    from service.engine.ingest.reader import read_rows  # noqa: PLC0415 - see `import_reader`

    table = record.schema.tables.get(table_name)
    if table is None:
        raise NotFound
    try:
        rows = read_rows(source, content_type, table, budget_units=record.budget_units)
    except RowsProblem as problem:
        raise _refusal(problem.errors) from problem
    _check_floor(record, rows)
    return rows


def placing(record: DatasetRecord, table_name: str, rows: Rows, pepper: Pepper) -> Act[UploadReport]:
    """The act that gives checked rows their slots and appends them."""
    table = record.schema.tables[table_name]

    def act(transaction: Transaction, state: DatasetState) -> UploadReport:
        upload = _Upload(record, table_name, rows, pepper, transaction, state)
        joined = upload.add_individuals() if table.kind == "individuals" else upload.add_events(table)
        state.memory.index_categories()
        transaction.journal(
            "rows", {"table": table_name, "rows": len(rows.keys), "individuals": joined}, slots=upload.slots_used
        )
        return UploadReport(
            rows=len(rows.keys),
            individuals=joined,
            clipped=rows.clipped,
            out_of_domain=rows.out_of_domain,
            nulls=rows.nulls,
        )

    return act


class _Upload:
    """One upload on its way into a locked dataset."""

    def __init__(
        self,
        record: DatasetRecord,
        table_name: str,
        rows: Rows,
        pepper: Pepper,
        transaction: Transaction,
        state: DatasetState,
    ) -> None:
        self.record, self.table_name, self.rows, self.pepper = record, table_name, rows, pepper
        self.transaction, self.state = transaction, state
        self.keys: list[str] = list(rows.keys)
        self.slots_used = transaction.head.slots

    def add_individuals(self) -> int:
        """New people, each once; whoever was erased before comes back to the old slot and keeps what is spent."""
        known = self.transaction.slots_of(self.keys)
        taken = np.flatnonzero(known != _UNKNOWN)
        if taken.size:
            raise _refusal([_row_error(row, self._key_column, "is registered already") for row in taken.tolist()])
        slots = self._join(self.keys, self.rows.limits)
        self.transaction.add_records(self.table_name, slots, self.rows.codes)
        self.state.memory.add_individuals(slots, self.rows.codes, self.state.memory.accounts.limit[slots])
        return slots.size

    def add_events(self, table: Table) -> int:
        """Rows for people who are known; the schema says whether an unknown key is an error or a new individual."""
        joined = 0
        slots = self.transaction.slots_of(self.keys)
        unknown = np.flatnonzero(slots == _UNKNOWN)
        if unknown.size and isinstance(table, EventsTable) and table.unknown_individuals == "reject":
            raise _refusal([_row_error(row, self._key_column, "no such individual") for row in unknown.tolist()])
        # Nobody may be in memory when rows are refused, so unknown people are counted in slots that nobody has.
        new = {key: self.slots_used + n for n, key in enumerate(dict.fromkeys(self.keys[row] for row in unknown))}
        slots[unknown] = [new[self.keys[row]] for row in unknown]
        self._check_rows_per_individual(table, slots)
        if new:
            joined = self._create(list(new))
            slots = self.transaction.slots_of(self.keys)
        self.transaction.add_records(self.table_name, slots, self.rows.codes)
        self.state.memory.add_events(self.table_name, slots, self.rows.codes)
        return joined

    def _create(self, keys: Sequence[str]) -> int:
        """Individuals known by their events alone: every column of theirs is NULL."""
        people = self.record.schema.individuals_name
        slots = self._join(keys, None)
        codes = self.state.memory.null_codes(people, slots.size)
        self.transaction.add_records(people, slots, codes)
        self.state.memory.add_individuals(slots, codes, self.state.memory.accounts.limit[slots])
        return slots.size

    def _join(self, keys: Sequence[str], limits: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Slots for new keys in order of arrival, and accounts with their limits."""
        slots = self._returning(keys)
        new = slots == _UNKNOWN
        slots[new] = self.slots_used + np.arange(int(new.sum()))
        self.slots_used += int(new.sum())
        if self.slots_used > self.record.capacity:
            raise InvalidRequest.of("rows", f"the dataset's capacity is {self.record.capacity} individuals")
        budget = np.full(len(keys), self.record.budget_units, dtype=np.int64)
        limits = budget if limits is None else np.where(limits < 0, budget, limits)
        # Of somebody new a restored database may have forgotten as much as this.
        limits[new] = np.maximum(limits[new] - self.transaction.head.joining_units, 0)
        # For somebody who left and came back: a limit never rises, and never falls below what is spent.
        back, accounts = slots[~new], self.state.memory.accounts
        limits[~new] = np.maximum(np.minimum(limits[~new], accounts.limit[back]), accounts.spent[back])
        self.transaction.add_individuals(slots, keys, limits)
        self.state.grown(self.slots_used)
        self.state.memory.accounts.limit[slots] = limits
        return slots

    def _returning(self, keys: Sequence[str]) -> NDArray[np.int64]:
        if not self.transaction.has_tombstones():
            return np.full(len(keys), _UNKNOWN, dtype=np.int64)
        return self.transaction.slots_of_tombstones([self.pepper.tombstone(self.record.id, key) for key in keys])

    def _check_rows_per_individual(self, table: Table, slots: NDArray[np.int64]) -> None:
        """The overflow bounds of every query rest on this public number."""
        if not isinstance(table, EventsTable):
            return
        counts = self.state.memory.event_counts(self.table_name, slots)
        over = np.flatnonzero(counts > table.rows_per_individual)
        if over.size:
            message = f"more than rows_per_individual = {table.rows_per_individual} rows for this individual"
            raise _refusal([_row_error(row, self._key_column, message) for row in over.tolist()])

    @property
    def _key_column(self) -> str:
        return self.record.schema.tables[self.table_name].key


def _check_floor(record: DatasetRecord, rows: Rows) -> None:
    """`limit_floor_rho` is a public promise: nobody may be registered below it."""
    if rows.limits is None:
        return
    below = np.flatnonzero((rows.limits >= 0) & (rows.limits < record.limit_floor_units))
    if below.size:
        column = record.schema.budget_column
        raise _refusal(
            [_row_error(row, column, "the limit is below the dataset's limit_floor_rho") for row in below.tolist()]
        )


def _row_error(row: int, column: str | None, message: str) -> RowError:
    return RowError(row=int(row) + 1, column=column, message=message)


def _refusal(errors: Sequence[RowError]) -> InvalidRequest:
    return InvalidRequest(*(FieldError(field=_place(error), message=error.message) for error in errors[:_ERRORS_MAX]))


def _place(error: RowError) -> str:
    row = "rows" if error.row is None else f"rows[{error.row}]"
    return row if error.column is None else f"{row}.{error.column}"
