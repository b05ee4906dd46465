"""The outcome of each of 3,300 queries: its plan and its public cost, or its refusal, as a line of JSON.

A line holds the name of the dataset, the query, and what came of it. The datasets differ by accounting and monitor; the
names of a plan's facts are those of `service.query.plan.Plan`.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

from service.accounting.accountings import accounting_of
from service.accounting.monitor import monitor_of
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.rows import DatasetRecord
from service.query.cost import Speed, cost_of
from service.query.parse import query_of
from service.query.plan import Plan
from service.query.problems import QueryProblem
from service.query.stated import shown_of
from service.workflows.queries.submit import compiled
from tests.contracts.stores import dataset
from tests.golden.drawing import MONITORED, PURE, Json, drawn, drawn_composite
from tests.golden.net import Net
from tests.laws.node_world import BUDGET_UNITS, SCHEMA

COUNT: Final = 3_000
COMPOSITE_COUNT: Final = 300
CAPACITY: Final = 100_000
MONITOR: Final = {"rho": "0.001", "ticks": 1024, "share": 0.1}
ACCOUNTINGS: Final[dict[str, Any]] = {
    "gdp": "gdp",
    MONITORED: "gdp",
    "zcdp": {"kind": "zcdp", "conversion": "optimal"},
    "rdp": {"kind": "rdp", "order": 16.0, "conversion": "optimal"},
    PURE: {"kind": "pure"},
}
_USUAL: Final[dict[str, Any]] = {
    "clip_binds": False,
    "rows_kept": None,
    "reuse": True,
    "shortens": False,
    "has_one_norm": False,
    "bounds": [],
    "item_sigmas": [],
    "clips_squared": [],
    "room_units": None,
    "reduce": None,
    "estimated": [],
}
"""Facts that are left out where they are so."""


@cache
def record_of(name: str) -> DatasetRecord:
    """A dataset by its name."""
    accounting = accounting_of(ACCOUNTINGS[name])
    monitor = monitor_of(MONITOR, budget_units=BUDGET_UNITS) if name == MONITORED else None
    record = replace(dataset(), schema=SCHEMA, budget_units=BUDGET_UNITS, capacity=CAPACITY)
    return replace(record, accounting=accounting, monitor=monitor)


def line_of(name: str, document: object) -> str:
    """The query on the dataset, and what comes of it."""
    try:
        plan = compiled(query_of(document), record_of(name))
    except (QueryProblem, InvalidRequest) as problem:
        outcome: Json = {"refused": {error.field: error.message for error in problem.errors}}
    else:
        outcome = {"plan": facts_of(plan, record_of(name))}
    return json.dumps({"dataset": name, "query": document, **outcome}, ensure_ascii=False, separators=(",", ":"))


def facts_of(plan: Plan, record: DatasetRecord) -> Json:
    """The facts of a plan that are recorded, in an order of their own."""
    scale = plan.scale
    facts = json.loads(
        json.dumps(
            {
                "table": plan.rows.table,
                "dimension": plan.dimension,
                "grid_log2": scale.grid_log2,
                "clip_squared_steps": scale.charged_squared_steps,
                "clip_binds": scale.clip_binds,
                "l2_clip": scale.l2_charged,
                "sigma": scale.size,
                "sigma_steps": scale.law.size_steps,
                "worst_case_units": scale.worst_case_units,
                "query_hash": plan.query_hash,
                "rows_kept": plan.rows.rows_kept,
                "entries_of_row": plan.layout.entries_of_row,
                "reuse": plan.reuse,
                "shortens": plan.shortens,
                "has_one_norm": plan.has_one_norm,
                "bounds": scale.bounds,
                "item_sigmas": scale.sigmas,
                "clips_squared": scale.clips_squared,
                "room_units": plan.layout.items[0].room_units,
                "reduce": plan.reduce,
                "estimated": [item.stated() for item in plan.layout.estimated],
            }
        )
    )
    cost = asdict(cost_of(plan, record.schema.tables[plan.rows.table], capacity=record.capacity, speed=Speed()))
    return {
        **{name: fact for name, fact in facts.items() if name not in _USUAL or fact != _USUAL[name]},
        "canonical": plan.canonical.decode(),
        "labels": _digest(plan.answered.labels()),
        "axes": _digest(shown_of(plan).axes),
        "noise": {
            "sigma": plan.noise.sigma,
            "grid": plan.noise.grid,
            "sigma_steps": plan.scale.law.size_steps,
            "mechanism": plan.scale.law.word,
        },
        "cost": cost,
    }


def _digest(labels: object) -> str:
    """Some characters of a hash: labels of all coordinates are long."""
    return hashlib.sha256(json.dumps(labels, ensure_ascii=False).encode()).hexdigest()[:16]


def _drawn() -> Iterator[str]:
    """The lines of so many queries that are drawn anew, no two the same."""
    for of, length in ((drawn, COUNT), (drawn_composite, COMPOSITE_COUNT)):
        lines: dict[str, None] = {}
        numbers = count()
        while len(lines) < length:
            lines[line_of(*of(next(numbers)))] = None
        yield from lines


def _renewed(lines: Sequence[str]) -> Iterator[str]:
    """The lines of the same queries as they come out now."""
    for line in lines:
        kept = json.loads(line)
        yield line_of(kept["dataset"], kept["query"])


NET: Final = Net(file=Path(__file__).parent / "data" / "queries.jsonl", drawn=_drawn, renewed=_renewed)
