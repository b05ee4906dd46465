"""The datasets and queries of the filter law."""

from typing import Any

DATASETS = ("north", "south")
RULES = {"north": "skip", "south": "drop"}


BUDGET_RHO = "2"


AREAS = 4


def registration(name: str, rule: str = "skip") -> dict[str, Any]:
    """Ages 0 to 9, four areas, a limit of one's own, a budget of two rho: two queries at sigma 0.7 exhaust it."""
    return {
        "name": name,
        "guarantee": {"rho": BUDGET_RHO},
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
