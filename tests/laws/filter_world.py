"""The datasets and queries of the filter law."""

from typing import Any

from tests.laws.reference import SHARES, SQUARES, frequent

DATASETS = ("north", "south")
RULES = {"north": "skip", "south": "drop"}


BUDGET_RHO = "2"
AREAS = 4
REDUCED = {"largest": "max", "length": "norm"}
ACCOUNTINGS: dict[str, Any] = {
    "gdp": "gdp",
    "zcdp": {"kind": "zcdp"},
    "zcdp simple": {"kind": "zcdp", "conversion": "simple"},
    "rdp 16.0": {"kind": "rdp", "order": 16},
    "rdp 32.0": {"kind": "rdp", "order": 32},
    "pure": {"kind": "pure"},
}
"""By the name that an entry has of each, a conversion apart."""


def registration(name: str, rule: str = "skip", accounting: str = "gdp") -> dict[str, Any]:
    """Ages 0 to 9, four areas, a limit of one's own, a budget of two rho: two queries at sigma 0.7 exhaust it."""
    return {
        "name": name,
        "guarantee": {"epsilon" if accounting == "pure" else "rho": BUDGET_RHO},
        "accounting": ACCOUNTINGS[accounting],
        "capacity": 1000,
        "rule": rule,
        "tables": {
            "people": {
                "kind": "individuals",
                "key": "person_id",
                "columns": {"age": {"type": "integer", "lower": 0, "upper": 9}, "limit_rho": {"type": "budget"}},
            },
            "visits": {
                "kind": "events",
                "key": "person_id",
                "rows_per_individual": 1000,
                "columns": {"area": {"type": "category", "size": AREAS}},
            },
        },
    }


def selecting(kind: str, number: int) -> dict[str, Any]:
    """The part of a query that its kind and number decide about: what it counts, and of whom."""
    match kind:
        case "tick":
            return {"select": [{"exhausted": {}}]}
        case "active":
            return {"select": [{"active": {"share": SHARES[number]}}]}
        case "older" | "clipped":
            return {"where": {"ge": [{"col": "age"}, number]}, "rule": "clip" if kind == "clipped" else "skip"}
        case "frequent":
            return {"where": frequent(number)}
        case "squares":
            return {"select": [SQUARES]}
        case "visits":
            return {"from": "visits", "where": {"eq": [{"col": "area"}, number]}}
    histogram = {"from": "visits", "select": [{"histogram": {"column": "area"}}]}
    return histogram | ({"reduce": REDUCED[kind]} if kind in REDUCED else {})
