"""Data that make queries slow: one dataset of columns, each made against one short cut, and accounts on the brink.

A short cut is a way of the engine or the filter that is quicker on favourable data: slots that are consecutive, equal
balances, nobody paused, few rows under a value, charges that a float decides. The public price of a query assumes no
short cut, so that it has to cover the data of this module (`loadtests.bench_prices`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers
from service.core.charge import LIMIT_UNITS_MAX
from service.engine.memory import DatasetMemory
from service.query.division import PAGE_SLOTS, ShardPlace, at_each_shard, rows_at_fullest
from service.query.schema import Schema
from tests.digests import with_digests

Codes = NDArray[np.int64]

RANKS = 10_000
"""The values of `rank` are uniform below this, so that a bound on it selects any share of people, scattered."""
LISTED = 4096
"""The number of categories of columns of which every second one is listed: as many as an inverted index has."""
PAIRED = 128
SHARE = 16
"""An index is read while at most one in SHARE rows is listed."""
ITEMS = 1000
COPIES = 8
"""How many columns of events have the same contents, so that a first query of a column can be timed several times."""
FAR_MAX = 2**53 - 1
BIG_MAX = 2**30
MOMENTS = 73_049 * 86_400
"""The number of seconds in two centuries."""
STRIPES = {"block": 2**15, "piece": 2**13}
"""The lengths of stripes, in slots, by column.

The column is 1 in every second stripe, and 2 in the first slot of each.
"""
IMAGE = 48
"""How many numbers a vector has."""
OFTEN = 16
"""How many rows an individual has on average, in the table of few individuals."""


def schema(people: int) -> Schema:
    """The tables. Every event table has as many rows as there are people."""
    whole = {"type": "integer", "lower": 0, "upper": 100}
    far = {"type": "integer", "lower": 0, "upper": FAR_MAX}
    items = {"type": "category", "size": ITEMS}
    columns = {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "gap": {"type": "integer", "lower": 0, "upper": 120},
        "second": {"type": "integer", "lower": 0, "upper": 1},
        "rank": {"type": "integer", "lower": 0, "upper": RANKS},
        "amount": {"type": "integer", "lower": -1000, "upper": 1000},
        "big": {"type": "integer", "lower": 0, "upper": BIG_MAX},
        "real": {"type": "real", "lower": 0, "upper": 1},
        "far": far,
        "further": far,
        "at": {"type": "category", "size": LISTED},
        "beyond": {"type": "category", "size": LISTED},
        "moment": {"type": "datetime", "lower": "1900-01-01T00:00:00Z", "upper": "2100-01-01T00:00:00Z"},
        "left": {"type": "integer", "lower": 0, "upper": PAIRED - 1},
        "right": {"type": "integer", "lower": 0, "upper": PAIRED - 1},
        "wide": {"type": "category", "size": 2**16},
        "middling": {"type": "category", "size": 2**20 - 1},
        **{name: {"type": "integer", "lower": 0, "upper": 2} for name in STRIPES},
        **{f"c{n}": whole for n in range(8)},
        "image": {"type": "vector", "length": IMAGE, "lower": 0, "upper": 255, "step_log2": -8},
    }
    events = {
        "amount": {"type": "integer", "lower": -1000, "upper": 1000},
        "big": {"type": "integer", "lower": 0, "upper": BIG_MAX},
        "small": whole,
        "far": far,
        **{f"item{n}": items for n in range(COPIES)},
    }
    table = {"kind": "events", "key": "key", "rows_capacity": people, "columns": events}
    return Schema.model_validate(
        {
            "people": {"kind": "individuals", "key": "key", "columns": columns},
            "once": {**table, "rows_per_individual": 64},
            "often": {**table, "rows_per_individual": 64},
            "alone": {**table, "rows_per_individual": max(people, 64)},
        }
    )


def made(people: int, shards: int = 1) -> DatasetMemory:
    """All columns for `people` individuals, the same in every run. Limits are never reached, and nobody is paused."""
    memory = DatasetMemory(schema(people))
    memory.grow(people)
    for name, slots, columns in rows_of(memory, people, shards):
        if name == "people":
            memory.add_individuals(slots, columns, np.full(people, LIMIT_UNITS_MAX))
        else:
            memory.add_events(name, slots, columns)
    memory.people.index_categories()
    return memory


def rows_of(memory: DatasetMemory, people: int, shards: int = 1) -> Iterator[tuple[str, Integers, dict[str, Any]]]:
    """The rows of each table for a memory of that schema, as uploads to `shards` shards would be admitted."""
    source, slots = np.random.default_rng(1), np.arange(people)
    columns = coded(memory, "people", people_columns(people, memory.people.present.size, source))
    yield "people", slots, with_digests(columns | {"image": images(people)}, range(people))
    owners = {
        "once": source.permutation(people),  # one row each, uploaded shuffled
        "often": source.permutation(np.repeat(np.arange(0, people, OFTEN), OFTEN)[:people]),  # far apart
        "alone": np.full(people, people // 2),
    }
    for name, table_slots in owners.items():
        most = rows_at_fullest(memory.schema.tables[name], people, shards)
        yield name, admitted(table_slots, people, shards, most), coded(memory, name, event_columns(people, source))


def admitted(slots: Integers, people: int, shards: int, most: int) -> Integers:
    """The slots (n,) of rows, moved so that no shard has more than `most`; some go to an individual a page further."""
    slots = slots.copy()
    while (held := at_each_shard(slots, shards)).max() > most:
        beyond = np.flatnonzero(ShardPlace(int(held.argmax()), shards).holds(slots))[most:]
        slots[beyond] = (slots[beyond] + PAGE_SLOTS) % people
    return slots


def people_columns(people: int, rows: int, source: np.random.Generator) -> dict[str, Codes]:
    """The codes of the people's columns; `rows` is the number that the engine divides by SHARE."""
    gap = source.integers(1, 121, people)
    gap[people // 2] = 121  # NULL
    listed = min(rows // SHARE, people)
    return {
        "age": source.integers(1, 121, people),
        "gap": gap,
        "second": np.arange(people) % 2,
        "rank": source.integers(0, RANKS, people),
        "amount": source.integers(0, 2001, people),
        "big": source.integers(1, BIG_MAX, people),
        "real": source.integers(0, 2**51, people),
        "far": source.integers(0, FAR_MAX, people),
        "further": source.integers(0, FAR_MAX, people),
        "at": listed_codes(people, listed, LISTED, source),
        "beyond": listed_codes(people, min(listed + 1, people), LISTED, source),
        "moment": source.integers(0, MOMENTS, people),
        "left": np.zeros(people, dtype=np.int64),
        "right": listed_codes(people, listed, PAIRED, source),
        "wide": source.integers(0, 2**16, people),
        "middling": source.integers(0, 2**20 - 1, people),
        **{name: striped(people, length) for name, length in STRIPES.items()},
        **{f"c{n}": source.integers(0, 101, people) for n in range(8)},
    }


def images(people: int) -> NDArray[np.uint8]:
    """The codes of a vector for each of the people."""
    rows = np.random.default_rng(2).integers(0, 256, (people, IMAGE + 1), dtype=np.uint8)
    rows[:, 0] = 1
    return rows


def striped(people: int, length: int) -> Codes:
    """Stripes of `length` slots, 0 and 1 in turn, each of which begins with a 2."""
    slots = np.arange(people)
    return np.where(slots % length == 0, 2, slots // length % 2)


def listed_codes(people: int, listed: int, size: int, source: np.random.Generator) -> Codes:
    """Even codes for exactly `listed` people, scattered, and odd ones for all others."""
    codes = 2 * source.integers(0, size // 2, people) + 1
    codes[source.choice(people, listed, replace=False)] -= 1
    return codes


def event_columns(rows: int, source: np.random.Generator) -> dict[str, Codes]:
    """The codes of `rows` events. Items are shuffled, and those of an individual differ."""
    return {
        "amount": source.integers(0, 2001, rows),
        "big": source.integers(1, BIG_MAX, rows),
        "small": source.integers(0, 101, rows),
        "far": source.integers(0, FAR_MAX, rows),
        **{f"item{n}": source.integers(0, ITEMS, rows) for n in range(COPIES)},
    }


def coded(memory: DatasetMemory, table: str, columns: Mapping[str, Codes]) -> dict[str, Any]:
    """The columns in the widths of their codings."""
    codings = memory.codings[table]
    return {name: column.astype(codings[name].dtype) for name, column in columns.items()}


# Accounts


@dataclass(frozen=True, slots=True)
class Standing:
    """How accounts stand before a query, given the charges (n,) that it makes where all can pay."""

    name: str
    set: Callable[[DatasetMemory, Integers], None]


def stand(
    memory: DatasetMemory, *, limit: Integers | int, spent: int = 0, paused: NDArray[np.bool_] | bool = False
) -> None:
    """Set every account. No other function writes to accounts."""
    accounts = memory.accounts
    accounts.set_limits(slice(None), limit)
    accounts.set_spent(slice(None), spent)
    accounts.paused[:] = paused


def charged(memory: DatasetMemory) -> Integers:
    """The units spent, by slot: the charges of a query, if all could pay and nobody had spent before."""
    return memory.accounts.spent


def roomy(memory: DatasetMemory, _charges: Integers) -> None:
    """Let everybody be able to pay."""
    stand(memory, limit=LIMIT_UNITS_MAX)


def one_paused(memory: DatasetMemory, _charges: Integers) -> None:
    """Let everybody be able to pay, but pause one individual in the middle."""
    paused = np.zeros(memory.accounts.size, dtype=np.bool_)
    paused[memory.slots_used // 2] = True
    stand(memory, limit=LIMIT_UNITS_MAX, paused=paused)


def second_paused(memory: DatasetMemory, _charges: Integers) -> None:
    """Pause every second individual."""
    stand(memory, limit=LIMIT_UNITS_MAX, paused=np.arange(memory.accounts.size) % 2 == 1)


def on_the_brink(memory: DatasetMemory, charges: Integers) -> None:
    """Let everybody be able to pay this query, and not one unit more."""
    stand(memory, limit=charges)


def half_below(memory: DatasetMemory, charges: Integers) -> None:
    """Let a random half lack one unit, and the others none."""
    stand(memory, limit=np.maximum(charges - np.random.default_rng(3).integers(0, 2, charges.size), 0))


def half_left(memory: DatasetMemory, charges: Integers) -> None:
    """Let everybody be able to pay half of the charge: under the clip rule every vector is shortened."""
    stand(memory, limit=charges // 2)


def last_below(memory: DatasetMemory, charges: Integers) -> None:
    """Let the last charged individual lack one unit, which only the last block shows."""
    room = charges.copy()
    room[np.flatnonzero(charges)[-1:]] -= 1
    stand(memory, limit=room)


def overdrawn(memory: DatasetMemory, _charges: Integers) -> None:
    """Lower limits below what was spent, so that nobody can pay."""
    stand(memory, limit=0, spent=LIMIT_UNITS_MAX)


ROOMY = Standing("room for all", roomy)
STANDINGS: Sequence[Standing] = (
    ROOMY,
    Standing("one paused", one_paused),
    Standing("every second paused", second_paused),
    Standing("all on the brink", on_the_brink),
    Standing("a random half below", half_below),
    Standing("half left to all", half_left),
    Standing("the last one below", last_below),
    Standing("all beyond their limits", overdrawn),
)
