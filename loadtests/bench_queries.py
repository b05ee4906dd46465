"""Queries of events against bare numpy and scipy on the same arrays: groups, wide histograms, functionals, sums.

    python -m loadtests.bench_queries

Each query runs in turn with its bare counterpart, so that a busy machine slows both; the ratio of the median processor
times is the result. The bare counterparts have no charges, limits, NULLs or individuals: they are floors, not peers.
"""

import json
import sys
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loadtests.in_process import asked, medians_ms
from service.core.release import Release
from service.engine.memory import DatasetMemory
from service.query.columns import coding_of
from service.query.schema import Schema
from tests.digests import with_digests

PEOPLE = 1_000_000
ROWS_EACH = 10
GROUPS = 100
ITEMS = 100_000
WIDE = 1_000_000
ROUNDS = 9
LISTED = 50
FLAT_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)

Figures = dict[str, float]


def main() -> None:
    """Print the figures of the parts named in the arguments, by default of all."""
    parts = {"groups": groups, "histogram": histogram, "sums": sums, "functional": functional, "flat": flat}
    for name in sys.argv[1:] or parts:
        print(name, json.dumps({key: round(value, 3) for key, value in parts[name]().items()}))


def groups() -> Figures:
    """Measure a count by 100 groups on a million people with ten rows each, against bincount."""
    random = np.random.default_rng(7)
    group = random.integers(0, GROUPS, PEOPLE * ROWS_EACH).astype(np.uint8)
    memory = _memory({"group": {"type": "integer", "lower": 0, "upper": GROUPS - 1}}, {"group": group})
    query = {"select": [{"count": {}}], "group_by": ["group"], **_CLIPPED}
    return _ratios("group_by", ask(memory, query), {"bincount": lambda: np.bincount(group, minlength=GROUPS)})


def histogram() -> Figures:
    """Measure a histogram of a million categories over ten million rows, with and without a condition."""
    random = np.random.default_rng(8)
    item = random.integers(0, WIDE, PEOPLE * ROWS_EACH).astype(np.uint32)
    day = random.integers(0, 365, PEOPLE * ROWS_EACH).astype(np.uint16)
    columns = {"item": {"type": "category", "size": WIDE}, "day": {"type": "integer", "lower": 0, "upper": 364}}
    memory = _memory(columns, {"item": item, "day": day})
    noise = np.random.default_rng(9)
    whole = {"select": [{"histogram": {"column": "item"}}], **_CLIPPED}
    half = whole | {"where": {"lt": [{"col": "day"}, 180]}}

    def bare() -> object:
        return np.bincount(item, minlength=WIDE) + noise.standard_normal(WIDE)

    def bare_where() -> object:
        return np.bincount(item[day < 180], minlength=WIDE) + noise.standard_normal(WIDE)

    return _ratios("histogram", ask(memory, whole), {"bare": bare}) | _ratios(
        "histogram_where", ask(memory, half), {"bare": bare_where}
    )


def sums() -> Figures:
    """Measure a sum in which everybody is charged differently: ns a person for norms, charges, filter and sum."""
    random = np.random.default_rng(10)
    schema = Schema.model_validate(
        {
            "people": {
                "kind": "individuals",
                "key": "person_id",
                "columns": {"spend": {"type": "real", "lower": 0, "upper": 500}},
            }
        }
    )
    memory = DatasetMemory(schema)
    step_log2 = coding_of(schema.tables["people"].columns["spend"]).step_log2
    spend = np.rint(np.ldexp(random.random(PEOPLE) * 500, -step_log2)).astype(np.uint64)
    memory.add_individuals(np.arange(PEOPLE), with_digests({"spend": spend}, range(PEOPLE)), np.full(PEOPLE, 2**60))
    query = {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 1e5}}
    floor = spend.astype(np.int64)
    limit, spent = np.full(PEOPLE, 2**60), np.zeros(PEOPLE, dtype=np.int64)

    def bare() -> object:
        charge = (floor * floor) >> 40
        return floor[spent + charge <= limit].sum()

    figures = _ratios("sum", ask(memory, query), {"bare": bare})
    return figures | {"sum_ns_per_person": figures["sum_ms"] * 1e6 / PEOPLE}


def functional() -> Figures:
    """Measure fifty weights over a column of 100,000 items against a gather of those columns and a product by rows."""
    random = np.random.default_rng(11)
    item = random.integers(0, ITEMS, PEOPLE * ROWS_EACH).astype(np.uint32)
    memory = _memory({"item": {"type": "category", "size": ITEMS}}, {"item": item})
    listed = np.sort(random.choice(ITEMS, LISTED, replace=False))
    weights = random.random(LISTED)
    functional = {"indices": listed.tolist(), "values": weights.tolist()}
    query = {"select": [{"linear": {"column": "item", "weights": functional}}], **_CLIPPED}
    owners = np.repeat(np.arange(PEOPLE), ROWS_EACH)
    by_rows = sparse.csr_array((np.ones(item.size), (owners, item)), shape=(PEOPLE, ITEMS))
    by_columns = by_rows.tocsc()
    dense = np.zeros(ITEMS)
    dense[listed] = weights
    query_once = ask(memory, query)
    bare = {"csc": lambda: by_columns[:, listed] @ weights, "csr": lambda: by_rows @ dense}
    return _ratios("functional", query_once, bare)


def flat() -> Figures:
    """Measure a count that touches the same number of people among more and more."""
    figures: Figures = {}
    for size in FLAT_SIZES:
        random = np.random.default_rng(12)
        town = random.integers(0, size // 100, size).astype(np.uint32)
        schema = Schema.model_validate(
            {
                "people": {
                    "kind": "individuals",
                    "key": "person_id",
                    "columns": {"town": {"type": "category", "size": size // 100}},
                }
            }
        )
        memory = DatasetMemory(schema)
        coding = memory.codings["people"]["town"]
        codes = with_digests({"town": town.astype(coding.dtype)}, range(size))
        memory.add_individuals(np.arange(size), codes, np.full(size, 2**60))
        memory.people.index_categories()
        count = ask(memory, {"select": [{"count": {}}], "where": {"eq": [{"col": "town"}, 7]}})
        count()
        figures[f"touching_100_of_{size}_ms"] = medians_ms(count, rounds=60)[0]
    return figures


_CLIPPED = {"from": "visits", "per_individual": {"l2_clip": 10}}


def _memory(columns: Mapping[str, object], codes: Mapping[str, NDArray[np.unsignedinteger]]) -> DatasetMemory:
    """A million people, with no columns of their own and ten rows each, in order."""
    schema = Schema.model_validate(
        {
            "people": {"kind": "individuals", "key": "person_id", "columns": {}},
            "visits": {"kind": "events", "key": "person_id", "rows_per_individual": ROWS_EACH, "columns": columns},
        }
    )
    memory = DatasetMemory(schema)
    memory.add_individuals(np.arange(PEOPLE), with_digests({}, range(PEOPLE)), np.full(PEOPLE, 2**60))
    fitting = {name: values.astype(memory.codings["visits"][name].dtype) for name, values in codes.items()}
    memory.add_events("visits", np.repeat(np.arange(PEOPLE), ROWS_EACH), fitting)
    return memory


def ask(memory: DatasetMemory, query: Mapping[str, object]) -> Callable[[], Release]:
    """A function that asks a query under limits that are never reached."""
    return asked(memory, query, sigma=2000.0, capacity=2**24, budget_units=2**60)


def _ratios(name: str, call: Callable[[], object], bare: Mapping[str, Callable[[], object]]) -> Figures:
    own_ms, *bare_ms = medians_ms(call, *bare.values(), rounds=ROUNDS)
    figures = {f"{name}_ms": own_ms}
    for other, other_ms in zip(bare, bare_ms, strict=True):
        figures |= {f"{name}_{other}_ms": other_ms, f"{name}_ratio_to_{other}": own_ms / other_ms}
    return figures


if __name__ == "__main__":
    main()
