"""The cost of exactness: a count through the engine and the core against bare numpy on the same million people.

    python -m loadtests.bench_evaluate

The two run in turn, so that a busy machine slows both, and the ratio of the medians is the result. The bare evaluation
has no charges, limits, NULLs or individuals: it is a floor, not a peer. The promised ratio is to the same predicate and
sum on int64 columns. Two harder ratios are printed too: to columns in the smallest dtypes that numpy has for them, and
to a sum by `count_nonzero`. The accounts alone have sixteen times the bytes of those columns.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadtests.in_process import asked, medians_ms
from service.arrays import Codes
from service.core.charge import LIMIT_UNITS_MAX
from service.core.release import Release
from service.engine.memory import DatasetMemory
from service.query.columns import coding_of
from service.query.schema import Schema
from tests.digests import with_digests

PEOPLE = 1_000_000
EVENTS = 5_000_000
ITEMS = 100_000
DISTRICTS = 20
ROUNDS = 60
RATIO_MAX = 5.0
"""How many times the bare evaluation a count of a segment (two columns, 3 % of people) may cost at sigma 20."""

_SCHEMA = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "district": {"type": "integer", "lower": 0, "upper": DISTRICTS - 1},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "spend": {"type": "real", "lower": 0, "upper": 500},
        },
    },
    "visits": {"kind": "events", "key": "person_id", "columns": {"item": {"type": "category", "size": ITEMS}}},
}
_OLD = {"ge": [{"col": "age"}, 40]}
_WHERES = {  # by the share of people they select: 3, 33 and 64 %
    "few": {"and": [_OLD, {"eq": [{"col": "district"}, 3]}]},
    "some": {"and": [_OLD, {"lt": [{"col": "district"}, 10]}]},
    "most": {"and": [_OLD, {"ne": [{"col": "district"}, 3]}]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Two copies of the same people: in the engine's memory, and as bare columns (n,)."""

    memory: DatasetMemory
    age: NDArray[np.uint8]
    district: NDArray[np.uint8]
    spend: NDArray[np.float64]
    item: NDArray[np.uint32]  # of events


def run() -> dict[str, float]:
    """Medians in milliseconds (`*_ms`) and their ratios (`*_ratio*`)."""
    people = make_people()
    return _counts(people) | _others(people)


def main() -> None:
    """Print the figures; exit with 1 when the promised ratio is exceeded."""
    figures = run()
    print(json.dumps(figures, indent=2))
    if max(figures[f"count_{name}_ratio_to_int64"] for name in _WHERES) > RATIO_MAX:
        raise SystemExit(1)


def make_people() -> People:
    """A million people and five million events, the same in every run."""
    random = np.random.default_rng(2021)
    schema = Schema.model_validate(_SCHEMA)
    memory = DatasetMemory(schema)
    age = random.integers(0, 121, PEOPLE).astype(np.uint8)
    district = random.integers(0, DISTRICTS, PEOPLE).astype(np.uint8)
    spend = np.round(random.random(PEOPLE) * 500, 2)
    step_log2 = coding_of(schema.tables["people"].columns["spend"]).step_log2
    codes: dict[str, Codes] = {
        "age": age,
        "district": district,
        "spend": np.rint(np.ldexp(spend, -step_log2)).astype(np.uint64),
    }
    memory.add_individuals(np.arange(PEOPLE), with_digests(codes, range(PEOPLE)), np.full(PEOPLE, LIMIT_UNITS_MAX))
    item = random.integers(0, ITEMS, EVENTS).astype(np.uint32)
    memory.add_events("visits", random.integers(0, PEOPLE, EVENTS), {"item": item})
    return People(memory=memory, age=age, district=district, spend=spend, item=item)


def ask(people: People, query: Mapping[str, object]) -> Callable[[], Release]:
    """A function that asks a query of these people."""
    return asked(people.memory, query, sigma=20.0, capacity=2**20, budget_units=2**40)


def _counts(people: People) -> dict[str, float]:
    """Measure counts at three selectivities against bare ones."""
    small = _masks(people.age, people.district)
    wide = _masks(people.age.astype(np.int64), people.district.astype(np.int64))
    figures: dict[str, float] = {}
    for name, where in _WHERES.items():
        calls = (
            ask(people, {"select": [{"count": {}}], "where": where}),
            _summed(small[name]),
            _summed(wide[name]),
            _counted(small[name]),
        )
        served_ms, small_ms, wide_ms, counted_ms = medians_ms(*calls, rounds=ROUNDS)
        figures |= {
            f"count_{name}_ms": served_ms,
            f"count_{name}_bare_ms": small_ms,
            f"count_{name}_ratio": served_ms / small_ms,
            f"count_{name}_ratio_to_int64": served_ms / wide_ms,
            f"count_{name}_ratio_to_count_nonzero": served_ms / counted_ms,
        }
    return figures


def _others(people: People) -> dict[str, float]:
    """Measure other kinds of query, for information."""
    kinds: dict[str, tuple[Mapping[str, object], Callable[[], object]]] = {
        "group_by": (
            {"select": [{"count": {}}], "group_by": ["district"]},
            lambda: np.bincount(people.district, minlength=DISTRICTS),
        ),
        "sum": ({"select": [{"sum": {"column": "spend"}}]}, people.spend.sum),
        "histogram": (
            {"from": "visits", "select": [{"histogram": {"column": "item"}}]},
            lambda: np.bincount(people.item, minlength=ITEMS),
        ),
    }
    figures: dict[str, float] = {}
    for name, (query, bare) in kinds.items():
        served_ms, bare_ms = medians_ms(ask(people, query), bare, rounds=ROUNDS // 6)
        figures |= {f"{name}_ms": served_ms, f"{name}_bare_ms": bare_ms, f"{name}_ratio": served_ms / bare_ms}
    return figures


Mask = Callable[[], NDArray[np.bool_]]


def _masks(age: NDArray[np.integer], district: NDArray[np.integer]) -> dict[str, Mask]:
    """The predicates in plain numpy on bare columns."""
    return {
        "few": lambda: (age >= 40) & (district == 3),
        "some": lambda: (age >= 40) & (district < 10),
        "most": lambda: (age >= 40) & (district != 3),
    }


def _summed(mask: Mask) -> Callable[[], object]:
    return lambda: mask().sum()


def _counted(mask: Mask) -> Callable[[], object]:
    return lambda: np.count_nonzero(mask())


if __name__ == "__main__":
    main()
