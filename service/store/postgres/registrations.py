"""A dataset's registration and its head in Postgres, and the schema of the database itself.

The head's row is the lock, the fence and the order of everything.
"""

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.types.json import Jsonb

import service
from service.query.schema import Schema
from service.store.postgres.data_tables import RecordsTable, records_tables
from service.store.postgres.rows import by_name
from service.store.postgres.sessions import Session, committing, translated
from service.workflows.model.rows import DatasetRecord, EarlierRegistration, Head
from service.workflows.model.views import Guarantee
from service.workflows.ports.store import NotEmpty, StoreUnavailable

HEAD_COLUMNS: Final = (
    "seq, hash, epoch, fence, data_version, slots, worst_case_units, checkpoint_seq, joining_units, journal_hash,"
    " pruned_seq"
)
LOCK_HEAD: Final = " FOR UPDATE"
LONG_ACTS: Final = 0x53504143
"""The class of the advisory locks of long acts; the dataset's number is the other half of such a lock's key."""
ONE_LONG_ACT: Final = "SELECT pg_advisory_xact_lock(%s, %s)"
READ_HEAD: Final = f"SELECT {HEAD_COLUMNS} FROM heads WHERE dataset_id = %s"


def head_of(row: Sequence[Any]) -> Head:
    """A head from its columns."""
    return Head(**by_name(HEAD_COLUMNS, row))


def head_in(rows: Sequence[Sequence[Any]]) -> Head:
    """The head among the rows of READ_HEAD. Raises StoreUnavailable where the dataset is deleted."""
    if not rows:
        raise StoreUnavailable("the dataset is deleted")
    return head_of(rows[0])


REGISTERED_COLUMNS: Final = (
    "name, epsilon, delta, budget_units, limit_floor_units, capacity, rule, schema, genesis, version, instance"
)
DATASET_COLUMNS: Final = f"id, {REGISTERED_COLUMNS}, archived_at IS NOT NULL"
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
    number, *registered, is_archived = row
    values = by_name(REGISTERED_COLUMNS, registered)
    guarantee = Guarantee(epsilon=values.pop("epsilon"), delta=values.pop("delta"))
    schema = Schema.model_validate(values.pop("schema"))
    return DatasetRecord(id=number, guarantee=guarantee, schema=schema, is_archived=is_archived, **values)


def registered_row(record: DatasetRecord) -> list[object]:
    """The values of REGISTERED_COLUMNS."""
    values = {"epsilon": record.guarantee.epsilon, "delta": record.guarantee.delta, "schema": json_of(record.schema)}
    return [values[name] if name in values else getattr(record, name) for name in REGISTERED_COLUMNS.split(", ")]


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


MIGRATIONS = Path(service.__file__).parent.parent / "migrations"
UNRELEASED_COMMIT = "717ac36"
"""The last checkout that reads schemas 0001 to 0019, of which no version was released."""
_ONE_AT_A_TIME = 0x5350_4152


class UnknownSchema(Exception):
    """The database's schema is none of this version's: it is of a later one, or of a checkout before version 0.2.0."""


class DatabaseUnusable(Exception):
    """The address is none of a database, or no database answers there. The text has no password."""


def migrate(database_url: str, *, folder: Path = MIGRATIONS) -> None:
    """Run every migration of `folder` that is missing; when several replicas start at once, one of them works.

    A migration's file begins with its revision, and revisions sort: that is how a database that misses nothing is
    recognised without loading Alembic, which takes longer than all the rest of a start. Raises UnknownSchema, and
    DatabaseUnusable.
    """
    known = sorted(path.name.partition("_")[0] for path in (folder / "versions").glob("*.py"))
    with _connected(database_url) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", [_ONE_AT_A_TIME])
        found = _revision(guard)
        if found is not None and found not in known:
            raise UnknownSchema(_refusal(found, known))
        if found != known[-1]:
            _upgrade(database_url, folder)


def _connected(database_url: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        return psycopg.connect(database_url, autocommit=True)
    except psycopg.ProgrammingError:  # its text quotes the address
        form = "postgresql://name:password@host:port/database"
        raise DatabaseUnusable(f"DATABASE_URL is not the address of a Postgres database, such as {form}") from None
    except psycopg.OperationalError as fault:
        raise DatabaseUnusable(f"the database cannot be reached: {' '.join(str(fault).split())}") from None


def _revision(connection: psycopg.Connection[tuple[Any, ...]]) -> str | None:
    exists = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchall()[0][0]
    rows = connection.execute("SELECT version_num FROM alembic_version").fetchall() if exists else []
    return str(rows[0][0]) if rows else None


def _refusal(found: str, known: list[str]) -> str:
    if found < known[0]:
        return (
            f"the database has schema {found}, which was never released: commit {UNRELEASED_COMMIT} still reads it,"
            " and this version begins with an empty database"
        )
    return f"the database has schema {found}, of a later version: this one knows schemas up to {known[-1]}"


def _upgrade(database_url: str, folder: Path) -> None:
    from alembic import command  # noqa: PLC0415 - see `migrate`
    from alembic.config import Config  # noqa: PLC0415 - see `migrate`

    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(folder))
    config.attributes["url"] = database_url
    with contextlib.redirect_stdout(io.StringIO()):
        command.upgrade(config, "head")
