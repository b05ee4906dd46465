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


@cache
def fixed() -> list[Json]:
    """The fixed examples: a few with each condition beside each type of value, and whatever else is drawn."""
    return HALVES + [document for number, leaf in enumerate(LEAVES) for document in drawn(documents(leaf), number)]


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
    """Whether the engine and a reference differ."""
    try:
        return any(True for _ in differences(outcome, evaluator))
    except Unsure:
        return False
