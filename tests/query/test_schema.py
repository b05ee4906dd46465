"""The public schema: what a curator may declare, and how it is read back."""

from typing import Any

import pytest
from pydantic import ValidationError

from service.query.schema import CategoryColumn, EventsTable, Schema
from tests.query.samples import SCHEMA, TABLES

KEY = {"kind": "individuals", "key": "id"}
VISITS = {"kind": "events", "key": "id", "columns": {}}


def people(**columns: Any) -> dict[str, Any]:
    """One table of individuals with these columns."""
    return {"people": KEY | {"columns": columns}}


def test_the_wire_form_is_read_and_written_back() -> None:
    """A schema that was stored as JSON is the same schema."""
    stored = SCHEMA.model_dump(mode="json")

    assert Schema.model_validate(stored) == SCHEMA
    assert Schema.model_validate_json(SCHEMA.model_dump_json()) == SCHEMA
    assert list(SCHEMA.tables) == list(TABLES)
    assert SCHEMA.individuals_name == "people"
    assert SCHEMA.tables["visits"].kind == "events"


def test_defaults_of_an_events_table_are_the_documented_ones() -> None:
    """Unknown people are rejected, and no individual has more than 4,096 rows."""
    visits = SCHEMA.tables["visits"]

    assert visits.kind == "events"
    assert (visits.unknown_individuals, visits.rows_per_individual) == ("reject", 4096)


def test_rows_capacity_is_written_only_where_it_is_declared() -> None:
    """A schema from before there was the field is stored, hashed and shown as it was; a declared number is shown."""
    declared = Schema.model_validate(people() | {"visits": VISITS | {"rows_capacity": 500}})

    assert "rows_capacity" not in SCHEMA.model_dump(mode="json")["visits"]
    assert "rows_capacity" not in SCHEMA.model_dump_json()
    assert declared.model_dump(mode="json")["visits"]["rows_capacity"] == 500
    assert Schema.model_validate(declared.model_dump(mode="json", exclude_none=True)) == declared


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ({}, 32_000),
        ({"rows_capacity": 500}, 500),
        ({"rows_capacity": 2**40}, 4_096_000),
        ({"rows_capacity": 2**40, "rows_per_individual": 2**20}, 1000 * 2**20),
        ({"rows_per_individual": 2}, 2000),
        ({"rows_per_individual": 2, "rows_capacity": 1999}, 1999),
    ],
)
def test_a_table_has_room_for_its_rows(fields: dict[str, int], rows: int) -> None:
    """It has the declared rows, by default 32 for each individual of the capacity, and no more than they can have."""
    table = Schema.model_validate(people() | {"visits": VISITS | fields}).tables["visits"]

    assert isinstance(table, EventsTable)
    assert table.rows_max(1000) == rows
    assert SCHEMA.tables["people"].rows_max(1000) == 1000


def test_the_budget_column_is_found() -> None:
    """A dataset knows whether individuals may bring limits of their own, and in which column."""
    without = Schema.model_validate(people(age={"type": "integer", "lower": 0, "upper": 9}))

    assert (SCHEMA.budget_column, SCHEMA.has_budget_column) == ("limit_rho", True)
    assert (without.budget_column, without.has_budget_column) == (None, False)


def test_codes_of_categories_follow_the_declared_order() -> None:
    """A category given by size is its own code; 1 and "1" are different categories; what is not declared has none."""
    listed = CategoryColumn.model_validate({"type": "category", "categories": [3, 1, "1"]})
    sized = CategoryColumn.model_validate({"type": "category", "size": 3})

    assert [listed.code_of(category) for category in (3, 1, "1", 2, "3")] == [0, 1, 2, None, None]
    assert [sized.code_of(category) for category in (0, 2, 3, -1, "0")] == [0, 2, None, None, None]
    assert (list(listed.domain), list(sized.domain)) == ([3, 1, "1"], [0, 1, 2])


@pytest.mark.parametrize(
    "column",
    [
        {"type": "category"},
        {"type": "category", "categories": []},
        {"type": "category", "categories": ["a"], "size": 1},
        {"type": "category", "categories": ["a", "a"]},
        {"type": "category", "categories": [True]},
        {"type": "category", "categories": [1.5]},
        {"type": "category", "categories": ["a" * 1001]},
        {"type": "category", "size": 0},
        {"type": "category", "size": 2**31 + 1},
        {"type": "category", "size": 3.0},
        {"type": "integer", "lower": 1, "upper": 0},
        {"type": "integer", "lower": 0},
        {"type": "integer", "lower": 0, "upper": 2**53},
        {"type": "integer", "lower": 0, "upper": 1.5},
        {"type": "integer", "lower": False, "upper": True},
        {"type": "real", "lower": 1, "upper": 1},
        {"type": "real", "lower": 0, "upper": float("inf")},
        {"type": "real", "lower": float("nan"), "upper": 1},
        {"type": "real", "lower": 0, "upper": 1e31},
        {"type": "real", "lower": 0, "upper": 1e-31},
        {"type": "text"},
        {"type": "boolean", "lower": 0},
        {},
    ],
)
def test_a_domain_that_is_not_one_is_refused(column: dict[str, Any]) -> None:
    """Every domain is closed, finite, ordered and of its type's own values."""
    with pytest.raises(ValidationError):
        Schema.model_validate(people(it=column))


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"visits": {"kind": "events", "key": "id", "columns": {}}},
        {"people": KEY | {"columns": {}}, "others": KEY | {"columns": {}}},
        {"People": KEY | {"columns": {}}},
        {"people": {"kind": "individuals", "key": "a b", "columns": {}}},
        people(**{"9": {"type": "boolean"}}),
        people(**{"a" * 64: {"type": "boolean"}}),
        people(**{"a\n": {"type": "boolean"}}),
        people(id={"type": "boolean"}),
        people(select={"type": "boolean"}),
        people(a={"type": "budget"}, b={"type": "budget"}),
        people(**{f"c{place}": {"type": "boolean"} for place in range(201)}),
        people() | {"visits": {"kind": "events", "key": "id", "columns": {"b": {"type": "budget"}}}},
        people(rows_capacity=5),
        people() | {"visits": VISITS | {"rows_per_individual": 0}},
        people() | {"visits": VISITS | {"rows_capacity": 0}},
        people() | {"visits": VISITS | {"rows_capacity": 2**40 + 1}},
        people() | {"visits": VISITS | {"rows_capacity": 5.0}},
        people() | {"visits": VISITS | {"rows_capacity": True}},
        people() | {"visits": VISITS | {"unknown_individuals": "ignore"}},
        people() | {"visits": VISITS | {"extra": 1}},
    ],
)
def test_tables_that_break_a_rule_are_refused(tables: dict[str, Any]) -> None:
    """One table of individuals, plain names, one budget column at most, and there only."""
    with pytest.raises(ValidationError):
        Schema.model_validate(tables)


def test_too_many_categories_are_better_numbered() -> None:
    """A list of categories has at most 2^20 entries; a size may be larger."""
    with pytest.raises(ValidationError, match="at most 1048576 items"):
        CategoryColumn.model_validate({"type": "category", "categories": list(range(2**20 + 1))})
