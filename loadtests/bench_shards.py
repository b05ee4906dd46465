"""A dataset over several processes against the same in one: the work of its queries, without a database, side by side.

    python -m loadtests.bench_shards [--people 4000000] [--events 10000000] [--shards 1,2] [--rounds 9]
    python -m loadtests.bench_shards --backend ray [...]          # the same numbers over Ray too, on loopback
    python -m loadtests.bench_shards --http --people 1200000 --rounds 40    # over HTTP and Postgres, without slots
    python -m loadtests.bench_shards --people 100000000 --events 0 --shards 1,2,8 --alone --rounds 3

Each row is a query on every number of shards in turn, from its plan to the rows that would be committed, as the writer
does it. "round trip" is a call to all shards that does nothing. `ms` are medians of wall time, and `ratio` is the time
of one shard over that of several. `processor` is the processor time of coordinator and shards together over that of one
shard, with Ray's workers and without its servers. `late_ms` is how late a thread is that sleeps for a millisecond
meanwhile, at the 99th percentile. `held` is the resident memory of all processes after the load, and `peak` the sum of
their largest. `--alone` measures one number of shards after the other, without ratios, for a memory that holds only one
at a time.
"""

import argparse
import json
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

import httpx
import numpy as np
import orjson

from clients.ray.tests.ray_head import RayHead, ray_head
from loadtests.rig import DATASET, Rig, arrow_bytes, people, serving, throw_away_home
from loadtests.writer_work import answer_in, state_on
from service.core.charge import UNITS_PER_RHO
from service.ledger.model.rows import SlotsInUse
from service.query.columns import codings_of
from service.query.parse import parse_query
from service.query.plan import Plan, compile_query
from service.query.schema import Schema
from service.store.entropy import system_entropy
from service.store.shards import ProcessShards
from service.store.shards.process import ProcessShard
from service.writer.shards.divided import DividedShards
from service.writer.state import DatasetState
from sparing_ray.shards import RayShards

TABLES: Final = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "income": {"type": "integer", "lower": 0, "upper": 100_000},
            "place": {"type": "category", "size": 2000},
        },
    },
    "visits": {
        "kind": "events",
        "key": "id",
        "rows_per_individual": 64,
        "columns": {"item": {"type": "category", "size": 1000}},
    },
}
_ADULT: Final = {"ge": [{"col": "age"}, 18]}
_FEATURES: Final = [{"of": {"mul": [{"col": "age"}, 0.01]}}, {"of": {"mul": [{"col": "income"}, 0.00001]}}]
QUERIES: Final[Mapping[str, Mapping[str, object]]] = {
    "sparse count": {"where": {"eq": [{"col": "place"}, 7]}},
    "count of everybody": {},
    "dense sum": {"select": [{"sum": {"column": "income"}}]},
    "filtered sum": {"select": [{"sum": {"column": "income"}}], "where": _ADULT},
    "histogram": {"select": [{"histogram": {"column": "place"}}], "where": _ADULT},
    "gradient": {
        "select": [
            {
                "gradient": {
                    "loss": "squared",
                    "target": {"mul": [{"col": "income"}, 0.00001]},
                    "features": _FEATURES,
                    "parameters": [0.1, 0.2],
                    "residual_clip": 1,
                }
            }
        ],
        "per_individual": {"l2_clip": 1.0},
        "noise": {"sigma": 8000},
    },
    "events by group": {"from": "visits", "group_by": ["item"], "per_individual": {"l2_clip": 64.0}},
}
SIGMA: Final = 10**6
ROWS_AT_ONCE: Final = 2**21
ROWS_OF_UPLOAD: Final = 10**6
States = dict[str, tuple[DatasetState, list[int]]]  # by the number of shards, and the backend where it is another one
ARROW: Final = "application/vnd.apache.arrow.stream"


def plan_of(schema: Schema, query: Mapping[str, object], people: int) -> Plan:
    """The plan of a query that charges little, so that everybody can pay for all of them."""
    body = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": SIGMA}, "reuse": False} | dict(query)
    return compile_query(parse_query(orjson.dumps(body)), schema, capacity=people, budget_units=UNITS_PER_RHO)


@contextmanager
def divided(
    schema: Schema, people: int, events: int, count: int, ray: RayHead | None = None
) -> Iterator[tuple[DatasetState, list[int]]]:
    """(state of a dataset over `count` processes, their ids). With a `count` of 1 there are no other processes."""
    state = state_on(schema, people)
    backend = ProcessShards() if ray is None else RayShards(ray.address)
    channels = backend.open(state.record, count) if count > 1 else []
    if channels:
        state.shards = DividedShards(channels)
    source, shards = np.random.default_rng(1), state.shards
    shards.load(state.record, slots=people, number=0)
    for first in range(0, people, ROWS_AT_ONCE):
        slots = np.arange(first, min(first + ROWS_AT_ONCE, people))
        rich, nobody = np.full(slots.size, UNITS_PER_RHO), np.zeros(slots.size, dtype=np.bool_)
        shards.set_accounts(SlotsInUse(slots=slots, limits=rich, present=~nobody, paused=nobody))
    for name, table in schema.tables.items():
        codings = codings_of(table.columns).items()
        for first in range(0, people if name == "people" else events, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, people if name == "people" else events)
            owners = np.arange(first, last) if name == "people" else np.sort(source.integers(0, people, last - first))
            columns = {key: source.integers(0, each.span + 1, owners.size).astype(each.dtype) for key, each in codings}
            shards.add_rows(name, owners, columns)
    shards.index_categories()
    shards.reset_spent()
    state.slots_used = people
    try:
        pids = [each.pid for each in channels if isinstance(each, ProcessShard) and each.pid is not None]
        yield state, pids + (ray.shards() if ray is not None else [])
    finally:
        shards.close()


def processor_s(pids: Sequence[int]) -> float:
    """The processor time so far of this process and of the others."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return used.ru_utime + used.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(pids: Sequence[int]) -> int:
    """The resident memory of this process and of the others."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) for pid in (os.getpid(), *pids)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def forget_peak() -> None:
    """Have the kernel measure the peak of this process anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(pids: Sequence[int]) -> int:
    """The sum of the largest resident memory of this process and of each other since `forget_peak`."""
    peaks = []
    for pid in (os.getpid(), *pids):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        peaks += [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return 1024 * sum(peaks)


class LateThread:
    """Sleeps for a millisecond again and again, and notes how late it wakes."""

    def __init__(self) -> None:
        self.late_ms: list[float] = []
        self.is_on = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while self.is_on:
            began = time.perf_counter()
            time.sleep(0.001)
            self.late_ms.append((time.perf_counter() - began) * 1000 - 1)

    def end(self) -> float:
        """The lateness at the 99th percentile."""
        self.is_on = False
        return float(np.percentile(self.late_ms, 99)) if self.late_ms else 0.0


def measured(states: States, work: Callable[[DatasetState], object], rounds: int) -> dict[str, object]:
    """Measure one piece of work on every number of shards in turn."""
    wall: dict[str, list[float]] = {count: [] for count in states}
    used: dict[str, list[float]] = {count: [] for count in states}
    late: dict[str, list[float]] = {count: [] for count in states}
    for _ in range(rounds + 1):
        for count, (state, pids) in states.items():
            thread, began, before = LateThread(), time.perf_counter(), processor_s(pids)
            work(state)
            wall[count].append((time.perf_counter() - began) * 1000)
            used[count].append(processor_s(pids) - before)
            late[count].append(thread.end())
            if not state.shards.take_prepared():
                state.shards.prepare()
    first = next(iter(states))
    ms = {count: median(each[1:]) for count, each in wall.items()}
    processor = {count: sum(each[1:]) for count, each in used.items()}
    return {
        "ms": {count: round(each, 2) for count, each in ms.items()},
        "ratio": {count: round(ms[first] / each, 2) for count, each in ms.items()},
        "processor": {count: round(each / max(processor[first], 1e-9), 2) for count, each in processor.items()},
        "late_ms": {count: round(median(each[1:]), 1) for count, each in late.items()},
    }


def over_http(people_count: int, counts: Sequence[int], rounds: int) -> None:
    """Measure a sparse count and a dense sum of a service for each number of shards, in turn; then kill a shard."""
    queries: dict[str, dict[str, object]] = {
        "sparse count": {"where": {"eq": [{"col": "country"}, 7]}},
        "dense sum": {"select": [{"sum": {"column": "age"}}]},
    }
    with ExitStack() as opened:
        rigs = {}
        for count in counts:
            home = opened.enter_context(throw_away_home())
            environment = {"SPARING_SHARDS": str(count), "SPARING_RELEASE_SLOT_MS": "0"}
            rig = rigs[count] = opened.enter_context(serving(home, environment=environment))
            capacity = max(2**21, people_count)
            rig.curator.post("/v1/datasets", json={**DATASET, "capacity": capacity}).raise_for_status()
            began, table = time.perf_counter(), people(people_count)
            for first in range(0, people_count, ROWS_OF_UPLOAD):
                body = arrow_bytes(table.slice(first, ROWS_OF_UPLOAD))
                where = "/v1/datasets/million/tables/people/rows"
                rig.curator.post(where, content=body, headers={"Content-Type": ARROW}).raise_for_status()
            print(json.dumps({"shards": count, "upload_s": round(time.perf_counter() - began, 1)}), flush=True)
        for name, query in queries.items():
            ms: dict[int, list[float]] = {count: [] for count in rigs}
            for number in range(rounds + 3):
                for count, rig in rigs.items():
                    began = time.perf_counter()
                    ask(rig, f"{name} {number}", query).raise_for_status()
                    ms[count].append((time.perf_counter() - began) * 1000)
            found = {count: round(median(each[3:]), 2) for count, each in ms.items()}
            print(json.dumps({"query": name, "ms": found}), flush=True)
        for count, rig in rigs.items():
            if count > 1:
                print(json.dumps({"shards": count, "restart_s": round(restart_s(rig), 1)}), flush=True)


def ask(rig: Rig, key: str, query: Mapping[str, object]) -> httpx.Response:
    """The answer to a query that charges little."""
    asked = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": 10**6}, "reuse": False, **query}
    return rig.analyst.post("/v1/datasets/million/queries", json=asked, headers={"Idempotency-Key": key})


def restart_s(rig: Rig) -> float:
    """The seconds from the end of one shard to the next answer, under the key of the query that was lost."""
    os.kill(shards_of(rig.process.pid)[0], signal.SIGKILL)
    began = time.perf_counter()
    while ask(rig, "after a loss", {}).status_code != httpx.codes.OK:
        time.sleep(0.1)
    return time.perf_counter() - began


def shards_of(parent: int) -> list[int]:
    """The ids of the processes of shards that a process has started."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    pids = [int(pid) for each in children for pid in each.read_text(encoding="ascii").split()]
    return [pid for pid in pids if b"shards.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def side_by_side(counts: Sequence[int], asked: argparse.Namespace, head: RayHead | None) -> None:
    """Measure every query on each number of shards, and over Ray beside it. All datasets are held at the same time."""
    schema = Schema.model_validate(TABLES if asked.events else {"people": TABLES["people"]})
    states: States = {}
    with ExitStack() as opened:
        for count, over in product(counts, [None] if head is None else [None, head]):
            if count == 1 and over is not None:
                continue
            forget_peak()
            before, began = resident_bytes([]), time.perf_counter()
            name = f"{count} on Ray" if over is not None else str(count)
            states[name] = opened.enter_context(divided(schema, asked.people, asked.events, count, over))
            held = resident_bytes(states[name][1]) - before
            load_s = round(time.perf_counter() - began, 1)
            print(json.dumps({"shards": name, "load_s": load_s, "held_mb": held >> 20}), flush=True)
        trips = measured(states, lambda state: state.shards.pages_since(2**62), 200)
        print(json.dumps({"query": "round trip"} | trips), flush=True)
        for name, query in QUERIES.items():
            if asked.events or "from" not in query:
                plan = plan_of(schema, query, asked.people)
                found = measured(states, partial(_answer, plan), asked.rounds)
                print(json.dumps({"query": name} | found), flush=True)
        for name, (_, pids) in states.items() if asked.alone else ():
            print(json.dumps({"shards": name, "peak_mb": peak_bytes(pids) >> 20}), flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=4_000_000)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--shards", default="1,2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--backend", choices=["processes", "ray"], default="processes")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    counts = sorted({*map(int, asked.shards.split(","))} | (set() if asked.alone else {1}))
    if asked.http:
        over_http(asked.people, counts, asked.rounds)
        return
    with ExitStack() as opened:
        head = None
        if asked.backend == "ray":
            head = opened.enter_context(ray_head())
            os.environ.update(head.environment)
        for group in [[count] for count in counts] if asked.alone else [counts]:
            side_by_side(group, asked, head)


def _answer(plan: Plan, state: DatasetState) -> None:
    answer_in(state, plan, system_entropy)


if __name__ == "__main__":
    main()
