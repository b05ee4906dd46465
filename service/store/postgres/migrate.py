"""Bring a database to the newest schema."""

import contextlib
import io
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

import service

MIGRATIONS = Path(service.__file__).parent.parent / "migrations"
_ONE_AT_A_TIME = 0x5350_4152


def migrate(database_url: str, *, folder: Path = MIGRATIONS) -> None:
    """Run every migration of `folder` that is missing; when several replicas start at once, one of them works."""
    with psycopg.connect(database_url, autocommit=True) as guard:
        guard.execute("SELECT pg_advisory_lock(%s)", [_ONE_AT_A_TIME])
        config = Config(stdout=io.StringIO())
        config.set_main_option("script_location", str(folder))
        config.attributes["url"] = sqlalchemy_url(database_url)
        with contextlib.redirect_stdout(io.StringIO()):
            command.upgrade(config, "head")


def sqlalchemy_url(database_url: str) -> URL:
    """SQLAlchemy's form of any libpq connection string; a unix socket's folder travels as the parameter `host`."""
    parts = conninfo_to_dict(database_url)
    text = {name: str(value) for name, value in parts.items() if value is not None}
    return URL.create(
        "postgresql+psycopg",
        username=text.pop("user", None),
        password=text.pop("password", None),
        database=text.pop("dbname", None),
        query=text,
    )
