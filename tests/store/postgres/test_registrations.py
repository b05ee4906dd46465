"""Migrations make what the tables in SQLAlchemy say, once; a database of no released version is refused in one line."""

import traceback
from functools import partial

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, pool

from migrations.tables import METADATA
from service.store.postgres.registrations import UNRELEASED_COMMIT, DatabaseUnusable, UnknownSchema, migrate
from tests.store.postgres.emptying import emptied

pytestmark = pytest.mark.slow


def test_the_migrations_and_the_metadata_agree(database_url: str) -> None:
    """The tables of the metadata are those that the migrations made."""
    engine = create_engine(
        "postgresql+psycopg://", creator=partial(psycopg.connect, database_url), poolclass=pool.NullPool
    )
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    assert differences == []


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    """A replica that starts later finds the schema as it is."""
    migrate(database_url)
    before = _columns(database_url)
    migrate(database_url)
    assert _columns(database_url) == before
    assert ("heads", "seq") in {(table, column) for table, column, *_ in before}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgres ql://clerk:s3cret@host/care", "^DATABASE_URL is not the address of a Postgres database"),
        ("postgresql://clerk:s3cret@[::1/care", "^DATABASE_URL is not the address of a Postgres database"),
        ("postgresql://clerk:s3cret@127.0.0.1:1/care", "^the database cannot be reached: .*refused"),
    ],
    ids=["no scheme", "half a host", "nobody there"],
)
def test_an_address_that_cannot_be_used_is_refused_in_one_line(address: str, said: str) -> None:
    """Without its password, also in the errors that led to it."""
    with pytest.raises(DatabaseUnusable, match=said) as refused:
        migrate(address)
    assert "\n" not in str(refused.value)
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("found", ["0001", "0013", "0019"])
def test_a_database_of_an_unreleased_schema_is_refused_and_left_as_it_is(database_url: str, found: str) -> None:
    """The refusal names the commit that still reads it."""
    set_revision(database_url, found)
    before = _columns(database_url)
    with pytest.raises(UnknownSchema, match=rf"^the database has schema {found}, .* commit {UNRELEASED_COMMIT} still"):
        migrate(database_url)
    assert _columns(database_url) == before
    assert revision(database_url) == found


def test_a_database_of_a_later_version_is_refused(database_url: str) -> None:
    """It is newer than every migration that is here."""
    set_revision(database_url, "9999")
    with pytest.raises(UnknownSchema, match=r"^the database has schema 9999, of a later version: this one knows"):
        migrate(database_url)


def test_an_empty_database_gets_every_table(database_url: str) -> None:
    """The same tables as a copy of the suite's template."""
    expected, newest = _columns(database_url), revision(database_url)
    migrate(emptied(database_url))
    assert (_columns(database_url), revision(database_url)) == (expected, newest)


def revision(database_url: str) -> str:
    """The revision that the database says it has."""
    with psycopg.connect(database_url) as connection:
        ((found,),) = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    return str(found)


def set_revision(database_url: str, found: str) -> None:
    """Let the database say that it has another revision."""
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [found])


def _columns(database_url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY 1, 2"
        ).fetchall()
