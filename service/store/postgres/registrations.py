"""Registrations in Postgres: as they stand, what extensions have replaced, and the deletion of an unused dataset."""

from collections.abc import Sequence
from typing import Any, Final

from psycopg import errors
from psycopg.types.json import Jsonb

from service.query.schema import Schema
from service.store.postgres.connection import Session
from service.store.postgres.data_tables import RecordsTable, records_tables
from service.store.postgres.errors import committing, translated
from service.store.postgres.heads import LOCK_HEAD, LONG_ACTS, ONE_LONG_ACT, READ_HEAD, head_in
from service.workflows.model.rows import DatasetRecord, EarlierRegistration
from service.workflows.model.views import Guarantee
from service.workflows.ports.store import NotEmpty

DATASET_COLUMNS: Final = (
    "id, name, epsilon, delta, budget_units, limit_floor_units, capacity, rule, schema, genesis, version, instance,"
    " archived_at IS NOT NULL"
)
REGISTRATION: Final = f"SELECT {DATASET_COLUMNS} FROM datasets WHERE id = %s"
EARLIER: Final = "SELECT version, until_seq, capacity, schema FROM registrations WHERE dataset_id = %s ORDER BY version"
KEEP_EARLIER: Final = (
    "INSERT INTO registrations (dataset_id, version, until_seq, capacity, schema)"
    " SELECT id, version, %s, capacity, schema FROM datasets WHERE id = %s AND version < %s"
)
SET_REGISTRATION: Final = (
    "UPDATE datasets SET capacity = %s, schema = %s, version = %s,"
    " archived_at = CASE WHEN %s THEN coalesce(archived_at, now()) END WHERE id = %s"
)


def dataset_of(row: Sequence[Any]) -> DatasetRecord:
    """A registration from DATASET_COLUMNS."""
    return DatasetRecord(
        id=row[0],
        name=row[1],
        guarantee=Guarantee(epsilon=row[2], delta=row[3]),
        budget_units=row[4],
        limit_floor_units=row[5],
        capacity=row[6],
        rule=row[7],
        schema=Schema.model_validate(row[8]),
        genesis=bytes(row[9]),
        version=row[10],
        instance=row[11],
        is_archived=row[12],
    )


def earlier_of(row: Sequence[Any]) -> EarlierRegistration:
    """A replaced registration from a row of EARLIER."""
    version, until_seq, capacity, schema = row
    return EarlierRegistration(
        version=version, until_seq=until_seq, capacity=capacity, schema=Schema.model_validate(schema)
    )


def json_of(schema: Schema) -> Jsonb:
    """A schema as a dataset's row has it."""
    return Jsonb(schema.model_dump(mode="json", exclude_none=True))


def stored_tables(session: Session, dataset_id: int) -> dict[str, RecordsTable]:
    """The tables of a dataset's records, as of the session's transaction."""
    rows = session.execute("SELECT schema FROM datasets WHERE id = %s", [dataset_id]).fetchall()
    return records_tables(dataset_id, Schema.model_validate(rows[0][0])) if rows else {}


def extend_tables(session: Session, before: dict[str, RecordsTable], after: dict[str, RecordsTable]) -> None:
    """Add the tables and columns that only `after` has. A table whose place has moved is renamed first."""
    moved = [(table.name, after[name].name) for name, table in before.items() if table.name != after[name].name]
    for old, new in sorted(moved, key=lambda names: _place(names[0]), reverse=True):  # places only grow
        session.define(RecordsTable(old, ()).rename(new))
    for name, table in after.items():
        if name not in before:
            session.execute(table.create())
            session.execute(table.index())
            continue
        known = {column.name for column in before[name].columns}
        for column in table.columns:
            if column.name not in known:
                session.define(table.add_column(column))


def delete_dataset(session: Session, dataset_id: int) -> None:
    """Delete a dataset that has no ledger, and its tables, and commit. Raises NotEmpty, StoreUnavailable.

    The locks are those of a long act, in their order.
    """
    with translated():
        session.execute(ONE_LONG_ACT, [LONG_ACTS, dataset_id])
        head_in(session.execute(READ_HEAD + LOCK_HEAD, [dataset_id]).fetchall())
        for table in stored_tables(session, dataset_id).values():
            session.define(table.drop())
        try:
            session.execute("SELECT delete_dataset(%s)", [dataset_id])
        except errors.RestrictViolation as refusal:
            raise NotEmpty from refusal
    with committing():
        session.commit()


def _place(name: str) -> int:
    return int(name.rpartition("_")[2])
