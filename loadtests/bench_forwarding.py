"""The cost of forwarding: a sparse count sent to the dataset's owner, and to its neighbour.

    python -m loadtests.bench_forwarding

Two processes run on one home, with the default release slots. One owns the dataset and holds every response until its
instant, so that the difference of the medians over one connection is the way there and back. Then come 64 connections:
all at the owner, all at the neighbour, and half at each, against a single process that owns the dataset by itself.
"""

import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from loadtests.load import Target, load
from loadtests.rig import Rig, arrow_bytes, count_query, people, processor_seconds, serving, throw_away_home

PEOPLE = 100_000
ROUNDS = 5
SECONDS = 2.0
MANY = 64
DATASET: dict[str, Any] = {
    "name": "shared",
    "guarantee": {"epsilon": 1, "delta": 1e-6},
    "capacity": PEOPLE,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {
                "age": {"type": "integer", "lower": 0, "upper": 120},
                "country": {"type": "category", "size": 50},
            },
        }
    },
}


def run() -> dict[str, float]:
    """The medians of rounds that take turns."""
    with throw_away_home() as home:
        alone = _alone(home)
        with _both(home) as (owner, other):
            return alone | _compared(owner, other)


def _alone(home: Path) -> dict[str, float]:
    with serving(home) as rig:
        rig.curator.post("/v1/datasets", json=DATASET).raise_for_status()
        rig.curator.post(
            "/v1/datasets/shared/tables/people/rows",
            content=arrow_bytes(people(PEOPLE)),
            headers={"Content-Type": "application/vnd.apache.arrow.stream"},
        ).raise_for_status()
        target = _target(rig)
        load(target, connections=MANY, seconds=SECONDS)
        done = [len(load(target, connections=MANY, seconds=SECONDS)) / SECONDS for _ in range(ROUNDS)]
    return {"alone_per_s": statistics.median(done)}


@contextmanager
def _both(home: Path) -> Iterator[tuple[Rig, Rig]]:
    """Two processes, of which the first has loaded the dataset and owns it."""
    with ExitStack() as stack:
        owner = stack.enter_context(serving(home))
        load(_target(owner), connections=1, seconds=1)
        yield owner, stack.enter_context(serving(home))


def _compared(owner: Rig, other: Rig) -> dict[str, float]:
    targets = {"owner": _target(owner), "other": replace(_target(owner), url=_target(other).url)}
    latencies: dict[str, list[float]] = {name: [] for name in targets}
    per_s: dict[str, list[float]] = {name: [] for name in (*targets, "both")}
    other_s: list[float] = []
    for target in targets.values():
        load(target, connections=MANY, seconds=SECONDS)
    for _ in range(ROUNDS):
        for name, target in targets.items():
            latencies[name] += load(target, connections=1, seconds=SECONDS)
            before_s = processor_seconds(other.process.pid)
            done = len(load(target, connections=MANY, seconds=SECONDS))
            per_s[name].append(done / SECONDS)
            if name == "other":
                other_s.append((processor_seconds(other.process.pid) - before_s) / done)
        with ThreadPoolExecutor(2) as crowd:
            halves = [crowd.submit(load, each, connections=MANY // 2, seconds=SECONDS) for each in targets.values()]
        per_s["both"].append(sum(len(half.result()) for half in halves) / SECONDS)
    figures = {f"{name}_ms": statistics.median(taken) * 1000 for name, taken in latencies.items()}
    figures |= {f"{name}_per_s": statistics.median(rates) for name, rates in per_s.items()}
    return figures | {"forwarding_processor_ms": statistics.median(other_s) * 1000}


def _target(rig: Rig) -> Target:
    def body(number: int) -> bytes:
        where = {"and": [{"eq": [{"col": "age"}, number % 120]}, {"eq": [{"col": "country"}, number % 50]}]}
        return orjson.dumps(count_query(where=where))

    headers = {"Authorization": rig.analyst.headers["Authorization"]}
    return Target(url=f"{rig.url}/v1/datasets/shared/queries", headers=headers, body=body)


def main() -> None:
    """Print the figures."""
    figures = run()
    extra_ms = figures["other_ms"] - figures["owner_ms"]
    print(f"one connection: {figures['owner_ms']:.2f} ms at the owner, {extra_ms:.2f} ms more at its neighbour")
    print(f"processor time of the neighbour: {figures['forwarding_processor_ms']:.2f} ms a request")
    for name in ("alone", "owner", "other", "both"):
        print(f"{MANY} connections, {name}: {figures[f'{name}_per_s']:.0f} a second")


if __name__ == "__main__":
    main()
