"""Steps of gradient descent over HTTP: how much longer they take than in process, and the bytes that one leaves.

    python -m loadtests.bench_steps [people]

`http_ms` is the median time of a logistic step with fifty features on a million people, from the request to the whole
answer, without slots. `engine_ms` is that of the same step in this process, with charges, filter and noise; the two run
in turn. `http_ratio` is their quotient.

`stored_kb` is what a softmax step of 60,000 people by 3,969 features and ten classes adds to the tables of the database
with their indexes, and `log_kb` what it adds to the write-ahead log, if the parameters come as an array. `again_*` are
the same if the step is asked by their hash. All are medians of a few steps with 39,690 parameters each.
"""

import hashlib
import io
import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final
from uuid import uuid4

import httpx
import numpy as np
import psycopg
import pyarrow as pa

from loadtests.bench_learning import FEATURES, ONE_THREAD, PEOPLE, QUERIES, made
from loadtests.in_process import asked
from loadtests.rig import Rig, arrow_bytes, serving, throw_away_home
from service.embedded import EmbeddedPostgres
from service.engine.memory import DatasetMemory

ROUNDS: Final = 9
STEPS: Final = 5
LONG_PEOPLE: Final = 60_000
LONG_FEATURES: Final = 3_969
CLASSES: Final = 10
WITHOUT_SLOTS: Final = {**ONE_THREAD, "SPARING_RELEASE_SLOT_MS": "0"}
TABLES: Final = ["ledger", "answers", "pieces", "parameters", "worst_cases", "heads"]
SIZES: Final = (
    "SELECT sum(pg_total_relation_size(name::regclass)), pg_current_wal_lsn() - '0/0' FROM unnest(%s) AS name"
)
NPZ: Final = {"Content-Type": "application/x-npz"}


def run(people: int = PEOPLE) -> dict[str, float]:
    """Measure both."""
    with throw_away_home() as home, serving(home, environment=WITHOUT_SLOTS) as rig:
        figures = over_http(rig, people)
        with psycopg.connect(str(EmbeddedPostgres(home).attach()), autocommit=True) as connection:
            return figures | stored(rig, connection)


def over_http(rig: Rig, people: int) -> dict[str, float]:
    """Measure a step by a request, and by the engine here."""
    memory = made(people)
    register_memory(rig, "steps", memory, people)
    step = asked(memory, QUERIES["logistic"], sigma=1000.0, capacity=people, budget_units=2**40)
    query = {"version": 1, "noise": {"sigma": 1000.0}, "reuse": False, **QUERIES["logistic"]}

    def request() -> httpx.Response:
        return answered(rig, "steps", json=query)

    http_ms, engine_ms = alternately_ms(request, step)
    return {"http_ms": http_ms, "engine_ms": engine_ms, "http_ratio": http_ms / engine_ms}


def register_memory(rig: Rig, name: str, memory: DatasetMemory, people: int) -> None:
    """Register a dataset of the individuals that `made` drew."""
    columns = memory.people.columns
    table = {"key": pa.array([f"p{n}" for n in range(people)])}
    table |= {f"c{n}": pa.array(columns[f"c{n}"][:people].astype(np.uint8)) for n in range(FEATURES)}
    table |= {"member": pa.array(columns["member"][:people] == 1)}
    numbers = {f"c{n}": {"type": "integer", "lower": 0, "upper": 100} for n in range(FEATURES)}
    declared = {"kind": "individuals", "key": "key", "columns": numbers | {"member": {"type": "boolean"}}}
    register(rig, name, declared, people, pa.table(table))


def stored(rig: Rig, connection: psycopg.Connection[tuple[Any, ...]]) -> dict[str, float]:
    """The bytes that long steps leave in the database, with their numbers and by their hash."""
    source = np.random.default_rng(1)
    table = {
        "key": pa.array([f"p{n}" for n in range(LONG_PEOPLE)]),
        "place": pa.array(source.integers(0, LONG_FEATURES, LONG_PEOPLE)),
        "digit": pa.array(source.integers(0, CLASSES, LONG_PEOPLE)),
    }
    columns = {"place": {"type": "category", "size": LONG_FEATURES}, "digit": {"type": "category", "size": CLASSES}}
    declared = {"kind": "individuals", "key": "key", "columns": columns}
    register(rig, "long", declared, LONG_PEOPLE, pa.table(table))
    found: dict[str, list[float]] = {"stored": [], "log": [], "again_stored": [], "again_log": []}
    for _ in range(STEPS):
        theta = source.normal(0, 0.01, (CLASSES, LONG_FEATURES))
        digest = hashlib.sha256(theta.astype("<f8").tobytes()).hexdigest()
        body = io.BytesIO()
        np.savez(body, query=json.dumps(long_step("@theta")), theta=theta)
        for name, sent in (
            ("", {"content": body.getvalue(), "headers": NPZ}),
            ("again_", {"json": long_step({"sha256": digest})}),
        ):
            before = place_in(connection)
            answered(rig, "long", **sent)
            sizes = np.subtract(place_in(connection), before) / 1000
            found[f"{name}stored"].append(float(sizes[0]))
            found[f"{name}log"].append(float(sizes[1]))
    return {f"{name}_kb": median(each) for name, each in found.items()}


def long_step(parameters: object) -> dict[str, Any]:
    """A softmax step with 39,690 parameters."""
    gradient = {"loss": "softmax", "target": "digit", "features": [{"one_hot": "place"}], "parameters": parameters}
    noise = {"sigma": 1000.0}
    return {"version": 1, "select": [{"gradient": gradient}], "noise": noise, "reuse": False, "rule": "clip"}


def place_in(connection: psycopg.Connection[tuple[Any, ...]]) -> tuple[int, int]:
    """The bytes of the tables that a query writes, with everything that belongs to them, and of the log so far."""
    ((size, log),) = connection.execute(SIZES, [TABLES]).fetchall()
    return int(size), int(log)


def register(rig: Rig, name: str, declared: dict[str, Any], people: int, table: pa.Table) -> None:
    """Register a dataset with a budget that no benchmark uses up."""
    promise = {"name": name, "guarantee": {"rho": "1000"}, "capacity": people, "tables": {"people": declared}}
    rig.curator.post("/v1/datasets", json=promise).raise_for_status()
    rig.curator.post(
        f"/v1/datasets/{name}/tables/people/rows",
        content=arrow_bytes(table),
        headers={"Content-Type": "application/vnd.apache.arrow.stream"},
    ).raise_for_status()


def answered(rig: Rig, dataset: str, *, headers: dict[str, str] | None = None, **sent: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own
    """The answer to one query under a new key."""
    keyed = {"Idempotency-Key": uuid4().hex, "Accept": "application/x-npz", **(headers or {})}
    response = rig.analyst.post(f"/v1/datasets/{dataset}/queries", headers=keyed, **sent)
    response.raise_for_status()
    return response


def alternately_ms(*calls: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """The median wall time of each call; all of them run in turn."""
    times_ms: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, taken in zip(calls, times_ms, strict=True):
            start = time.perf_counter()
            call()
            taken.append((time.perf_counter() - start) * 1000)
    return [median(taken[1:]) for taken in times_ms]  # the first one warms up


if __name__ == "__main__":
    if not ONE_THREAD.items() <= os.environ.items():
        command = [sys.executable, "-m", "loadtests.bench_steps", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | ONE_THREAD)  # noqa: S606 - itself, no shell
    print(json.dumps({name: round(value, 3) for name, value in run(*map(int, sys.argv[1:])).items()}, indent=1))
