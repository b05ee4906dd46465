"""`sparing --version`, the list of commands, and `sparing schema infer`."""

import io
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from service.cli.app import app
from service.engine.ingest.reader import read_rows
from service.query.schema import Schema


def test_the_version_is_that_of_the_distribution() -> None:
    """One line, without a home or a command."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"sparing {version('sparing')}\n")


def test_every_command_is_listed() -> None:
    """Without a command the help is shown."""
    shown = CliRunner().invoke(app, []).output
    assert all(
        name in shown
        for name in (
            "serve",
            "demo",
            "audit",
            "migrate",
            "doctor",
            "backup",
            "restore",
            "calibrate",
            "keys",
            "ledger",
            "schema",
        )
    )


CSV = "person_id,age,spend,member,country\na,34,10.5,true,NO\nb,,0,,SE\n"


def inferred(where: Path, *options: str) -> dict[str, Any]:
    """The document that the command prints."""
    done = CliRunner().invoke(app, ["schema", "infer", str(where), *options])
    assert done.exit_code == 0, done.output
    proposal: dict[str, Any] = json.loads(done.stdout)
    return proposal


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A curator's file."""
    where = tmp_path / "people.csv"
    where.write_text(CSV, encoding="utf-8")
    return where


def test_a_proposal_is_refused_until_every_mark_is_removed(people: Path) -> None:
    """The table and each column on its own: one is enough. Without them the schema reads the file it was made of."""
    tables = inferred(people)["tables"]
    marked = [each for each in (tables["people"], *tables["people"]["columns"].values()) if "confirm" in each]
    assert len(marked) == 4
    for each in marked:
        with pytest.raises(ValidationError) as refused:
            Schema.model_validate(tables)
        assert {error["loc"][-1] for error in refused.value.errors()} == {"confirm"}
        del each["confirm"]
    table = Schema.model_validate(tables).tables["people"]
    rows = read_rows(io.BytesIO(CSV.encode()), "text/csv", table, budget_units=1)
    assert (len(rows.keys), sum(rows.clipped.values()), sum(rows.out_of_domain.values())) == (2, 0, 0)


def test_table_key_and_kind_are_options(people: Path) -> None:
    """They have the meaning that they have in the client."""
    tables = inferred(people, "--table", "visits", "--key", "country", "--kind", "events")["tables"]
    assert (tables["visits"]["kind"], tables["visits"]["key"]) == ("events", "country")
    with pytest.raises(ValidationError):
        Schema.model_validate(tables)  # rows_per_individual is marked too


@pytest.mark.parametrize("options", [["--key", "nr"], ["--kind", "people"]])
def test_a_wrong_option_is_one_line(people: Path, options: list[str]) -> None:
    """No traceback."""
    done = CliRunner().invoke(app, ["schema", "infer", str(people), *options])
    assert done.exit_code != 0
    assert "Traceback" not in done.output


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """With its name."""
    done = CliRunner().invoke(app, ["schema", "infer", str(tmp_path / "none.csv")])
    assert (done.exit_code, "none.csv" in done.output) == (1, True)


def test_without_the_client_the_command_says_what_to_install(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The production image has no client."""
    monkeypatch.setitem(sys.modules, "sparing", None)
    done = CliRunner().invoke(app, ["schema", "infer", str(people)])
    assert (done.exit_code, "pip install ./clients/python" in done.output) == (1, True)
