"""Calibration: the speed of this machine, measured on synthetic individuals while other work runs concurrently.

The measured constants price every query (`service.query.cost`), so they err on the slow side: medians, with a margin
of three tenths. If they are too small for a query, its response is late, and late responses are counted.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson

from service.arrays import Codes
from service.core.charge import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.core.noise import ERROR, SIGMA_STEPS_MAX, Entropy, rounded_gaussian
from service.core.release import answer
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.ledger.model.pieces import pieces_of
from service.query.columns import DIGEST, DIGEST_CODING
from service.query.cost import Speed
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import Schema
from service.query.stated_noise import in_query_units
from service.writer.shards.shard import measure_of

PEOPLE: Final = 2**19
EVENTS: Final = 2**19
MODELLED: Final = 2**14
ROWS_OFTEN: Final = 16
"""Rows for each individual in the event table with few individuals, where the step to the next row is slowest."""
COORDINATES: Final = 2**16
LABELLED: Final = 2**12
DRAWN: Final = 2**14
REPETITIONS: Final = 5
COMMITS: Final = 20
"""How many empty commits are timed. The slowest tenth sets the price of all: a disk stalls now and then."""
LISTED: Final = 250
LISTED_STEPS: Final = 11
SEARCHED: Final = 2**LISTED_STEPS - 1
"""How many values a list has: LISTED to be looked up in a table, SEARCHED to be searched in LISTED_STEPS steps."""
_PAUSED_EACH: Final = 97
_EXHAUSTED_EACH: Final = 89
PAYLOAD_BYTES: Final = 2**21
MARGIN: Final = 1.3
_HTTP_SHARE: Final = 2
"""The time of a small query with its HTTP, commit and response, as a multiple of the time of its evaluation."""

_KNOWN: Final[Mapping[str, Any]] = {"not": {"is_null": {"col": "item"}}}
"""A condition that holds for every event. Without one, kept norms of a histogram would be used (`engine.tallies`)."""

_MOST: Final[Mapping[str, Any]] = {"le": [{"col": "c0"}, 90]}
"""A condition that holds for nine of ten, at random: marks of them have no long runs, and so compress slowest."""
_LONG_SIGMA: Final = 2**19.5
"""A sigma whose square divides nothing evenly: every charge near a whole number takes 128 bits to decide."""

_QUERIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "count": {"where": _MOST},
    "conditions": {"where": {"and": [_MOST, *({"le": [{"col": f"c{n}"}, 99]} for n in range(1, 8))]}},
    "wide": {"where": {"and": [_MOST, *({"between": [{"col": "wide"}, n, 2**40 - n]} for n in range(1, 8))]}},
    "active": {"select": [{"active": {"share": 0.5}}], "where": _MOST},
    "listed": {"where": {"in": [{"col": "kind"}, list(range(0, 2 * LISTED, 2))]}},
    "searched": {"where": {"in": [{"col": "far"}, list(range(0, 1000 * SEARCHED, 1000))]}},
    "spread": {"select": [{"histogram": {"column": "amount"}}], "where": _MOST},
    "grouped": {"group_by": ["c1", "c2", "sex"], "where": _MOST},
    "priced": {"select": [{"sum": {"column": "amount"}}], "where": _MOST},
    "priced widely": {"select": [{"sum": {"column": "amount"}}], "where": _MOST, "noise": {"sigma": _LONG_SIGMA}},
    "shortened": {"select": [{"sum": {"column": "amount"}}], "where": _MOST, "rule": "clip"},
    "several": {"select": [{"sum": {"column": name}} for name in ("amount", "c0", "c1", "c2")]},
    "events": {"from": "events", "select": [{"histogram": {"column": "item"}}], "where": _KNOWN},
    "clipped": {"from": "events", "select": [{"histogram": {"column": "item"}}], "per_individual": {"l2_clip": 1.5}},
}
_NUMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "places": {"select": [{"histogram": {"column": "place"}}]},
    "sums": {"select": [{"sum": {"column": "real"}}], "group_by": ["place"], "noise": {"sigma": 0.5}},
    "labels": {"select": [{"histogram": {"column": "named"}}]},
    "weeks": {"group_by": [{"bucket": {"column": "day", "by": "week"}}]},
}
"""Queries of many numbers for few individuals: whole numbers, fractions, and numbers that have labels.

The labels of weeks take longest, because they are worked out from the calendar.
"""

_EIGHT: Final = [{"of": {"mul": [{"col": f"c{n}"}, 0.01]}} for n in range(8)]
_FORTY: Final = [{"of": {"col": f"c{n % 8}"}, "fill": n} for n in range(40)]
_MANY: Final = 101
"""The number of values of a column of the synthetic individuals; each value is a feature or a class."""
_PRODUCTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "moments": {"select": [{"moments": {"features": _EIGHT}}]},
    "more features": {"select": [{"moments": {"features": _FORTY}}]},
    "many features": {"select": [{"moments": {"features": [*_EIGHT, {"one_hot": "c0"}]}}]},
    "many classes": {
        "select": [
            {
                "gradient": {
                    "loss": "softmax",
                    "target": "c0",
                    "features": _EIGHT,
                    "parameters": [[0.01 * n] * 8 for n in range(_MANY)],
                }
            }
        ]
    },
}
"""Queries of MODELLED individuals, of few features, many, and few with many classes."""

_IMAGE: Final = 256
_VECTORS: Final[Mapping[str, Any]] = {
    "loss": "squared",
    "target": {"col": "amount"},
    "features": [{"vector": "image"}],
    "parameters": [0.01] * _IMAGE,
    "residual_clip": 1,
}
"""A gradient of MODELLED individuals with vectors of _IMAGE numbers."""

_SCALARS: Final[Mapping[str, Mapping[str, Any]]] = {
    f"{table} {kind} {'clipped' if clip else 'whole'}": {"from": table, "select": [select], "per_individual": clip}
    for table in ("once", "often")
    for kind, select in (("count", {"count": {}}), ("sum", {"sum": {"column": "amount"}}))
    for clip in ({}, {"l2_clip": 1.0})
}
"""Queries of one number for each individual: from one row each, and from ROWS_OFTEN on average."""

_SIGNED: Final = {"amount": {"type": "integer", "lower": -1000, "upper": 1000}}
_SCHEMA: Final = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "key",
            "columns": {
                "kind": {"type": "category", "size": 500},
                "amount": {"type": "integer", "lower": 0, "upper": 1000},
                "sex": {"type": "category", "size": 2},
                "named": {"type": "category", "size": LABELLED},
                "day": {"type": "date", "lower": "1950-01-02", "upper": f"{1950 + LABELLED // 53}-12-31"},
                "real": {"type": "real", "lower": 0, "upper": 1000},
                "place": {"type": "category", "size": COORDINATES},
                "wide": {"type": "integer", "lower": 0, "upper": 2**40},
                "far": {"type": "integer", "lower": 0, "upper": 2**21},
                **{f"c{n}": {"type": "integer", "lower": 0, "upper": 100} for n in range(8)},
            },
        },
        "events": {
            "kind": "events",
            "key": "key",
            "rows_per_individual": 64,
            "columns": {"item": {"type": "category", "size": 1000}},
        },
        "once": {"kind": "events", "key": "key", "rows_per_individual": 64, "columns": _SIGNED},
        "often": {"kind": "events", "key": "key", "rows_per_individual": 64, "columns": _SIGNED},
    }
)

_OF_VECTORS: Final = Schema.model_validate(
    {
        "people": {
            "kind": "individuals",
            "key": "key",
            "columns": {
                "amount": {"type": "integer", "lower": 0, "upper": 1},
                "image": {"type": "vector", "length": _IMAGE, "lower": 0, "upper": 255, "step_log2": -8},
            },
        }
    }
)

_ROWS_SHARE: Final = 1.5
"""The time to write a byte of a large row, as a multiple of that of a large message in the write-ahead log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """Times of durable writes in ns: medians of empty ones and of PAYLOAD_BYTES, and the ninth decile of empty ones."""

    empty_ns: int
    slow_ns: int
    payload_ns: int


def measured_commits(commit: Callable[[bytes], None]) -> Commits:
    """Time durable writes of a payload by the store and the witness together."""
    payload = np.random.default_rng(0).bytes(PAYLOAD_BYTES)
    with _other_work():
        taken = _medians({"empty": lambda: commit(b""), "payload": lambda: commit(payload)})
        slow = sorted(_time_ns(lambda: commit(b"")) for _ in range(COMMITS))[COMMITS * 9 // 10]
    return Commits(empty_ns=taken["empty"], slow_ns=max(slow, taken["empty"]), payload_ns=taken["payload"])


def measured_commit_ns(commit: Callable[[bytes], None]) -> int:
    """The median time of a small durable write, without concurrent work."""
    return _medians({"empty": lambda: commit(b"")})["empty"]


def measured_speed(entropy: Entropy, commits: Commits) -> Speed:
    """The constants of this machine; takes about three seconds."""
    small, large = _memory(1, 1), _memory(PEOPLE, EVENTS)
    shapes: dict[str, Callable[[], object]] = {
        name: partial(_work, _plan(**query), large, entropy) for name, query in {**_QUERIES, **_SCALARS}.items()
    }
    shapes["shortened"] = partial(_exhausted, _plan(**_QUERIES["shortened"]), large, entropy)
    for name, query in _NUMBERS.items():
        shapes[name] = partial(_work, _plan(**query), small, entropy)
    modelled = _memory(MODELLED, 1)
    for name, query in _PRODUCTS.items():
        shapes[name] = partial(_work, _plan(**query), modelled, entropy)
    shapes["vectors"] = partial(_work, _plan(_OF_VECTORS, select=[{"gradient": _VECTORS}]), _pictured(), entropy)
    for name in ("fixed", "listed", "searched"):
        shapes[f"{name} of few"] = partial(_work, _plan(**_QUERIES.get(name, {})), small, entropy)
    for name, sigma in (("refined", SIGMA_STEPS_MAX), ("plain", 1.0)):
        shapes[name] = partial(rounded_gaussian, DRAWN, sigma, entropy)
    with _other_work():
        taken = _medians(shapes)
    fixed = _HTTP_SHARE * taken["fixed of few"]
    measured = {
        "query": fixed,
        "literal": _literal_ns(taken),
        "leaf_row": _leaf_row_ns(taken),
        "searched_row": max(taken["searched"] / (LISTED_STEPS * PEOPLE), 0.2),
        **_individuals_ns(taken),
        **_products_ns(taken, priced_ns=taken["priced"] / PEOPLE),
        "coordinate": max(taken["places"], taken["sums"]) / COORDINATES,
        "refined_coordinate": (taken["refined"] - taken["plain"]) / (DRAWN * 2 * SIGMA_STEPS_MAX * ERROR),
        "label": max(taken["labels"] / LABELLED, taken["weeks"] / _plan(**_NUMBERS["weeks"]).dimension, 1.0),
        "committed_byte": _ROWS_SHARE * max((commits.payload_ns - commits.empty_ns) / PAYLOAD_BYTES, 0.5)
        + _digest_ns(),
        "commit": commits.slow_ns,
        "read": fixed + commits.empty_ns / 2,
    }
    return Speed(**{name: MARGIN * value for name, value in measured.items()})


def _literal_ns(taken: Mapping[str, int]) -> float:
    """The time of one value of a list, the largest over the ways in which a list is compared."""
    few = taken["fixed of few"]
    return max((taken["listed of few"] - few) / LISTED, (taken["searched of few"] - few) / SEARCHED, 600.0)


def _leaf_row_ns(taken: Mapping[str, int]) -> float:
    """The time of a condition on a row, the largest over four kinds of conditions, each divided by its weight.

    The kinds look at one byte, at eight bytes, at two bytes in a table, and at what an individual has left: eight bytes
    in a separate pass.
    """
    narrow, wide, table, room = (taken[name] - taken["count"] for name in ("conditions", "wide", "listed", "active"))
    return max(narrow / 7, wide / (7 * 4.5), room / 4.5, table / (8 * 1.5), 0.05 * PEOPLE) / PEOPLE


def _individuals_ns(taken: Mapping[str, int]) -> dict[str, float]:
    """The times of individuals and of their entries."""
    count, priced, shortened = taken["count"], taken["priced"], taken["shortened"]
    # Nearly all time of individuals with ROWS_OFTEN rows is their rows'; the rest of those with one row is their own.
    scalar = max(taken[name] for name, query in _SCALARS.items() if query["from"] == "often") / EVENTS
    once = max(taken[name] for name, query in _SCALARS.items() if query["from"] == "once") / EVENTS
    listed = max(once - scalar, priced / PEOPLE)
    several, events, clipped = taken["several"], taken["events"], taken["clipped"]
    return {
        "individual": count / PEOPLE,
        "priced_individual": priced / PEOPLE,
        "wide_charge": max((taken["priced widely"] - priced) / PEOPLE, 1.0),
        "shortened_individual": max((shortened - priced) / PEOPLE, 1.0),
        "listed_individual": listed,
        "scatter_entry": max((taken["spread"] - count) / PEOPLE, (taken["grouped"] - count) / (4 * PEOPLE), 1.0),
        "scalar_entry": scalar,
        "entry": max((several / PEOPLE - listed) / 4, events / EVENTS - listed / 2, 1.0),
        "clipped_entry": max((clipped - events) / EVENTS, 1.0),
    }


def _products_ns(taken: Mapping[str, int], *, priced_ns: float) -> dict[str, float]:
    """The times of a feature, of an error and of a product of two, beside that of a priced individual."""
    few, more, many, classes = (
        (taken[name] - taken["fixed of few"]) / MODELLED
        for name in ("moments", "more features", "many features", "many classes")
    )
    feature_ns = max((more - few) / 32, (few - priced_ns) / 8, 1.0)
    return {
        "feature": feature_ns,
        "error": max((classes - priced_ns - 8 * feature_ns) / _MANY, 1.0),
        "product": max((many - few) / ((8 + _MANY) ** 2 - 8**2), 0.05),
        "vector_number": max((taken["vectors"] / MODELLED - priced_ns) / _IMAGE, 1.0),
    }


def _digest_ns() -> float:
    """The time of a byte in the digest of its piece."""
    return _medians({"digest": partial(hashlib.sha256, bytes(PAYLOAD_BYTES))})["digest"] / PAYLOAD_BYTES


def _plan(schema: Schema = _SCHEMA, /, **query: object) -> Plan:
    document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 10_000.0}} | query
    return compile_query(parse_query(orjson.dumps(document)), schema, capacity=PEOPLE, budget_units=UNITS_PER_RHO)


def _work(plan: Plan, memory: DatasetMemory, entropy: Entropy) -> None:
    """Do the work of a query from the engine to the bytes that are committed."""
    noise = plan.scale.law.draw(plan.dimension, entropy)
    release = answer(contributions(plan, memory), memory.accounts, plan.terms, noise=noise)
    salt = entropy(4).tobytes()
    pieces_of(
        release.blocks,
        measure_of(release),
        amount_max=plan.scale.charged_squared_steps,
        slots=memory.slots_used,
        salt=salt,
    )
    for block in release.blocks:
        memory.counters.count(block.touched, block.active)
    release.values.astype(">i8").tobytes()
    axes = plan.answered.axes(has_places=bool(plan.scale.sigmas))
    values = in_query_units(release.values, grid_log2=plan.scale.grid_log2, grid=plan.noise.grid, axes=axes)
    numbers = {"values": values, "labels": plan.answered.labels(), "axes": axes}
    orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)


def _exhausted(plan: Plan, memory: DatasetMemory, entropy: Entropy) -> None:
    """Do a query's work when nobody has anything left, so that every vector is shortened.

    The accounts stay as they are; copying them is little beside the work.
    """
    room = memory.accounts.room.copy()
    memory.accounts.room[:] = 0
    _work(plan, memory, entropy)
    memory.accounts.room[:] = room


def _pictured() -> DatasetMemory:
    """MODELLED synthetic individuals, each with a vector."""
    memory, source, slots = DatasetMemory(_OF_VECTORS), np.random.default_rng(0), np.arange(MODELLED)
    images = source.integers(0, 256, (MODELLED, _IMAGE + 1), dtype=np.uint8)
    images[:, 0] = 1
    codes: dict[str, Codes] = {
        "amount": source.integers(0, 2, MODELLED, dtype=np.uint8),
        "image": images,
        DIGEST: source.integers(0, DIGEST_CODING.span, MODELLED, dtype=np.uint64),
    }
    memory.add_individuals(slots, codes, np.full(MODELLED, LIMIT_UNITS_MAX))
    return memory


def _memory(people: int, events: int) -> DatasetMemory:
    """Synthetic individuals in every slot with random values; some of them are paused and some exhausted."""
    memory, source = DatasetMemory(_SCHEMA), np.random.default_rng(0)
    memory.grow(people)
    memory.accounts.set_limits(slice(None), LIMIT_UNITS_MAX)
    slots = np.arange(people)

    def drawn(table: str, rows: int) -> dict[str, Any]:
        codings = memory.codings[table]
        return {
            name: source.integers(0, coding.span, rows, dtype=coding.dtype, endpoint=True)
            for name, coding in codings.items()
        }

    memory.add_individuals(slots, drawn("people", people), memory.accounts.limits[slots])
    memory.add_events("events", source.integers(0, people, events), drawn("events", events))
    memory.add_events("once", np.arange(events), drawn("once", events))
    memory.add_events("often", source.integers(0, max(events // ROWS_OFTEN, 1), events), drawn("often", events))
    memory.accounts.paused[::_PAUSED_EACH] = True
    memory.accounts.set_limits(slice(1, None, _EXHAUSTED_EACH), 0)
    memory.people.index_categories()
    return memory


def _medians(works: Mapping[str, Callable[[], object]]) -> dict[str, int]:
    """The median time of each function, in ns; they run in turn, so that a busy moment affects all alike."""
    taken: dict[str, list[int]] = {name: [] for name in works}
    for work in works.values():
        work()  # the first run is not counted
    for _ in range(REPETITIONS):
        for name, work in works.items():
            taken[name].append(_time_ns(work))
    return {name: sorted(each)[REPETITIONS // 2] for name, each in taken.items()}


def _time_ns(work: Callable[[], object]) -> int:
    begun = time.monotonic_ns()
    work()
    return time.monotonic_ns() - begun


@contextmanager
def _other_work() -> Iterator[None]:
    """During the block, a thread does work like a web server's: small pieces of Python and JSON."""
    is_over = threading.Event()
    document = {"values": [UUID(int=n).hex for n in range(50)]}

    def work() -> None:
        while not is_over.is_set():
            for _ in range(20):
                orjson.loads(orjson.dumps(document))
            time.sleep(0.001)

    thread = threading.Thread(target=work, name="calibration", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
