"""Plans of any document of the language, in batches that exhaust some people."""

from typing import Any

from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from tests.laws.node_law import REFUSALS, answered, sent
from tests.laws.node_world import BUDGET_UNITS, CAPACITY, SCHEMA

Json = dict[str, Any]
FUNCTIONS = ("max", "norm")


def planned(document: Json, rule: str = "skip") -> Plan | None:
    """The plan of a document under a rule; None where it is refused for a reason that the page gives.

    The rule may be a function too, `max` or `norm`: the sum of the first item is reduced by it.
    """
    outcome = answered(document)
    if outcome is None or rule == "skip":
        return None if outcome is None else outcome.plan
    if rule in FUNCTIONS:
        return _reduced(document, rule)
    query = parse_query(sent(document).replace(b"{", b'{"rule":"clip",', 1))
    try:
        return compile_query(query, SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    except QueryProblem as problem:
        if any(reason in str(problem) for reason in REFUSALS):
            return None
        raise


def _reduced(document: Json, function: str) -> Plan | None:
    """The plan of the query with a reduction; None if it is refused: most queries of one item have one coordinate."""
    query = parse_query(sent({**document, "select": document["select"][:1], "reduce": function}))
    try:
        return compile_query(query, SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    except QueryProblem:
        return None


def batch_of(plans: list[Plan]) -> list[Plan]:
    """The plans, the first of them once more: by then it has exhausted some people."""
    return [*plans, plans[0]]
