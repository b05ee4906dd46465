"""A dataset with every type of column, in both tables, and people with values on both sides of every bound and edge."""

import io
import json
import random
from functools import cache
from typing import Any

import numpy as np

from service.engine.ingest.reader import read_rows
from service.engine.memory import DatasetMemory
from service.query.schema import Schema
from tests.digests import with_digests

Json = dict[str, Any]

TOWNS = ["Oslo", "Ærø", 'a"b']
TABLES: dict[str, Any] = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "town": {"type": "category", "categories": TOWNS},
            "grade": {"type": "category", "categories": [7, 1, "x"]},
            "area": {"type": "category", "size": 4},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "level": {"type": "integer", "lower": -2, "upper": 3},
            "spend": {"type": "real", "lower": 0, "upper": 500},
            "balance": {"type": "real", "lower": -0.7, "upper": 0.1},
            "member": {"type": "boolean"},
            "joined": {"type": "date", "lower": "2019-12-28", "upper": "2021-01-10"},
            "renewed": {"type": "date", "lower": "2020-02-27", "upper": "2020-03-02"},
            "seen": {"type": "datetime", "lower": "2026-10-24T21:30:00Z", "upper": "2026-10-26T02:00:00Z"},
            "left": {"type": "datetime", "lower": "2026-10-25T00:59:58Z", "upper": "2026-10-25T01:00:01Z"},
            "limit_rho": {"type": "budget"},
        },
    },
    "visits": {
        "kind": "events",
        "key": "person_id",
        "rows_per_individual": 5,
        "columns": {
            "town": {"type": "category", "categories": TOWNS},
            "item": {"type": "category", "size": 60},
            "amount": {"type": "integer", "lower": -3, "upper": 3},
            "cost": {"type": "real", "lower": -5, "upper": 5},
            "online": {"type": "boolean"},
            "day": {"type": "date", "lower": "2020-02-27", "upper": "2020-03-02"},
            "at": {"type": "datetime", "lower": "2026-10-25T00:59:58Z", "upper": "2026-10-25T01:00:01Z"},
        },
    },
}
HALVES = {"spend": [1 + 2.0**-bit for bit in range(7, 11)], "cost": [1 + 2.0**-bit for bit in range(14, 17)]}
"""Halfway between two steps of the coarsest grids of their sums."""
VALUES: dict[str, list[Any]] = {
    "town": [None, *TOWNS, "elsewhere"],
    "grade": [None, 7, 1, "x", 2],
    "area": [None, 0, 1, 2, 3, 4],
    "age": [None, -1, 0, 17, 18, 40, 119, 120, 121],
    "level": [None, -7, -2, -1, 0, 1, 2, 3, 9],
    "spend": [None, -1, 0, 0.1, 0.3, 13.5, 100, 499.99, 500, 1e300, *HALVES["spend"]],
    "balance": [None, -3, -0.7, -0.5, -0.1, 0, 0.0625, 0.05, 0.1, 2],
    "member": [None, False, True],
    "joined": [
        *(None, "2019-01-01", "2019-12-28", "2019-12-29", "2019-12-30", "2019-12-31", "2020-01-01", "2020-02-29"),
        *("2020-03-01", "2020-06-30", "2020-12-31", "2021-01-03", "2021-01-04", "2021-01-10", "2024-01-01"),
    ],
    "seen": [
        *(None, "2026-10-24T21:30:00Z", "2026-10-24T23:59:59Z", "2026-10-25T00:00:00Z", "2026-10-25T13:00:00+02:00"),
        *("2026-10-25T23:59:59Z", "2026-10-26T00:00:00Z", "2027-01-01T00:00:00Z"),
    ],
    "item": [None, 0, 1, 2, 17, 58, 59, 60],
    "amount": [None, -9, -3, -1, 0, 1, 2, 3, 4],
    "cost": [None, -6, -4.5, -0.125, 0, 0.1, 0.3, 4.5, 5.5, *HALVES["cost"], *(-each for each in HALVES["cost"])],
    "online": [None, False, True],
    "day": [None, "2020-02-27", "2020-02-28", "2020-02-29", "2020-03-01", "2020-03-02", "2020-03-09"],
    "at": [None, "1969-12-31T23:59:59Z", *(f"2026-10-25T{at}Z" for at in ("00:59:58", "00:59:59", "01:00:01"))],
}
BESIDE: dict[str, list[Any]] = {
    "age": [17.5, 40.0, 1000, -2],
    "level": [0.5, -3, 4],
    "spend": [0.1000001, -5, 501, 13],
    "balance": [-0.70001, 0.25],
    "joined": ["1900-02-28", "2020-02-01", "2400-02-29"],
    "seen": ["2026-10-25T02:00:00+02:00", "2026-10-25T12:00:00", "2030-01-01T00:00:00+00:00"],
    "amount": [2.5, -1.0],
    "cost": [-0.1, 7],
    "day": ["0001-01-01"],
    "at": ["2026-10-25T03:00:00+02:00", "2026-10-25T00:59:59", "2026-10-25T00:59:58.5Z", "2026-10-25 01:00:00.000001"],
}
VALUES |= {"renewed": VALUES["day"], "left": VALUES["at"]}
BESIDE |= {"renewed": BESIDE["day"], "left": BESIDE["at"]}
CUTS: dict[str, list[Json]] = {
    "age": [{"edges": [0, 18, 65]}, {"edges": [17.5, 40, 120]}, {"width": 17}, {"width": 2.5}],
    "level": [{"edges": [-2, 0, 0.5, 3]}, {"width": 2}],
    "spend": [{"edges": [0.1, 0.3, 100]}, {"edges": [0, 500]}, {"width": 0.5}, {"width": 100}],
    "balance": [{"edges": [-0.7, -0.1, 0.05, 0.1]}, {"width": 0.25}, {"width": 0.05}],
    "joined": [{"edges": ["2019-12-30", "2020-02-29", "2021-01-10"]}],
    "seen": [{"edges": ["2026-10-24T23:59:59+00:00", "2026-10-25T13:00:00+02:00", "2026-10-26T00:00:00"]}],
    "amount": [{"edges": [-3, -1, 3]}],
    "cost": [{"edges": [-4.5, 0, 0.1, 4.5]}, {"width": 1.5}],
    "day": [{"edges": ["2020-02-28", "2020-03-01"]}],
    "left": [{"edges": ["2026-10-25T00:59:58Z", "2026-10-25T00:59:59Z", "2026-10-25T01:00:00Z"]}],
    "at": [
        {"edges": ["2026-10-25T00:59:59Z", "2026-10-25T01:00:01Z"]},
        {"edges": ["2026-10-25T00:59:58.25Z", "2026-10-25T00:59:58.75Z", "2026-10-25T00:59:59.5Z"]},
    ],
}
"""Bins, beside values on both sides of each edge."""
COLUMNS: dict[str, Json] = {
    "people": {name: each for name, each in TABLES["people"]["columns"].items() if each["type"] != "budget"},
    "visits": TABLES["visits"]["columns"]
    | {f"people.{name}": each for name, each in TABLES["people"]["columns"].items() if each["type"] != "budget"},
}
"""The columns that a query from a table may mention."""
SCHEMA = Schema.model_validate(TABLES)
CAPACITY, BUDGET_UNITS = 2**20, 2**40
SLOTS = (*range(14), 65_535, 65_536)  # both sides of the edge of a page
LEFT = {slot: (slot * 3 % 5) * 2**38 for slot in SLOTS}
"""Units that the individuals have left: in quarters of the budget."""
Crowd = dict[int, tuple[Json, list[Json]]]
"""A record and its visits, as uploaded, by slot."""


@cache
def crowd() -> Crowd:
    """A few people: one of NULLs alone, as an upload of events makes them, one without visits."""
    random_ = random.Random(7)
    people = {slot: (_row(random_, "people"), [_row(random_, "visits") for _ in range(slot % 6)]) for slot in SLOTS}
    return people | {3: (dict.fromkeys(COLUMNS["people"]), people[3][1])}


def _row(random_: random.Random, table: str) -> Json:
    return {name: random_.choice(VALUES[name]) for name in TABLES[table]["columns"] if name in VALUES}


@cache
def memory_of_crowd() -> DatasetMemory:
    """The crowd, uploaded."""
    memory, people = DatasetMemory(SCHEMA), crowd()
    slots, limits = (np.array(list(each), dtype=np.int64) for each in (people, (LEFT[slot] for slot in people)))
    memory.add_individuals(slots, with_digests(codes_of("people", [row for row, _ in people.values()]), slots), limits)
    owners = [slot for slot, (_, visits) in people.items() for _ in visits]
    visits = [row for _, rows in people.values() for row in rows]
    memory.add_events("visits", np.array(owners, dtype=np.int64), codes_of("visits", visits))
    return memory


def codes_of(table: str, rows: list[Json]) -> dict[str, Any]:
    """Rows of a table as an upload codes them, by column."""
    blank = dict.fromkeys(TABLES[table]["columns"])
    lines = "\n".join(json.dumps({"person_id": f"{number}"} | blank | row) for number, row in enumerate(rows))
    body = io.BytesIO(lines.encode())
    return dict(read_rows(body, "application/x-ndjson", SCHEMA.tables[table], budget_units=BUDGET_UNITS).codes)
