"""Bring a database to the newest schema."""

import contextlib
import io
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

import service

MIGRATIONS = Path(service.__file__).parent.parent / "migrations"
_ONE_AT_A_TIME = 0x5350_4152


def migrate(database_url: str, *, folder: Path = MIGRATIONS) -> None:
    """Run every migration of `folder` that is missing; when several replicas start at once, one of them works.

    A migration's file begins with its revision, and revisions sort: that is how a database that misses nothing is
    recognised without loading Alembic, which takes longer than all the rest of a start.
    """
    newest = max(path.name.partition("_")[0] for path in (folder / "versions").glob("*.py"))
    with psycopg.connect(database_url, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", [_ONE_AT_A_TIME])
        if _revision(guard) != newest:
            _upgrade(database_url, folder)


def _revision(connection: psycopg.Connection[tuple[object, ...]]) -> object:
    exists = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchall()[0][0]
    rows = connection.execute("SELECT version_num FROM alembic_version").fetchall() if exists else []
    return rows[0][0] if rows else None


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
