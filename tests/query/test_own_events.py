"""Totals over own events: bounds that follow from declared rows, and refusals that name the field."""

from typing import Any

import pytest

from service.query.own_events import OwnTotal
from service.query.row_columns import text_of
from service.query.schema import EventsTable
from tests.query.samples import SCHEMA, column_of, columns_of, refused, row_of

VISITS = SCHEMA.tables["visits"]
assert isinstance(VISITS, EventsTable)
ROWS = VISITS.rows_per_individual
PREDICTED = {"predict": {"features": [{"of": {"col": "paid"}}], "link": "identity", "parameters": [1]}}


def own(**body: Any) -> dict[str, Any]:
    """A value from own events."""
    return {"own": {"from": "visits", "clip": [0, 3]} | body}


def test_a_count_is_bounded_by_the_clip_and_by_the_declared_rows() -> None:
    """Whichever is less."""
    assert (column_of(own(count={})).coding.offset, column_of(own(count={})).coding.span) == (0, 3)
    assert column_of(own(count={}, clip=[0, 10_000])).coding.span == ROWS
    columns = columns_of("people")
    columns.value(row_of(own(count={})), "v")
    whole = [column for column in columns.used.values() if isinstance(column.formula, OwnTotal)]
    assert [column.coding.span for column in whole] == [ROWS]


def test_different_totals_have_different_names() -> None:
    """Conditions tell them apart."""
    named = {
        text_of(row_of(own(count={}, where=where)))
        for where in ({"ge": [{"col": "paid"}, 1]}, {"ge": [{"col": "paid"}, 2]})
    }
    assert len(named) == 2


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (own(count={}) | {"own": {"from": "visit", "count": {}, "clip": [0, 1]}}, "v.own.from", "did you mean"),
        ({"own": {"from": "people", "count": {}, "clip": [0, 1]}}, "v.own.from", "is not a table of events"),
        (own(count={}, clip=[3, 2]), "v.own.clip[1]", "must not be below"),
        (own(count={}, clip=[0, 2.5]), "v.own.clip[1]", "must be a whole number"),
        (own(count={}, where={"ge": [{"col": "nothing"}, 1]}), "v.own.where.ge[0].col", "there is no column"),
        (own(sum={"col": "item"}), "v.own.sum", "must be a number"),
        (own(sum={"mul": [{"col": "paid"}, 1e17]}), "v.own.sum", "too large for exact sums"),
        (own(sum=PREDICTED), "v.own", "must not hold a prediction"),
        (own(count={}, where={"ge": [{"add": [PREDICTED, 1]}, 2]}), "v.own", "must not hold a prediction"),
    ],
)
def test_a_total_that_has_no_meaning_is_refused(body: dict[str, Any], field: str, words: str) -> None:
    """With the place in the query."""
    found, message = refused(column_of, body)
    assert found == field
    assert words in message


def test_a_total_is_of_individuals_alone() -> None:
    """A table of events has no own events."""
    wanted = ("v.own", "is a value of individuals, and this is a table of events")
    assert refused(column_of, own(count={}), table="visits") == wanted
