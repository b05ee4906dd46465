"""Fixed examples of queries over every node, the same in every run, and how the engine answers them."""

from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.laws.every_node import LEAVES, documents
from tests.laws.fraction_values import Unsure
from tests.laws.node_law import Evaluator, Outcome, answered, differences

Json = dict[str, Any]

FIXED = settings(
    max_examples=4, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
HALVES: list[Json] = [
    {"version": 1, "from": table, "select": [{"sum": {"column": name}}], "noise": {"rho": 1e-8}, **more}
    for table, name, more in (
        ("people", "spend", {}),
        ("visits", "cost", {}),
        ("visits", "cost", {"per_individual": {"rows": 2}, "where": {"lt": [{"col": "cost"}, 0]}}),
    )
]
"""Sums of values halfway between two steps of their grids."""


_APART: list[Json] = [
    {"linear": {"column": "amount", "weights": {"indices": [number], "values": [0.75]}}} for number in range(-3, 4)
]
BOUNDS: list[Json] = [
    {"version": 1, "from": "visits", "noise": {"sigma": 0.2}, "per_individual": {"rows": 3}, **asked}
    for asked in (
        {"select": _APART},
        {"select": [*_APART, {"sum": {"column": "amount"}}]},
        {"select": [{"count_individuals": {}}], "group_by": ["people.area"]},
        {"select": [{"count_individuals": {}}], "group_by": ["people.area", "online"]},
    )
]
"""Queries whose grid follows from how long a vector over one column, or by own columns, may be."""


@cache
def fixed() -> list[Json]:
    """The fixed examples: a few with each condition beside each type of value, and whatever else is drawn."""
    return (
        HALVES
        + BOUNDS
        + [document for number, leaf in enumerate(LEAVES) for document in drawn(documents(leaf), number)]
    )


def drawn(strategy: st.SearchStrategy[Json], number: int) -> list[Json]:
    """A few examples, always the same for a number."""
    found: list[Json] = []

    @seed(number)
    @FIXED
    @given(strategy)
    def collect(document: Json) -> None:
        found.append(document)

    collect()
    return found


@cache
def outcomes() -> list[Outcome]:
    """Those that are answered, as the engine answers them."""
    return [outcome for outcome in map(answered, fixed()) if outcome is not None]


def is_wrong(outcome: Outcome, evaluator: Evaluator) -> bool:
    """Tell whether the engine and a reference differ."""
    try:
        return any(True for _ in differences(outcome, evaluator))
    except Unsure:
        return False
