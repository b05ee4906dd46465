"""A file whose columns have other names than the declared ones, in each format."""

import io
from typing import Final

import pytest

from service.engine.ingest import FileForm, RowsProblem
from service.engine.ingest.names import ColumnNames
from service.engine.ingest.reader import read_rows
from tests.engine.ingest.uploads import ARROW, BUDGET, CSV, NDJSON, PARQUET, VISITS, written

IN_FILE: Final = ("Person ID", "Item: no", "note")
COLUMNS: Final[ColumnNames] = {"Person ID": "id", "Item: no": "item", "note": None}
ROWS: Final = [("ann", 1, "a: b"), ("bob", 2, None), ("ann", None, "c")]
FORMATS: Final = (CSV, NDJSON, PARQUET, ARROW)


def faults_of(content_type: str, names: tuple[str, ...], columns: ColumnNames) -> set[tuple[str | None, str]]:
    """(column, message) of what is refused."""
    rows = [("ann", 1, 1)[: len(names)]]
    with pytest.raises(RowsProblem) as refused:
        read_rows(
            io.BytesIO(written(content_type, rows, names)),
            content_type,
            VISITS,
            budget_units=BUDGET,
            form=FileForm(columns=columns),
        )
    return {(error.column, error.message.partition(" (line")[0]) for error in refused.value.errors}


@pytest.mark.parametrize("content_type", FORMATS)
def test_columns_are_read_under_their_declared_names(content_type: str) -> None:
    """One that is left out may hold anything."""
    body = written(content_type, ROWS, IN_FILE)
    form = FileForm(columns=COLUMNS)
    rows = read_rows(io.BytesIO(body), content_type, VISITS, budget_units=BUDGET, form=form)
    assert list(rows.keys) == ["ann", "bob", "ann"]
    assert rows.nulls == {"item": 1}


@pytest.mark.parametrize("content_type", FORMATS)
def test_a_name_may_be_exchanged_for_another(content_type: str) -> None:
    """The `id` of the file is an item here."""
    body = written(content_type, [(1, "ann")], ("id", "item"))
    form = FileForm(columns={"id": "item", "item": "id"})
    rows = read_rows(io.BytesIO(body), content_type, VISITS, budget_units=BUDGET, form=form)
    assert (list(rows.keys), rows.nulls) == (["ann"], {"item": 0})


@pytest.mark.parametrize("content_type", FORMATS)
def test_a_column_that_is_not_declared_is_refused_by_its_new_name(content_type: str) -> None:
    """A missing one is named too."""
    missing = "the column is missing; write null for no value" if content_type == NDJSON else "the column is missing"
    assert faults_of(content_type, ("Person ID", "item"), {"Person ID": "person"}) == {
        ("person", "the column is not declared"),
        ("id", missing),
    }


@pytest.mark.parametrize("content_type", [CSV, PARQUET, ARROW])
def test_names_that_the_file_does_not_have_are_refused(content_type: str) -> None:
    """Also where they would be left out; of NDJSON each row has its own members."""
    absent = "`columns` names it, and the file has no such column"
    assert faults_of(content_type, ("id", "item"), {"Item": "item", "note": None}) == {
        ("Item", absent),
        ("note", absent),
    }


@pytest.mark.parametrize("content_type", FORMATS)
def test_two_columns_cannot_be_one(content_type: str) -> None:
    """Neither is taken."""
    ((column, message),) = faults_of(content_type, ("id", "item", "other"), {"other": "item"})
    assert (column, message) == (None if content_type == NDJSON else "item", "several columns of the file would be one")
