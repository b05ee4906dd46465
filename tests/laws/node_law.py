"""A query from the Python client's builder to the engine's integers, beside its evaluation in fractions."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import rfc8785

from service.engine.evaluate import contributions
from service.query.canonical import canonical_bytes
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from sparing import Client
from sparing._builder import DatasetQueries
from tests.core.contributions import as_list, refuse_unsound
from tests.laws.builder_program import built
from tests.laws.fraction_evaluator import SHARE_LEFT, FractionEvaluator, Steps
from tests.laws.fraction_values import Near, Row
from tests.laws.node_world import BUDGET_UNITS, CAPACITY, LEFT, SCHEMA, TABLES, crowd, memory_of_crowd

Json = dict[str, Any]
Vector = dict[int, int]
Evaluator = Callable[[Json, Json], FractionEvaluator]

REFUSALS = (
    "is always zero within the declared bounds",
    "would be lost in rounding beside the rest of select",
    "adds up to numbers too large for exact sums",
    "must give a sigma of at",
)
"""The page's words on queries that no grid fits; nothing else may be refused here."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A query that was answered: its vectors by slot, in grid steps, and their sum."""

    document: Json
    plan: Plan
    vectors: dict[int, Vector]
    total: list[int]


@cache
def dataset() -> DatasetQueries:
    """A dataset of a client that sends nothing."""
    return Client(base_url="https://sparing.test", api_key="none", environ={}).dataset("shop")


def sent(document: Json) -> bytes:
    """The document as the client's builder writes it."""
    return json.dumps(built(document, dataset()).json, ensure_ascii=False, sort_keys=True).encode()


def answered(document: Json) -> Outcome | None:
    """The query asked, or None if it is refused for a reason that the page gives."""
    try:
        plan = compile_query(parse_query(sent(document)), SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    except QueryProblem as problem:
        if any(reason in str(problem) for reason in REFUSALS):
            return None
        raise
    vectors: dict[int, Vector] = {}
    total = np.zeros(plan.dimension, dtype=np.int64)
    for block in map(as_list, contributions(plan, memory_of_crowd())):
        refuse_unsound(block)
        block.add_to(total, np.ones(block.touched.size, dtype=np.bool_))
        owners = np.arange(block.touched.size) if block.owners is None else block.owners
        for slot, place, value in zip(
            *(each.tolist() for each in (block.touched.slots()[owners], block.coordinates, block.values)), strict=True
        ):
            vector = vectors.setdefault(slot, {})
            vector[place] = vector.get(place, 0) + value
    return Outcome(document=document, plan=plan, vectors=vectors, total=total.tolist())


def differences(outcome: Outcome, evaluator: Evaluator = FractionEvaluator) -> Iterator[str]:
    """The differences of the engine and the reference. Raises Unsure where the page leaves a comparison open."""
    reference = evaluator(outcome.document, TABLES)
    plan, grid = outcome.plan, Fraction(2) ** outcome.plan.scale.grid_log2
    if (plan.dimension, grid) != (reference.dimension, reference.grid(plan.scale.size)):
        yield f"{plan.dimension} numbers on a grid of {grid}"
    square, binds = reference.clip_squared()
    wanted = {slot: reference.vector(rows, grid) for slot, rows in stored(evaluator, reference.table)}
    is_cut = False
    for slot, vector in wanted.items():
        found = outcome.vectors.get(slot, {})
        if binds and sum(high**2 for _, high in map(farthest, vector.values())) > square / grid**2:
            is_cut = True
            if not is_scaled(found, vector, square / grid**2):
                yield f"{slot}: {found} is not {vector} within the clip"
        elif not (found.keys() <= vector.keys() and all(within(found.get(at, 0), vector[at]) for at in vector)):
            yield f"{slot}: {found} is not {vector}"
    if not outcome.vectors.keys() <= wanted.keys():
        yield "a slot in which there is no individual"
    if not is_cut:
        yield from total_differences(outcome.total, list(wanted.values()))


@cache
def stored(evaluator: Evaluator, table: str) -> list[tuple[int, list[Row]]]:
    """The rows of each individual in a table, those of events with the individual's own columns."""
    reference = evaluator({"from": table}, TABLES)
    if table == "people":
        left = {slot: {SHARE_LEFT: Near(Fraction(units, BUDGET_UNITS))} for slot, units in LEFT.items()}
        return [(slot, [reference.stored(record) | left[slot]]) for slot, (record, _) in crowd().items()]
    own = {slot: reference.stored(record, "people.") for slot, (record, _) in crowd().items()}
    return [(slot, [reference.stored(visit) | own[slot] for visit in visits]) for slot, (_, visits) in crowd().items()]


def within(value: int, steps: Steps) -> bool:
    """Tell whether a number is one that the page allows."""
    return steps[0] <= value <= steps[1]


def farthest(steps: Steps) -> tuple[int, int]:
    """The smaller and the larger absolute value."""
    low, high = sorted(map(abs, steps))
    return low, high


def is_scaled(found: Vector, vector: dict[int, Steps], square: Fraction) -> bool:
    """No longer than the clip, and each number the exact one scaled and truncated toward zero, or a step less."""
    norm_squared = sum(value**2 for value in found.values())
    if norm_squared > square or not found.keys() <= vector.keys():
        return False
    if any(low != high for low, high in vector.values()):
        return True  # a length that the page leaves open
    shrunk = square / sum(value**2 for value, _ in vector.values())
    return all(
        found.get(at, 0) * value >= 0
        and found.get(at, 0) ** 2 <= value**2 * shrunk * (1 + Fraction(1, 2**44))
        and (abs(found.get(at, 0)) + 2) ** 2 > value**2 * shrunk
        for at, (value, _) in vector.items()
    )


def total_differences(total: list[int], vectors: list[dict[int, Steps]]) -> Iterator[str]:
    """The places in which the sum over all individuals is not that of their vectors."""
    for place, value in enumerate(total):
        parts = [vector[place] for vector in vectors if place in vector]
        if not within(value, (sum(low for low, _ in parts), sum(high for _, high in parts))):
            yield f"number {place} is {value}, not {parts}"


def canonical_of(document: Json) -> bytes:
    """RFC 8785 with the defaults written out and `from` named."""
    defaults: Json = {"from": "people", "group_by": [], "rule": "skip", "where": None}
    per_individual = {"l2_clip": None} | document.get("per_individual", {})
    asked = {name: each for name, each in document.items() if name != "reuse"}
    return rfc8785.dumps(defaults | asked | {"per_individual": per_individual})


def check_canonical(outcome: Outcome) -> None:
    """The canonical form is the document's, and a query that is its own canonical form."""
    plan = outcome.plan
    assert plan.canonical == canonical_of(outcome.document)
    assert plan.query_hash == hashlib.sha256(plan.canonical).hexdigest()
    again = parse_query(plan.canonical)
    assert canonical_bytes(again) == plan.canonical
    compiled = compile_query(again, SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    assert (compiled.canonical, compiled.query_hash) == (plan.canonical, plan.query_hash)
