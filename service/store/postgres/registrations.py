"""A dataset's registration and its head in Postgres, and the schema of the database itself.

The row of the head is the lock of the dataset, holds its fence, and gives all changes their order.
"""

import contextlib
import io
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb

from service.accounting.accountings import accounting_of
from service.accounting.monitor import monitor_of
from service.embedded.binaries import POSTGRES_MAJOR_MIN
from service.files import folder_of
from service.ledger.model.rows import DatasetRecord, EarlierRegistration, Head
from service.ledger.model.stated_guarantee import Guarantee
from service.ledger.ports.store import NotEmpty, StoreUnavailable
from service.query.schema import Schema
from service.store.fault_words import words_of
from service.store.postgres.data_tables import RecordsTable, records_tables
from service.store.postgres.rows import by_name, columns_of, names_in
from service.store.postgres.sessions import Session, committing, translated

HEAD_COLUMNS: Final = columns_of(Head)
LOCK_HEAD: Final = " FOR UPDATE"
LONG_ACTS: Final = 0x53504143
"""The class of the advisory locks of long acts. The other half of such a lock's key is the dataset's number."""
ONE_LONG_ACT: Final = "SELECT pg_advisory_xact_lock(%s, %s)"
READ_HEAD: Final = f"SELECT {HEAD_COLUMNS} FROM heads WHERE dataset_id = %s"


def head_of(row: Sequence[Any]) -> Head:
    """A head from the values of HEAD_COLUMNS."""
    return Head(**by_name(HEAD_COLUMNS, row))


def head_in(rows: Sequence[Sequence[Any]]) -> Head:
    """The head among the rows of READ_HEAD. Raises StoreUnavailable where the dataset is deleted."""
    if not rows:
        raise StoreUnavailable("the dataset is deleted")
    return head_of(rows[0])


_STATED: Final = columns_of(DatasetRecord, "id", "guarantee", "is_archived", "reserve_units")
REGISTERED_COLUMNS: Final = f"{columns_of(Guarantee)}, {_STATED}"
DATASET_COLUMNS: Final = f"id, {REGISTERED_COLUMNS}, archived_at IS NOT NULL"
DATASETS_AFTER: Final = (
    f'SELECT {DATASET_COLUMNS} FROM datasets WHERE name COLLATE "C" > %s ORDER BY name COLLATE "C" LIMIT %s'
)
REGISTRATION: Final = f"SELECT {DATASET_COLUMNS} FROM datasets WHERE id = %s"
_EARLIER: Final = columns_of(EarlierRegistration)
EARLIER: Final = f"SELECT {_EARLIER} FROM registrations WHERE dataset_id = %s ORDER BY version"
KEEP_EARLIER: Final = (
    "INSERT INTO registrations (dataset_id, version, until_seq, capacity, schema)"
    " SELECT id, version, %s, capacity, schema FROM datasets WHERE id = %s AND version < %s"
)
SET_REGISTRATION: Final = (
    "UPDATE datasets SET capacity = %s, schema = %s, version = %s,"
    " archived_at = CASE WHEN %s THEN coalesce(archived_at, now()) END WHERE id = %s"
)


def dataset_of(row: Sequence[Any]) -> DatasetRecord:
    """A registration from the values of DATASET_COLUMNS."""
    number, *registered, is_archived = row
    values = by_name(REGISTERED_COLUMNS, registered)
    guarantee = Guarantee(epsilon=values.pop("epsilon"), delta=values.pop("delta"))
    monitor = values.pop("monitor")
    return DatasetRecord(
        id=number,
        guarantee=guarantee,
        schema=Schema.model_validate(values.pop("schema")),
        accounting=accounting_of(values.pop("accounting")),
        monitor=monitor and monitor_of(monitor, budget_units=values["budget_units"]),
        is_archived=is_archived,
        **values,
    )


def registered_row(record: DatasetRecord) -> list[object]:
    """The values of REGISTERED_COLUMNS."""
    values = {
        "epsilon": record.guarantee.epsilon,
        "delta": record.guarantee.delta,
        "schema": json_of(record.schema),
        "accounting": Jsonb(record.accounting.document),
        "monitor": record.monitor and Jsonb(record.monitor.document),
    }
    return [values[name] if name in values else getattr(record, name) for name in names_in(REGISTERED_COLUMNS)]


def earlier_of(row: Sequence[Any]) -> EarlierRegistration:
    """A replaced registration from a row of EARLIER."""
    values = by_name(_EARLIER, row)
    return EarlierRegistration(schema=Schema.model_validate(values.pop("schema")), **values)


def json_of(schema: Schema) -> Jsonb:
    """A schema in the form in which a dataset's row has it."""
    return Jsonb(schema.model_dump(mode="json", exclude_none=True))


def stored_tables(session: Session, dataset_id: int) -> dict[str, RecordsTable]:
    """The tables of a dataset's records, as of the session's transaction."""
    rows = session.execute("SELECT schema FROM datasets WHERE id = %s", [dataset_id]).fetchall()
    return records_tables(dataset_id, Schema.model_validate(rows[0][0])) if rows else {}


def extend_tables(session: Session, before: dict[str, RecordsTable], after: dict[str, RecordsTable]) -> None:
    """Add the tables and columns that only `after` has. A table whose number changes is renamed first."""
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

    It takes the same locks as a long act, in the same order.
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


MIGRATIONS: Final = folder_of("migrations", in_clone="migrations")
_ONE_AT_A_TIME = 0x5350_4152
_CONNECT_TIMEOUT_S = 5
_WAIT_POLL_S = 0.2
_FORM = "postgresql://name:password@host:port/database"

log = logging.getLogger("sparing.start")


class UnknownSchema(Exception):
    """The database's schema is not known to this version."""


class DatabaseUnusable(Exception):
    """The address is not a database's, no database that is new enough answers there, or a migration fails.

    The text has no password.
    """


def migrate(
    database_url: str,
    *,
    wait_s: float = 0,
    tell: Callable[[str], None] = lambda _: None,
    begins: Callable[[], None] = lambda: None,
) -> None:
    """Run every migration that is missing. When several replicas start at once, one replica runs all.

    A database that does not answer yet has `wait_s` seconds to do so. `tell` gets a line for each migration. `begins`
    is called before anything is done to a database on which no process has served yet, and may raise.

    The name of a migration's file begins with its revision, and revisions sort. So a database that has all migrations
    is recognised without loading Alembic, which takes longer than the rest of a start. Raises UnknownSchema,
    DatabaseUnusable.
    """
    known = _known()
    with _connected(database_url, wait_s) as guard, _told_in_one_line():
        guard.execute("SELECT pg_advisory_lock(%s)", [_ONE_AT_A_TIME])
        found = revision_in(guard)
        check_known(found)
        if kept_proof(guard) is None:
            begins()
        if found == known[-1]:
            tell(f"the database has schema {found}, the newest: nothing to do")
            return
        missing = [each for each in known if found is None or each > found]
        tell(f"the database has {'no schema' if found is None else f'schema {found}'}; to run: {', '.join(missing)}")
        _upgrade(database_url, lambda revision: tell(f"migration {revision} has run"))
        tell(f"the database has schema {known[-1]} now: all of it was one transaction")


def check_known(revision: str | None) -> None:
    """Raise UnknownSchema if this version does not know the database's revision."""
    known = _known()
    if revision is not None and revision not in known:
        raise UnknownSchema(_refusal(revision, known))


def _known() -> list[str]:
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("*.py"))


def _connected(database_url: str, wait_s: float) -> psycopg.Connection[tuple[Any, ...]]:
    connection = _first_connection(database_url, time.monotonic() + wait_s)
    major = connection.info.server_version // 10_000
    if major < POSTGRES_MAJOR_MIN:
        connection.close()
        raise DatabaseUnusable(f"the database is Postgres {major}; {POSTGRES_MAJOR_MIN} or newer is needed")
    return connection


def _first_connection(database_url: str, deadline: float) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection. A server that does not take connections yet is asked again until the deadline."""
    is_told = False
    while True:
        try:
            timeout_s = conninfo_to_dict(database_url).get("connect_timeout") or _CONNECT_TIMEOUT_S
            return psycopg.connect(database_url, autocommit=True, connect_timeout=int(timeout_s))
        except (ValueError, psycopg.ProgrammingError):  # its text quotes the address
            raise DatabaseUnusable(f"DATABASE_URL is not the address of a Postgres database, such as {_FORM}") from None
        except psycopg.OperationalError as fault:
            told = f"the database of DATABASE_URL cannot be reached: {words_of(fault, database_url)}"
            if time.monotonic() >= deadline or not _may_answer_later(database_url):
                raise DatabaseUnusable(told) from None
        if not is_told:
            log.warning("%s; it is asked again for %.0f s", told, deadline - time.monotonic())
            is_told = True
        time.sleep(_WAIT_POLL_S)


def _may_answer_later(database_url: str) -> bool:
    """Tell whether no server answers yet, or a server that is starting. A refusal of the password is final."""
    return pq.PGconn.ping(database_url.encode()) in {pq.Ping.REJECT, pq.Ping.NO_RESPONSE}


@contextlib.contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Raise DatabaseUnusable for any error of the database, without its details, which may quote rows."""
    try:
        yield
    except psycopg.Error as fault:
        reason = fault.diag.message_primary or type(fault).__name__
        raise DatabaseUnusable(f"the database could not be brought to this version's schema: {reason}") from fault


def revision_in(connection: psycopg.Connection[tuple[Any, ...]]) -> str | None:
    """The revision of the database's schema; None where it has no table of the service."""
    exists = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchall()[0][0]
    rows = connection.execute("SELECT version_num FROM alembic_version").fetchall() if exists else []
    return str(rows[0][0]) if rows else None


def kept_proof(connection: psycopg.Connection[tuple[Any, ...]]) -> tuple[bytes, bytes] | None:
    """The salt and the pepper's proof, which a database has once a process has served on it: it keeps them first."""
    exists = connection.execute("SELECT to_regclass('pepper') IS NOT NULL").fetchall()[0][0]
    rows = connection.execute("SELECT salt, proof FROM pepper").fetchall() if exists else []
    return (bytes(rows[0][0]), bytes(rows[0][1])) if rows else None


def _refusal(found: str, known: list[str]) -> str:
    if found < known[0]:
        return f"the database has schema {found}, which was never released: this version begins with an empty database"
    return f"the database has schema {found}, of a later version: this one knows schemas up to {known[-1]}"


def _upgrade(database_url: str, applied: Callable[[str], None]) -> None:
    from alembic import command  # noqa: PLC0415 - see `migrate`
    from alembic.config import Config  # noqa: PLC0415 - see `migrate`
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - see `migrate`

    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = database_url
    config.attributes["applied"] = lambda step, **_: applied(str(step.up_revision_id))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            command.upgrade(config, "head")
    except DBAPIError as fault:
        raise (fault.orig or fault) from fault
