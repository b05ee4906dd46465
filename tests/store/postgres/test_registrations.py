"""Migrations make what the tables in SQLAlchemy say, once; a database of no released version is refused in one line."""

import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import create_engine, pool

from migrations.tables import METADATA
from service.store.postgres import registrations
from service.store.postgres.registrations import DatabaseUnusable, UnknownSchema, migrate
from tests.logged import lines_of
from tests.store.postgres.emptying import emptied

MIGRATE = "import sys; from service.store.postgres.registrations import migrate; migrate(sys.argv[1])"


def test_the_migrations_and_the_metadata_agree(database_url: str) -> None:
    """The tables of the metadata are those that the migrations made."""
    engine = create_engine(
        "postgresql+psycopg://", creator=partial(psycopg.connect, database_url), poolclass=pool.NullPool
    )
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    assert differences == []


AWAY = "^the database of DATABASE_URL cannot be reached: "


def test_an_empty_database_gets_every_table(database_url: str) -> None:
    """The tables are those of a copy of the suite's template. Each revision is told as it runs."""
    expected, newest = _columns(database_url), revision(database_url)
    lines: list[str] = []
    migrate(emptied(database_url), tell=lines.append)
    assert (_columns(database_url), revision(database_url)) == (expected, newest)
    revisions = registrations._known()
    assert lines[0] == f"the database has no schema; to run: {', '.join(revisions)}"
    assert lines[1:-1] == [f"migration {revision} has run" for revision in revisions]
    assert lines[-1] == f"the database has schema {revisions[-1]} now: all of it was one transaction"


def test_a_migrated_database_stays_as_it_is(database_url: str) -> None:
    """A replica that starts later finds its schema, and is told that there is nothing to do."""
    before, lines = _columns(database_url), list[str]()
    migrate(database_url, tell=lines.append)
    assert _columns(database_url) == before
    assert ("heads", "seq") in {(table, column) for table, column, *_ in before}
    assert lines == [f"the database has schema {revision(database_url)}, the newest: nothing to do"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgres ql://clerk:s3cret@host/care", "^DATABASE_URL is not the address of a Postgres database"),
        ("postgresql://clerk:s3cret@[::1/care", "^DATABASE_URL is not the address of a Postgres database"),
        ("postgresql://clerk:s3cret@127.0.0.1:1/care", f"{AWAY}connection refused$"),
        ("postgresql://clerk:more@s3cret@127.0.0.1:1/care", f"{AWAY}the name of its host has no address$"),
    ],
    ids=["no scheme", "half a host", "nobody there", "a password with an @"],
)
def test_an_address_that_cannot_be_used_is_refused_in_one_line(address: str, said: str) -> None:
    """Without its password, also in the errors that led to it."""
    with pytest.raises(DatabaseUnusable, match=said) as refused:
        migrate(address)
    assert "\n" not in str(refused.value)
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


def test_a_database_that_refuses_its_password_is_not_waited_for(database_url: str) -> None:
    """It would refuse it again; the line has neither password nor address."""
    address = re.sub(":[0-9a-f]+@", ":s3cret@", database_url)
    with pytest.raises(DatabaseUnusable, match=f"{AWAY}password authentication failed"):
        migrate(address, wait_s=3600)


def test_a_database_that_does_not_answer_yet_is_waited_for(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as is said; that it waits is one line of the log."""
    sockets = str(conninfo_to_dict(database_url)["host"])
    link = tmp_path / "s"
    later = make_conninfo(database_url, host=str(link))
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 1:
            link.symlink_to(sockets)

    monkeypatch.setattr(registrations, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    with pytest.raises(DatabaseUnusable, match=AWAY):
        migrate(later, wait_s=0.3)
    migrate(later, wait_s=60)
    told = lines_of(caplog, "sparing.start")
    assert [line.partition(":")[0] for line in told] == ["the database of DATABASE_URL cannot be reached"] * 2
    assert told[1].endswith("it is asked again for 60 s")


@pytest.fixture
def later_folder(tmp_path: Path) -> Path:
    """The migrations and one more behind them, as a later version has."""
    folder = shutil.copytree(registrations.MIGRATIONS, tmp_path / "migrations")
    (folder / "versions" / "9001_note.py").write_text(LATER.format(before=registrations._known()[-1]))
    return folder


LATER = """from alembic import op
revision, down_revision = "9001", "{before}"
def upgrade():
    op.execute("ALTER TABLE journal ADD COLUMN note text")
"""


def test_a_database_of_an_earlier_version_gets_what_it_misses(
    database_url: str, later_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step that it has runs again; the version that it came from refuses it afterwards."""
    before, found = _columns(database_url), revision(database_url)
    lines: list[str] = []
    with monkeypatch.context() as later:
        later.setattr(registrations, "MIGRATIONS", later_folder)
        migrate(database_url, tell=lines.append)
    assert lines == [
        f"the database has schema {found}; to run: 9001",
        "migration 9001 has run",
        "the database has schema 9001 now: all of it was one transaction",
    ]
    assert set(_columns(database_url)) - set(before) == {("journal", "note", "text", "YES")}
    with pytest.raises(UnknownSchema, match=rf"^the database has schema 9001, of a later version: .* up to {found}$"):
        migrate(database_url)


def test_an_empty_database_gets_every_migration(
    database_url: str, later_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps run in order, the baseline first."""
    lines: list[str] = []
    monkeypatch.setattr(registrations, "MIGRATIONS", later_folder)
    migrate(emptied(database_url), tell=lines.append)
    assert lines[0] == f"the database has no schema; to run: {', '.join(registrations._known())}"
    assert lines[1:-1] == [f"migration {each} has run" for each in registrations._known()]
    assert revision(database_url) == "9001"


def test_first_migrations_at_once_succeed(new_database: Callable[[], str]) -> None:
    """They are of one empty database and of another of the same server, whose roles they share."""
    one, other = emptied(new_database()), emptied(new_database())
    started = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, url], stderr=subprocess.PIPE, text=True)
        for url in (one, one, other, other)
    ]
    ended = [(process.wait(300), process.communicate()[1]) for process in started]
    assert ended == [(0, "")] * 4
    assert revision(one) == revision(other)


def test_a_migration_that_the_database_refuses_is_told_in_one_line(database_url: str) -> None:
    """By an account that may create no tables; without a statement or a row."""
    emptied(database_url)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
        owner.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        address = make_conninfo(database_url, user="guest", password="guest")
        with pytest.raises(DatabaseUnusable, match=r"^the database could not be brought .*: no schema"):
            migrate(address)
    finally:
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute("DROP OWNED BY guest")
            owner.execute("DROP ROLE guest")


def test_a_database_that_is_too_old_is_refused_in_one_line(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any migration is tried: the first would end in an error of syntax."""
    monkeypatch.setattr(registrations, "POSTGRES_MAJOR_MIN", 99)
    with pytest.raises(DatabaseUnusable, match=r"^the database is Postgres \d\d; 99 or newer is needed$"):
        migrate(database_url)


@pytest.mark.parametrize("found", ["0001", "0020", "0030"])
def test_a_database_of_an_unreleased_schema_is_refused_and_left_as_it_is(database_url: str, found: str) -> None:
    """The refusal says that this version begins with an empty database."""
    set_revision(database_url, found)
    before = _columns(database_url)
    with pytest.raises(UnknownSchema, match=rf"^the database has schema {found}, which was never released: "):
        migrate(database_url)
    assert _columns(database_url) == before
    assert revision(database_url) == found


def test_a_database_of_a_later_version_is_refused(database_url: str) -> None:
    """It is newer than every migration that is here."""
    set_revision(database_url, "9999")
    with pytest.raises(UnknownSchema, match=r"^the database has schema 9999, of a later version: this one knows"):
        migrate(database_url)


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
