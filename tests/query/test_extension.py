"""Extensions of a schema: what may be added, and that everything else is refused by its field."""

import copy
from typing import Any

import pytest

from service.query.schema import Schema, extension_errors

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "town": {"type": "category", "categories": ["A", "B"]},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "limit": {"type": "budget"},
        },
    },
    "buys": {
        "kind": "events",
        "key": "id",
        "rows_per_individual": 10,
        "rows_capacity": 500,
        "columns": {"item": {"type": "category", "size": 5}},
    },
}
TOWN, ITEM = "people.columns.town.categories", "buys.columns.item.size"


def changed(*changes: tuple[str, Any]) -> Schema:
    """The tables with some values, at dotted places, put in or (None) taken out."""
    tables = copy.deepcopy(TABLES)
    for place, value in changes:
        *path, last = place.split(".")
        at = tables
        for name in path:
            at = at[name]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return Schema.model_validate(tables)


def fields(schema: Schema, *, before: int = 100, after: int = 100) -> list[str]:
    """The fields in which the schema is no extension of TABLES."""
    errors = extension_errors(changed(), schema, capacity_old=before, capacity_new=after)
    return [error.field for error in errors]


@pytest.mark.parametrize(
    "change",
    [
        (TOWN, ["A", "B", "C"]),
        (ITEM, 6),
        ("people.columns.new", {"type": "boolean"}),
        ("buys.rows_capacity", 501),
        ("calls", {"kind": "events", "key": "id", "columns": {}}),
    ],
    ids=lambda change: change[0],
)
def test_what_may_be_added(change: tuple[str, Any]) -> None:
    """A category behind the others, a larger size, a column, room, a table."""
    assert fields(changed(change)) == []
    assert fields(changed(change), after=200) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("buys", None), "tables.buys"),
        (("people.columns.age", None), "tables.people.columns.age"),
        (("people.columns.age.upper", 130), "tables.people.columns.age"),
        (("people.columns.age", {"type": "boolean"}), "tables.people.columns.age"),
        ((TOWN, ["B", "A"]), "tables.people.columns.town"),
        ((TOWN, ["A"]), "tables.people.columns.town"),
        ((TOWN, ["C", "A", "B"]), "tables.people.columns.town"),
        (("people.columns.town", {"type": "category", "size": 9}), "tables.people.columns.town"),
        ((ITEM, 4), "tables.buys.columns.item"),
        (("buys.key", "who"), "tables.buys.key"),
        (("buys.rows_per_individual", 11), "tables.buys.rows_per_individual"),
        (("buys.unknown_individuals", "create"), "tables.buys.unknown_individuals"),
        (("buys.rows_capacity", 499), "tables.buys.rows_capacity"),
        (("people.columns.limit", None), "tables.people.columns.limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_may_not_change_is_named(change: tuple[str, Any], field: str) -> None:
    """Nothing is removed, narrowed, or given another meaning."""
    assert fields(changed(change)) == [field]


def test_a_budget_column_cannot_be_added_and_capacity_not_lowered() -> None:
    """Limits of their own would lower the floor that was promised in public."""
    old = changed(("people.columns.limit", None))
    errors = extension_errors(old, changed(), capacity_old=100, capacity_new=99)
    assert [error.field for error in errors] == ["capacity", "tables.people.columns.limit"]


def test_every_difference_is_named_at_once() -> None:
    """A curator corrects all of them before the next try."""
    assert fields(changed(("buys", None), (TOWN, ["B"])), after=1) == [
        "capacity",
        "tables.people.columns.town",
        "tables.buys",
    ]
