"""Uploads of rows, all or nothing: checked outside the writer, then written in one transaction."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from service.engine.ingest import RowError, Rows, RowsProblem
from service.engine.memory import Placed
from service.engine.pages import union
from service.engine.people import as_slice
from service.query.schema import EventsTable, IndividualsTable
from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import FieldError, InvalidRequest, NotFound
from service.workflows.model.journal import told_slots
from service.workflows.model.rows import DatasetRecord
from service.workflows.model.views import UploadReport
from service.workflows.ports.transaction import LongAct, Transaction
from service.workflows.writer.committer import Operation
from service.workflows.writer.operations import Preparation
from service.workflows.writer.prepared import BaseVersion
from service.workflows.writer.state import DatasetState

_UNKNOWN = -1
_ERRORS_MAX = 20
_TOMBSTONES_AT_ONCE = 2**14

Codes = NDArray[np.unsignedinteger]
Integers = NDArray[np.int64]


def import_reader() -> None:
    """Import the upload reader in advance, so that the first upload need not wait for it; a start does not need it."""
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


def placing(record: DatasetRecord, table_name: str, rows: Rows, pepper: Pepper) -> Preparation[UploadReport]:
    """The act that assigns slots to checked rows and appends them."""

    def prepare(transaction: LongAct, base: BaseVersion) -> Operation[UploadReport]:
        upload = _UploadOperation(record, table_name, rows, pepper, transaction, base)
        upload.write()
        change = base.memory.changed(added=upload.added)
        base.memory.make_room(upload.slots_used)
        joined = as_slice(upload.joined)
        counted = {"table": table_name, "rows": len(rows.keys), "individuals": upload.joined.size}
        detail = counted | told_slots(joined=union([upload.joined]), rows=union([upload.slots]))
        report = UploadReport(
            rows=len(rows.keys),
            individuals=upload.joined.size,
            clipped=rows.clipped,
            out_of_domain=rows.out_of_domain,
            nulls=rows.nulls,
        )

        def act(transaction: Transaction, state: DatasetState) -> UploadReport:
            transaction.journal("rows", detail, slots=upload.slots_used)
            state.after_commit(lambda: state.put(change, upload.slots_used, joined, upload.limits))
            return report

        return act

    return prepare


class _UploadOperation:
    """One upload, while no other act can change the dataset's records."""

    def __init__(
        self,
        record: DatasetRecord,
        table_name: str,
        rows: Rows,
        pepper: Pepper,
        transaction: LongAct,
        base: BaseVersion,
    ) -> None:
        self.record, self.table_name, self.rows, self.pepper = record, table_name, rows, pepper
        self.transaction, self.memory = transaction, base.memory
        self.keys = rows.keys
        self.slots_used = transaction.head.slots
        self.slots = self.joined = self.limits = np.empty(0, dtype=np.int64)  # of every row; of new individuals
        self.added: dict[str, Placed] = {}

    def write(self) -> None:
        """Write rows and individuals. Raises InvalidRequest."""
        table = self.record.schema.tables[self.table_name]
        self.slots = self._add_individuals() if isinstance(table, IndividualsTable) else self._add_events(table)
        self._add(self.table_name, self.slots, self.rows.codes)

    def _add_individuals(self) -> Integers:
        """New individuals, each once; one erased before gets its old slot back and keeps its spent total."""
        known = self.transaction.slots_of(self.keys)
        taken = np.flatnonzero(known != _UNKNOWN)
        if taken.size:
            raise _refusal([_row_error(row, self._key_column, "is registered already") for row in taken.tolist()])
        return self._join(self.keys, self.rows.limits)

    def _add_events(self, table: EventsTable) -> Integers:
        """Rows of known individuals; the schema says whether an unknown key is an error or a new individual."""
        self._check_rows_capacity(table)
        slots = self.transaction.slots_of(self.keys)
        unknown = np.flatnonzero(slots == _UNKNOWN)
        if unknown.size and table.unknown_individuals == "reject":
            raise _refusal([_row_error(row, self._key_column, "no such individual") for row in unknown.tolist()])
        # Until the rows are accepted, unknown individuals are counted in slots that are not taken yet.
        new, whose = self.keys.taken(unknown).distinct()
        slots[unknown] = self.slots_used + whose
        self._check_rows_per_individual(table, slots)
        if unknown.size:
            slots[unknown] = self._create(new)[whose]
        return slots

    def _create(self, keys: Sequence[str]) -> Integers:
        """New individuals known by their events alone: all their columns are NULL."""
        people = self.record.schema.individuals_name
        slots = self._join(keys, None)
        self._add(people, slots, self.memory.null_codes(people, slots.size))
        return slots

    def _add(self, table: str, slots: Integers, codes: Mapping[str, Codes]) -> None:
        self.transaction.add_records(table, slots, codes)
        self.added[table] = slots, codes

    def _join(self, keys: Sequence[str], limits: Integers | None) -> Integers:
        """Slots for new keys in order of arrival, and their accounts and limits."""
        slots = self._returning(keys)
        new = slots == _UNKNOWN
        slots[new] = self.slots_used + np.arange(int(new.sum()))
        self.slots_used += int(new.sum())
        if self.slots_used > self.record.capacity:
            raise InvalidRequest.of("rows", f"the dataset's capacity is {self.record.capacity} individuals")
        budget = np.full(len(keys), self.record.budget_units, dtype=np.int64)
        limits = budget if limits is None else np.where(limits < 0, budget, limits)
        # A restored database may have lost up to this much of a new individual's charges.
        limits[new] = np.maximum(limits[new] - self.transaction.head.joining_units, 0)
        # For individuals that left and came back: a limit never rises, and never falls below what is spent. While they
        # are gone neither number can change but by a burn, which raises the fence and makes this act begin again.
        back, accounts = slots[~new], self.memory.accounts
        limits[~new] = np.maximum(np.minimum(limits[~new], accounts.limit[back]), accounts.spent[back])
        self.transaction.add_individuals(slots, keys, limits)
        self.joined, self.limits = slots, limits
        return slots

    def _returning(self, keys: Sequence[str]) -> Integers:
        slots = np.full(len(keys), _UNKNOWN, dtype=np.int64)
        if self.transaction.has_tombstones():
            for start in range(0, len(keys), _TOMBSTONES_AT_ONCE):
                part = slice(start, start + _TOMBSTONES_AT_ONCE)
                slots[part] = self.transaction.slots_of_tombstones(self.pepper.tombstones(self.record.id, keys[part]))
        return slots

    def _check_rows_capacity(self, table: EventsTable) -> None:
        """The public cost of every query rests on this public number."""
        room = table.rows_max(self.record.capacity)
        held = self.memory.events(self.table_name).rows
        if held + len(self.keys) > room:
            message = f"the table has room for {room} rows and holds {held}; these are {len(self.keys)} more"
            raise InvalidRequest.of("rows", message)

    def _check_rows_per_individual(self, table: EventsTable, slots: Integers) -> None:
        """The overflow bounds of every query rest on this public number."""
        counts = self.memory.event_counts(self.table_name, slots)
        over = np.flatnonzero(counts > table.rows_per_individual)
        if over.size:
            message = f"more than rows_per_individual = {table.rows_per_individual} rows for this individual"
            raise _refusal([_row_error(row, self._key_column, message) for row in over.tolist()])

    @property
    def _key_column(self) -> str:
        return self.record.schema.tables[self.table_name].key


def _check_floor(record: DatasetRecord, rows: Rows) -> None:
    """`limit_floor_rho` is a public promise: no individual may be registered below it."""
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
