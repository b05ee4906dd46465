"""Small datasets in awkward slots, built as the service builds them, and the queries that can be asked about them."""

import io
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from service.core.release import Contributions
from service.engine.evaluate import contributions
from service.engine.ingest import Rows
from service.engine.ingest.reader import read_rows
from service.engine.memory import DatasetMemory
from service.query.dataset_terms import Pricing
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.problems import QueryProblem
from service.query.schema import Schema
from tests.core.contributions import as_list, refuse_unsound
from tests.digests import with_digests
from tests.query.samples import matrix

CAPACITY = 2**20
BUDGET_UNITS = 2**40
BUDGET = 2**40
ROWS_MAX = 6

TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "country": {"type": "category", "categories": ["NO", "SE", "DK"]},
            "area": {"type": "category", "size": 5},
            "level": {"type": "integer", "lower": -2, "upper": 3},
            "spend": {"type": "real", "lower": 0, "upper": 500},
            "balance": {"type": "real", "lower": -0.7, "upper": 0.1},
            "member": {"type": "boolean"},
            "born": {"type": "date", "lower": "1999-12-30", "upper": "2000-01-02"},
            "sketch": {"type": "vector", "length": 3, "lower": -4, "upper": 250, "step_log2": -6},
        },
    },
    "visits": {
        "kind": "events",
        "key": "person_id",
        "rows_per_individual": ROWS_MAX,
        "columns": {
            "item": {"type": "category", "size": 1000},
            "amount": {"type": "integer", "lower": -3, "upper": 3},
            "cost": {"type": "real", "lower": -5, "upper": 5},
            "online": {"type": "boolean"},
            "at": {"type": "datetime", "lower": "2026-10-25T00:59:58Z", "upper": "2026-10-25T01:00:01Z"},
        },
    },
}
SCHEMA = Schema.model_validate(TABLES)
SLOTS = (0, 1, 7, 65_535, 65_536, 131_071)  # both sides of the edges of pages

VALUES: dict[str, dict[str, list[Any]]] = {
    "people": {
        "country": [None, "NO", "SE", "DK", "XX"],
        "area": [None, 0, 1, 4, 5, -1],
        "level": [None, -7, -2, -1, 0, 1, 3, 9],
        "spend": [None, -1, 0, 0.25, 13.5, 499.75, 500, 1e300],
        "balance": [None, -3, -0.7, -0.5, 0, 0.0625, 0.1, 2],
        "member": [None, False, True],
        "born": [None, "1900-02-28", "1999-12-30", "1999-12-31", "2000-01-01", "2000-01-02", "2400-02-29"],
        "sketch": [None, [0, 0, 0], [-4, 250, 7], [-5, 300, 1], [250, 250, 250]],
    },
    "visits": {
        "item": [None, 0, 1, 2, 998, 999, 1000],
        "amount": [None, -9, -3, -1, 0, 1, 2, 3, 4],
        "cost": [None, -6, -4.5, -0.125, 0, 0.125, 4.5, 5.5],
        "online": [None, False, True],
        "at": [
            None,
            "1969-12-31T23:59:59Z",
            *(f"2026-10-25T{at}Z" for at in ("00:59:58", "00:59:59", "01:00:01")),
            "2027-01-01T00:00:00Z",
        ],
    },
}
_ORDERED = {"level", "spend", "balance", "amount", "cost", "born", "at"}
_LITERALS: dict[str, list[Any]] = {
    "country": ["NO", "DK"],
    "area": [0, 3, 4],
    "level": [-3, -2, 0, 2, 3, 4],
    "spend": [-1, 0, 13.5, 100, 500, 501],
    "balance": [-0.5, 0, 0.0625],
    "member": [False, True],
    "born": ["0001-01-01", "1999-12-30", "1999-12-31", "2000-01-02", "9999-12-31"],
    "at": ["1900-01-01T00:00:00Z", "2026-10-25T00:59:59Z", "2026-10-25T01:00:01Z", "2026-10-26T00:00:00Z"],
    "item": [0, 1, 2, 5, 7, 11, 998, 999],
    "amount": [-3, 0, 1, 4],
    "cost": [-4.5, 0, 4.5],
    "online": [False, True],
}
_LEVEL, _AMOUNT, _COST = {"col": "level"}, {"col": "amount"}, {"col": "cost"}
_OWN = {"col": "people.level"}
_CALCULATED: dict[str, list[dict[str, Any]]] = {
    "people": [
        {"add": [_LEVEL, 2]},
        {"mul": [_LEVEL, {"sub": [1, _LEVEL]}]},
        {"clip": [{"abs": {"mul": [_LEVEL, -3]}}, 2, 7]},
        {"sub": [{"col": "born"}, {"col": "born"}]},
        {"add": [{"col": "spend"}, 0.5]},
    ],
    "visits": [
        _OWN,
        {"add": [_AMOUNT, _OWN]},
        {"abs": {"sub": [_COST, _AMOUNT]}},
        {"mul": [{"add": [_AMOUNT, _AMOUNT]}, _OWN]},
        {"clip": [_COST, -1, 1.5]},
        {"sub": [{"col": "at"}, {"col": "at"}]},
    ],
}
_PAIRS: dict[str, list[tuple[dict[str, Any], dict[str, Any], bool]]] = {
    "people": [
        (_LEVEL, {"mul": [_LEVEL, _LEVEL]}, True),
        ({"col": "spend"}, {"add": [_LEVEL, 10]}, True),
        ({"col": "country"}, {"col": "country"}, False),
    ],
    "visits": [
        (_AMOUNT, _OWN, True),
        (_COST, _AMOUNT, True),
        ({"col": "at"}, {"col": "at"}, True),
        ({"col": "online"}, {"col": "people.member"}, False),
    ],
}
_OWN_NAMES = ["people.country", "people.level", "people.member", "people.born", "people.spend"]
_GROUPS: dict[str, list[Any]] = {
    "people": [
        *("country", "area", "level", "member", "born"),
        {"bin": {"column": "level", "edges": [-1, 0, 0.5, 2]}},
        {"bin": {"column": "spend", "width": 200}},
        {"bin": {"column": "balance", "edges": [-0.5, 0.0625]}},
        {"bin": {"column": "born", "edges": ["1999-12-31", "2000-01-02"]}},
        *({"bucket": {"column": "born", "by": by}} for by in ("day", "week", "month", "quarter", "year", "weekday")),
    ],
    "visits": [
        *("amount", "online", "at", "people.country", "people.member"),
        {"bin": {"column": "cost", "edges": [-4.5, 0, 0.125, 5]}},
        {"bin": {"column": "people.spend", "width": 13.5}},
        *({"bucket": {"column": "at", "by": by}} for by in ("day", "month", "hour", "weekday")),
        {"bucket": {"column": "people.born", "by": "year"}},
    ],
}
_LISTED: dict[str, list[tuple[str, list[Any]]]] = {
    "people": [("country", ["DK", "NO"]), ("level", [3, -2, 0]), ("born", ["2000-01-02", "1999-12-30"])],
    "visits": [("item", [999, 0, *range(5, 900)]), ("amount", [1]), ("people.member", [True, False])],
}


_COUNTS: list[dict[str, Any]] = [{"count": {}}, {"count_individuals": {}}]
_ITEMS: dict[str, list[dict[str, Any]]] = {
    "people": _COUNTS
    + [{"sum": {"column": name}} for name in ("level", "spend", "balance")]
    + [{"sum": {"of": value}} for value in _CALCULATED["people"]]
    + [
        {
            "linear": {
                "column": "country",
                "weights": [{"indices": ["DK"], "values": [7]}, {"indices": ["SE", "NO"], "values": [-1.5, 0]}],
            }
        },
        {"linear": {"column": "level", "weights": {"indices": [-2, 3], "values": [1, 1]}}},
        matrix("level", {-2: 1, 3: -2}, {}, {0: 4}, {3: 1, 1: 0, -2: 7}),
        matrix("born", {"1999-12-31": 0.5, "2000-01-02": -1.5}, {"2000-01-02": 2}),
        matrix("area", {4: 3}, {1: 5}),
        matrix("country", {"SE": 2, "DK": -1}),
    ]
    + [{"histogram": {"column": name}} for name in ("area", "member", "born")]
    + [{"histogram": {"column": name, "values": values}} for name, values in _LISTED["people"]],
    "visits": _COUNTS
    + [{"sum": {"column": name}} for name in ("amount", "cost", "people.level")]
    + [{"sum": {"of": value}} for value in _CALCULATED["visits"]]
    + [{"histogram": {"column": "people.area"}}]
    + [
        {"linear": {"column": "item", "weights": {"indices": [998, 0, 2], "values": [-3, 2, 5]}}},
        {"linear": {"column": "item", "weights": {"indices": [1, 999], "values": [0.5, -0.25]}}},
    ]
    + [{"histogram": {"column": "item"}}]
    + [
        matrix("item", {998: 1, 0: 2}, {0: -2, 999: 1}, {1: 3}),
        matrix("item", *({item: item % 3 - 0.75} for item in range(0, 1000, 2))),
        matrix("people.country", {"NO": 1, "DK": 1}, {"DK": -1}),
        matrix("amount", {-3: 1.25}, {0: 1, 1: 1}, {1: -1, 2: 2.5}),
    ]
    + [{"histogram": {"column": name, "values": values}} for name, values in _LISTED["visits"]],
}

ACTIVE: list[dict[str, Any]] = [{"active": {"share": share}} for share in (0.001, 1 / 3, 0.75, 1)]
_FEATURES: list[dict[str, Any]] = [
    {"of": {"mul": [_LEVEL, 0.5]}, "fill": 0},
    {"of": {"mul": [{"sub": [{"col": "spend"}, 250]}, 0.005]}},
    {"of": {"col": "balance"}, "fill": -0.25},
    {"of": {"col": "member"}, "fill": 0},
    {"one_hot": "country"},
    {"one_hot": {"bin": {"column": "spend", "edges": [0, 13.5, 500]}}},
]
PRODUCTS: list[dict[str, Any]] = [
    {"moments": {"features": _FEATURES, "intercept": True}},
    {"moments": {"features": [{"of": {"mul": [{"col": "spend"}, 0.002]}}]}},
    {
        "gradient": {
            "loss": "logistic",
            "target": {"col": "member"},
            "features": [*_FEATURES[:3], _FEATURES[4]],
            "intercept": True,
            "parameters": [0.7, -3, 1 / 3, 1e-4, 0, 2, -0.5],
        }
    },
    {
        "gradient": {
            "loss": "softmax",
            "target": "country",
            "features": _FEATURES[:4],
            "parameters": [[0.1, 2, -70, 0], [0, -0.2, 55, 1], [1, 1, 1, 1e3]],
        }
    },
    {
        "gradient": {
            "loss": "softmax",
            "target": {"bin": {"column": "spend", "width": 200}},
            "features": _FEATURES[3:],
            "parameters": [[n - 1, 0.3 * n, 1, -n, 0.5, -1.5] for n in range(3)],
        }
    },
    {
        "gradient": {
            "loss": "squared",
            "target": {"add": [{"col": "balance"}, {"mul": [_LEVEL, 0.1]}]},
            "features": _FEATURES,
            "parameters": [0.1, -0.2, 0.3, -0.4, 0.5, 0, 0, -0.1, 0.25],
            "residual_clip": 0.75,
        }
    },
    {"moments": {"features": [_FEATURES[0], {"vector": "sketch"}, _FEATURES[4]], "intercept": True}},
    {
        "gradient": {
            "loss": "softmax",
            "target": "country",
            "features": [{"one_hot": "member"}, {"vector": "sketch"}],
            "intercept": True,
            "parameters": [[0.1, 2, -70, 0, 1, 0.25], [0, -0.2, 55, 1, -2, 3], [1, 1, 1, 1e3, 0, 0]],
        }
    },
]
LEFT = (0, 2**30, 2**30 + 2**27, BUDGET // 3, BUDGET // 3 + 1, BUDGET - 2**38, BUDGET - 1, BUDGET)
"""Units that are left, on both sides of the shares in ACTIVE."""

Row = dict[str, Any]
PERSON: Row = {"country": "NO", "area": 1, "level": 2, "spend": 10, "balance": 0, "member": True, "born": None}
VISIT: Row = {"item": 5, "amount": 1, "cost": 2.5, "online": True, "at": None}
Vector = tuple[int, dict[int, int]]
"""The squared norm, and {coordinate: value}, in grid steps."""


def rows(table: str) -> st.SearchStrategy[Row]:
    """A row as uploaded: in and out of its domain, and NULL."""
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES[table].items()})


def people() -> st.SearchStrategy[dict[int, Row]]:
    """A record for each of a few slots."""
    return st.dictionaries(st.sampled_from(SLOTS), rows("people"), min_size=1)


def limits() -> st.SearchStrategy[dict[int, int]]:
    """The units of a few slots; the others have BUDGET."""
    return st.dictionaries(st.sampled_from(SLOTS), st.sampled_from(LEFT))


def visits(slots: Iterable[int]) -> st.SearchStrategy[list[tuple[int, Row]]]:
    """Events of the people in `slots`, in any order, at most ROWS_MAX each."""
    event = st.tuples(st.sampled_from(sorted(slots)), rows("visits"))
    return st.lists(event, max_size=20).map(_at_most_rows_max)


def queries(table: str) -> st.SearchStrategy[dict[str, Any]]:
    """Queries of all kinds; now and then one that no grid fits, which only compiling finds out."""
    optional = {
        "where": _conditions(table),
        "group_by": st.lists(st.sampled_from(_GROUPS[table]), unique_by=group_name, max_size=2),
        "per_individual": st.fixed_dictionaries(
            {},
            optional={
                "l2_clip": st.sampled_from([0.01, 0.5, 1.0, 2.5, 400.0, 1e6]),
                **({"rows": st.sampled_from([1, 2, 5, ROWS_MAX, 99])} if table == "visits" else {}),
            },
        ),
    }
    several = st.lists(st.sampled_from(_ITEMS[table]), min_size=1, max_size=3, unique_by=str)
    alone = st.sampled_from(ACTIVE).map(lambda item: [item])
    rarely = 7 if table == "people" else None
    return st.builds(
        lambda select, rest: {"version": 1, "from": table, "select": select, "noise": {"sigma": 30.0}} | rest,
        st.integers(0, 7).flatmap(lambda number: alone if number == rarely else several),
        st.fixed_dictionaries({}, optional=optional),
    )


def planned(query: dict[str, Any], *, pricing: Pricing | None = None) -> Plan | None:
    """The plan, or None where the query room refuses."""
    try:
        return compile_query(
            parse_query(json.dumps(query).encode()),
            SCHEMA,
            capacity=CAPACITY,
            budget_units=BUDGET_UNITS,
            pricing=pricing,
        )
    except QueryProblem:
        return None


def plan_of(query: dict[str, Any]) -> Plan:
    """The plan of a query. Raises ValueError where the query room refuses."""
    plan = planned(query)
    if plan is None:
        raise ValueError(query)
    return plan


def assumed_plan(query: dict[str, Any]) -> Plan:
    """The plan of a drawn query; an example that has none is passed over."""
    plan = planned(query)
    return reject() if plan is None else plan


def query_of(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A query of these items, or a count."""
    return {"version": 1, "select": list(items) or [{"count": {}}], "noise": {"sigma": 30.0}} | more


def of_visits(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A query of events."""
    return query_of(*items, **{"from": "visits"} | more)


def uploaded(table: str, slots: Iterable[int], table_rows: Iterable[Row]) -> Rows:
    """The rows as the service reads them off the wire."""
    blank = dict.fromkeys(TABLES[table]["columns"])
    lines = [json.dumps({"person_id": f"{slot}"} | blank | row) for slot, row in zip(slots, table_rows, strict=True)]
    body = io.BytesIO("\n".join(lines).encode())
    return read_rows(body, "application/x-ndjson", SCHEMA.tables[table], budget_units=BUDGET)


def memory_of(
    records: dict[int, Row],
    events: Iterable[list[tuple[int, Row]]] = (),
    limits: Mapping[int, int] = MappingProxyType({}),
    keys: Mapping[int, str] = MappingProxyType({}),
) -> DatasetMemory:
    """A dataset with the given records by slot, and the events appended upload by upload.

    The limit of a slot is BUDGET, but for those in `limits`; the key of an individual is its slot, but for `keys`.
    """
    memory = DatasetMemory(SCHEMA)
    slots = np.array(list(records), dtype=np.int64)
    units = np.array([limits.get(slot, BUDGET) for slot in records], dtype=np.int64)
    codes = uploaded("people", records, records.values()).codes
    memory.add_individuals(slots, with_digests(codes, [keys.get(slot, slot) for slot in records]), units)
    for batch in events:
        codes = uploaded("visits", [slot for slot, _ in batch], [row for _, row in batch]).codes
        memory.add_events("visits", np.array([slot for slot, _ in batch], dtype=np.int64), codes)
    return memory


def vectors(plan: Plan, memory: DatasetMemory) -> dict[int, Vector]:
    """Every individual's squared norm and vector by slot, as the engine gives them, with the core's own check."""
    found: dict[int, Vector] = {}
    for block in map(as_list, contributions(plan, memory)):
        refuse_unsound(block)
        found |= _vectors_of(block)
    return found


def _vectors_of(block: Contributions) -> dict[int, Vector]:
    entries: list[dict[int, int]] = [{} for _ in range(block.touched.size)]
    owners = range(block.touched.size) if block.owners is None else block.owners.tolist()
    for owner, coordinate, value in zip(owners, block.coordinates.tolist(), block.values.tolist(), strict=True):
        assert value != 0
        entries[owner][coordinate] = entries[owner].get(coordinate, 0) + value  # a tally lists row by row
    return dict(
        zip(block.touched.slots().tolist(), zip(block.norms_squared.tolist(), entries, strict=True), strict=True)
    )


def _at_most_rows_max(events: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    counts: dict[int, int] = {}
    kept = []
    for slot, row in events:
        counts[slot] = counts.get(slot, 0) + 1
        if counts[slot] <= ROWS_MAX:
            kept.append((slot, row))
    return kept


def group_name(key: Any) -> str:
    """The name in labels."""
    if isinstance(key, str):
        return key
    ((_, body),) = key.items()
    return str(body["column"])


def _conditions(table: str) -> st.SearchStrategy[dict[str, Any]]:
    names = sorted(_LITERALS.keys() & VALUES[table].keys()) + (_OWN_NAMES if table == "visits" else [])
    return st.recursive(
        st.one_of(st.sampled_from(names).flatmap(_leaves), _of_values(table)),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
            inner.map(lambda part: {"not": part}),
        ),
        max_leaves=4,
    )


def _of_values(table: str) -> st.SearchStrategy[dict[str, Any]]:
    """Calculated values beside literals, and two values of a row beside each other."""
    signs = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    calculated = st.sampled_from(_CALCULATED[table])
    numbers = st.sampled_from([-3, 0, 1, 2.5, 6])
    return st.one_of(
        st.builds(lambda sign, value, number: {sign: [value, number]}, signs, calculated, numbers),
        st.builds(lambda value, low, high: {"between": [value, low, high]}, calculated, numbers, numbers),
        calculated.map(lambda value: {"is_null": value}),
        st.builds(lambda value, listed: {"in": [value, listed]}, calculated, st.lists(numbers, min_size=1, max_size=3)),
        st.builds(
            lambda sign, pair: {sign if pair[2] or sign in {"eq", "ne"} else "eq": [pair[0], pair[1]]},
            signs,
            st.sampled_from(_PAIRS[table]),
        ),
    )


def _leaves(column: str) -> st.SearchStrategy[dict[str, Any]]:
    kind = column.removeprefix("people.")
    operators = ["eq", "ne", *(["lt", "le", "gt", "ge"] if kind in _ORDERED else [])]
    literals = st.sampled_from(_LITERALS[kind])
    comparison = st.builds(
        lambda operator, literal: {operator: [{"col": column}, literal]}, st.sampled_from(operators), literals
    )
    listed = st.lists(literals, min_size=1, max_size=5).map(lambda listed: {"in": [{"col": column}, listed]})
    between = st.builds(lambda low, high: {"between": [{"col": column}, low, high]}, literals, literals)
    null = st.just({"is_null": {"col": column}})
    return st.one_of(comparison, listed, null, *([between] if kind in _ORDERED else []))
