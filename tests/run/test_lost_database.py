"""A database that was lost as a whole is told, and no new one is begun in its place."""

from pathlib import Path

import psycopg
import pytest

from service.ledger.model.rows import WitnessRecord
from service.run.lost_database import DatabaseLost, loss_of_home, refuse_to_begin
from service.settings.settings import Settings
from service.store.postgres.registrations import migrate
from service.store.witness.file import FileWitness
from tests.store.postgres.emptying import emptied


def witnessed(folder: Path) -> None:
    """One dataset is seen."""
    record = WitnessRecord(fence=1, seq=0, hash=bytes(32), acts=0, slots=0, worst_case_total_units=0)
    FileWitness(folder).write(f"survey-{'a' * 64}", record)


@pytest.mark.parametrize("kept", ["pepper", "witness"])
def test_a_home_that_kept_something_has_lost_its_database(tmp_path: Path, kept: str) -> None:
    """The pepper, or what a dataset's witness has seen; a home with data, or with nothing, has lost none."""
    settings = Settings.of({}, home=tmp_path)
    assert loss_of_home(settings) is None
    if kept == "pepper":
        (tmp_path / "pepper").write_text("ab" * 32, encoding="ascii")
    else:
        witnessed(settings.witness)
    loss = loss_of_home(settings)
    assert loss is not None
    assert loss.startswith(
        f"the database in {tmp_path} is gone, and was there once: nothing was done; `sparing restore`"
    )
    elsewhere = Settings.of({"DATABASE_URL": "postgresql://db"}, home=tmp_path)
    assert loss_of_home(elsewhere) is None
    (tmp_path / "pgdata-18").mkdir()
    assert loss_of_home(settings) is None


def test_a_database_is_begun_only_where_nothing_was_witnessed(tmp_path: Path) -> None:
    """A witness that cannot be read says nothing, and the database is not begun either."""
    refuse_to_begin(tmp_path / "witness")
    witnessed(tmp_path / "witness")
    with pytest.raises(DatabaseLost, match="has seen 1 datasets: nothing was done"):
        refuse_to_begin(tmp_path / "witness")
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseLost, match="cannot be read"):
        refuse_to_begin(tmp_path / "file")


def test_a_refusal_to_begin_changes_nothing_in_the_database(database_url: str) -> None:
    """It is asked until a process has served there, by the proof of whose pepper it is known; then no more."""
    asked: list[str] = []

    def begins() -> None:
        asked.append("asked")
        raise DatabaseLost

    empty = emptied(database_url)
    with pytest.raises(DatabaseLost):
        migrate(empty, begins=begins)
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT to_regclass('alembic_version')").fetchall() == [(None,)]
    migrate(empty)
    with pytest.raises(DatabaseLost):
        migrate(empty, begins=begins)
    with psycopg.connect(empty) as connection:
        connection.execute("INSERT INTO pepper (salt, proof) VALUES (%s, %s)", [bytes(32), bytes(32)])
    migrate(empty, begins=begins)
    assert asked == ["asked", "asked"]
