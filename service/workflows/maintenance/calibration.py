"""Calibration: the speed of this machine, measured on synthetic individuals while other work runs concurrently.

The measured constants price every query (`service.query.cost`), so they err on the slow side: medians, with a margin
of three tenths. If they are too small for a query, its response is late, and late responses are counted.
"""

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

from service.core.noise import Entropy
from service.core.release import answer
from service.core.units import LIMIT_UNITS_MAX, UNITS_PER_RHO
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.cost import Speed
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import Schema
from service.workflows.model.pieces import pieces_of
from service.workflows.writer.answer_document import scaled
from service.workflows.writer.batch import quantities

PEOPLE: Final = 2**19
EVENTS: Final = 2**19
ROWS_OFTEN: Final = 16
"""Rows for each individual in the event table of few individuals, where a step to the next one is slowest."""
COORDINATES: Final = 2**16
REPETITIONS: Final = 5
LISTED_STEPS: Final = 11
"""The steps of a binary search in 2 ** LISTED_STEPS - 1 values."""
PAYLOAD_BYTES: Final = 2**21
MARGIN: Final = 1.3
_HTTP_SHARE: Final = 2
"""The time of a small query with HTTP, its rows of the commit and its response, relative to its evaluation."""

_KNOWN: Final[Mapping[str, Any]] = {"not": {"is_null": {"col": "item"}}}
"""A condition that holds for every event: without one, the norms of a histogram are kept (`service.engine.tallies`)."""

_QUERIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "count": {},
    "conditions": {"where": {"and": [{"le": [{"col": f"c{n}"}, 99]} for n in range(8)]}},
    "listed": {"where": {"in": [{"col": "kind"}, list(range(0, 500, 2))]}},
    "searched": {"where": {"in": [{"col": "far"}, list(range(0, 1000 * (2**LISTED_STEPS - 1), 1000))]}},
    "spread": {"select": [{"histogram": {"column": "amount"}}]},
    "priced": {"select": [{"sum": {"column": "amount"}}]},
    "several": {"select": [{"sum": {"column": name}} for name in ("amount", "c0", "c1", "c2")]},
    "events": {"from": "events", "select": [{"histogram": {"column": "item"}}], "where": _KNOWN},
    "clipped": {"from": "events", "select": [{"histogram": {"column": "item"}}], "per_individual": {"l2_clip": 1.5}},
}
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
                "wide": {"type": "category", "size": COORDINATES},
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

_ROWS_SHARE: Final = 1.5
"""The time to write a byte of a large row, relative to a byte of a large message in the write-ahead log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """The times of durable writes, empty and of PAYLOAD_BYTES, in ns."""

    empty_ns: int
    payload_ns: int


def measured_commits(commit: Callable[[bytes], None]) -> Commits:
    """Time durable writes of a payload by the store and the witness together."""
    payload = np.random.default_rng(0).bytes(PAYLOAD_BYTES)
    with _other_work():
        taken = _medians({"empty": lambda: commit(b""), "payload": lambda: commit(payload)})
    return Commits(empty_ns=taken["empty"], payload_ns=taken["payload"])


def measured_commit_ns(commit: Callable[[bytes], None]) -> int:
    """The median time of a small durable write, without concurrent work."""
    return _medians({"empty": lambda: commit(b"")})["empty"]


def measured_speed(entropy: Entropy, commits: Commits) -> Speed:
    """The constants of this machine; takes about three seconds."""
    small, large = _memory(1, 1), _memory(PEOPLE, EVENTS)
    shapes = {name: partial(_work, _plan(**query), large, entropy) for name, query in {**_QUERIES, **_SCALARS}.items()}
    shapes["wide"] = partial(_work, _plan(select=[{"histogram": {"column": "wide"}}]), small, entropy)
    shapes["fixed"] = partial(_work, _plan(), small, entropy)
    with _other_work():
        taken = _medians(shapes)
    count, priced, fixed = taken["count"], taken["priced"], _HTTP_SHARE * taken["fixed"]
    listed, several, events = taken["listed"], taken["several"], taken["events"]
    measured = {
        "query": fixed,
        "leaf_row": max((taken["conditions"] - count) / (8 * PEOPLE), (listed - count) / (3 * PEOPLE), 0.2),
        "searched_row": max(taken["searched"] / (LISTED_STEPS * PEOPLE), 0.2),
        "individual": count / PEOPLE,
        "priced_individual": priced / PEOPLE,
        "scatter_entry": max((taken["spread"] - count) / PEOPLE, 1.0),
        "scalar_entry": _scalar_entry_ns(taken),
        "entry": max((several - priced) / (4 * PEOPLE), (events - priced / 2) / EVENTS, 1.0),
        "clipped_entry": max((taken["clipped"] - events) / EVENTS, 1.0),
        "coordinate": taken["wide"] / COORDINATES,
        "committed_byte": _ROWS_SHARE * max((commits.payload_ns - commits.empty_ns) / PAYLOAD_BYTES, 0.5),
        "commit": commits.empty_ns,
        "read": fixed + commits.empty_ns / 2,
    }
    return Speed(**{name: MARGIN * value for name, value in measured.items()})


def _scalar_entry_ns(taken: Mapping[str, int]) -> float:
    """The time of a row in the slowest of _SCALARS, without the cost of the touched individuals."""
    touched = {"once": EVENTS, "often": EVENTS // ROWS_OFTEN}
    priced_ns = taken["priced"] / PEOPLE
    beside = [taken[name] - touched[query["from"]] * priced_ns for name, query in _SCALARS.items()]
    return max(*beside, EVENTS) / EVENTS


def _plan(**query: object) -> Plan:
    document = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 10_000.0}} | query
    return compile_query(parse_query(orjson.dumps(document)), _SCHEMA, capacity=PEOPLE, budget_units=UNITS_PER_RHO)


def _work(plan: Plan, memory: DatasetMemory, entropy: Entropy) -> None:
    """A query's work from the engine to the bytes that are committed."""
    release = answer(
        contributions(plan, memory),
        memory.accounts,
        dimension=plan.dimension,
        sigma_steps=plan.sigma_steps,
        entropy=entropy,
    )
    salt = entropy(4).tobytes()
    pieces_of(quantities(release), slots=memory.slots_used, salt=salt)
    memory.accounts.debit(release.charged, release.charges)
    release.values.astype(">i8").tobytes()
    orjson.dumps(scaled(release.values, plan.grid_log2), option=orjson.OPT_SERIALIZE_NUMPY)


def _memory(people: int, events: int) -> DatasetMemory:
    """Synthetic individuals in every slot, with limits that are never reached; conditions and charges differ."""
    memory, source = DatasetMemory(_SCHEMA), np.random.default_rng(0)
    memory.grow(people)
    memory.accounts.limit[:] = LIMIT_UNITS_MAX
    slots = np.arange(people)

    def drawn(table: str, rows: int) -> dict[str, Any]:
        codings = memory.codings(table)
        return {
            name: source.integers(0, coding.span + 1, rows).astype(coding.dtype) for name, coding in codings.items()
        }

    memory.add_individuals(slots, drawn("people", people), memory.accounts.limit[slots])
    memory.add_events("events", source.integers(0, people, events), drawn("events", events))
    memory.add_events("once", np.arange(events), drawn("once", events))
    memory.add_events("often", source.integers(0, max(events // ROWS_OFTEN, 1), events), drawn("often", events))
    memory.index_categories()
    return memory


def _medians(works: Mapping[str, Callable[[], None]]) -> dict[str, int]:
    """The median time of each function, in ns; they run in turn, so that a busy moment affects all alike."""
    taken: dict[str, list[int]] = {name: [] for name in works}
    for work in works.values():
        work()  # the first run is not counted
    for _ in range(REPETITIONS):
        for name, work in works.items():
            begun = time.monotonic_ns()
            work()
            taken[name].append(time.monotonic_ns() - begun)
    return {name: sorted(each)[REPETITIONS // 2] for name, each in taken.items()}


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
