"""Bring a database to the newest schema."""

import contextlib
import io
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

import service

MIGRATIONS = Path(service.__file__).parent.parent / "migrations"
UNRELEASED_COMMIT = "717ac36"
"""The last checkout that reads schemas 0001 to 0019, of which no version was released."""
_ONE_AT_A_TIME = 0x5350_4152


class UnknownSchema(Exception):
    """The database's schema is none of this version's: it is of a later one, or of a checkout before version 0.2.0."""


def migrate(database_url: str, *, folder: Path = MIGRATIONS) -> None:
    """Run every migration of `folder` that is missing; when several replicas start at once, one of them works.

    A migration's file begins with its revision, and revisions sort: that is how a database that misses nothing is
    recognised without loading Alembic, which takes longer than all the rest of a start. Raises UnknownSchema.
    """
    known = sorted(path.name.partition("_")[0] for path in (folder / "versions").glob("*.py"))
    with psycopg.connect(database_url, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", [_ONE_AT_A_TIME])
        found = _revision(guard)
        if found is not None and found not in known:
            raise UnknownSchema(_refusal(found, known))
        if found != known[-1]:
            _upgrade(database_url, folder)


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


def libpq_parts(database_url: str) -> dict[str, str]:
    """A libpq connection string, of either form, by its parts."""
    return {name: str(value) for name, value in conninfo_to_dict(database_url).items() if value is not None}
