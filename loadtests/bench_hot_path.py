"""The durable hot path against a bare endpoint: the same body validated, one INSERT committed, the same Postgres.

    python -m loadtests.bench_hot_path

The query is a sparse count on a million people, with slots off. The bare endpoint is the usual code: FastAPI, a
pydantic model of the body, a psycopg pool of the same size, one INSERT of the body, one COMMIT, one worker. Both
servers run side by side. The load alternates between them in short rounds, at 1, 16 and 64 connections, and medians
give the ratios. Successive requests differ, because the values of the condition go round.

A floor runs beside them: the bare endpoint plus everything that has to be durable before an answer may leave, that is
an entry, an answer, a head and a synced record outside the database (`loadtests.bare`).

The dense query follows, in which each person is charged a different amount, against bare numpy and an INSERT of the
same eight megabytes. Recovery and bytes in the ledger are in the report of `loadtests.bench_restart`.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray

from loadtests.load import Target, load
from loadtests.rig import Rig, count_query, people, processor_seconds, register_people, serving, throw_away_home
from service.embedded import EmbeddedPostgres

ROUNDS = 5
SECONDS = 2.0
CONNECTIONS = (1, 16, 64)
DENSE_ROUNDS = 9
DENSE = {"select": [{"sum": {"column": "age"}}], "noise": {"sigma": 500_000.0}}


@dataclass(frozen=True)
class Server:
    """A server and its process."""

    target: Target
    pid: int


@dataclass(frozen=True)
class Round:
    """One round: requests a second, ms of the slowest in a hundred, and processor ms of each request."""

    per_s: float
    p99_ms: float
    processor_ms: float


def run() -> dict[str, float]:
    """The figures of all servers at each number of connections and of the dense query, and ratios to the bare ones."""
    figures: dict[str, float] = {}
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        register_people(rig)
        database_url = str(EmbeddedPostgres(home).attach())
        with bare(database_url) as bare_server, bare(database_url, str(home / "floor")) as floor_server:
            servers = {"ours": ours(rig), "bare": bare_server, "floor": floor_server}
            for connections in CONNECTIONS:
                figures |= compare(servers, connections)
        figures |= dense(rig, database_url)
    return figures


def compare(servers: dict[str, Server], connections: int) -> dict[str, float]:
    """Measure alternating rounds of all servers."""
    rounds: dict[str, list[Round]] = {name: [] for name in servers}
    for _ in range(ROUNDS):
        for name, server in servers.items():
            rounds[name].append(measured(server, connections))
    figures: dict[str, float] = {}
    for figure in ("per_s", "p99_ms", "processor_ms"):
        medians = {name: statistics.median(getattr(each, figure) for each in rounds[name]) for name in servers}
        figures |= {f"{name}_{figure}_at_{connections}": value for name, value in medians.items()}
        figures[f"ratio_{figure}_at_{connections}"] = medians["ours"] / medians["bare"]
        figures[f"floor_ratio_{figure}_at_{connections}"] = medians["floor"] / medians["bare"]
    return figures


def measured(server: Server, connections: int) -> Round:
    """Measure one round."""
    before_s = processor_seconds(server.pid)
    done = sorted(load(server.target, connections=connections, seconds=SECONDS))
    spent_s = processor_seconds(server.pid) - before_s
    return Round(
        per_s=len(done) / SECONDS,
        p99_ms=done[int(0.99 * (len(done) - 1))] * 1000,
        processor_ms=spent_s / len(done) * 1000,
    )


def dense(rig: Rig, database_url: str) -> dict[str, float]:
    """The medians of the dense query and of its bare equivalent, in turn."""
    ages = people()["age"].to_numpy().astype(np.int64)
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE bare_charges (charges bytea)")
        connection.commit()
        calls: dict[str, Callable[[], object]] = {
            "ours": lambda: asked(rig),
            "evaluation": lambda: charges_of(ages),
            "write": lambda: written(connection, charges_of(ages).astype(">i8").tobytes()),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(DENSE_ROUNDS):
            for name, call in calls.items():
                started = time.perf_counter()
                call()
                times[name].append((time.perf_counter() - started) * 1000)
    medians = {f"dense_{name}_ms": statistics.median(taken) for name, taken in times.items()}
    return medians | {"dense_ratio": medians["dense_ours_ms"] / medians["dense_write_ms"]}


def asked(rig: Rig) -> None:
    """Ask the dense query once."""
    key = os.urandom(12).hex()
    body = {**count_query(), **DENSE}
    rig.analyst.post("/v1/datasets/million/queries", json=body, headers={"Idempotency-Key": key}).raise_for_status()


def charges_of(ages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every individual's charge and the sum, as bare as can be."""
    total = int(ages.sum())
    return ages * ages * (2**40 // 2 // 500_000**2 + total % 2)


def written(connection: psycopg.Connection[tuple[object, ...]], charges: bytes) -> None:
    """Insert the charges, and commit."""
    connection.execute("INSERT INTO bare_charges VALUES (%b)", [charges])
    connection.commit()


def ours(rig: Rig) -> Server:
    """The service's route as a server."""
    headers = {"Authorization": str(rig.analyst.headers["authorization"])}
    url = f"{rig.url}/v1/datasets/million/queries"
    return Server(Target(url=url, headers=headers, body=sparse), rig.process.pid)


@contextmanager
def bare(database_url: str, *witness: str) -> Iterator[Server]:
    """Serve the bare endpoint in another process; with a file to sync it is the floor."""
    command = [sys.executable, "-m", "loadtests.bare", database_url, *witness]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = (process.stdout.readline() if process.stdout else "").strip()
            yield Server(Target(url=f"{url}/queries", headers={}, body=sparse), process.pid)
        finally:
            process.terminate()


def sparse(number: int) -> bytes:
    """A count of about 165 people; its condition depends on the number."""
    country, age = number * 7919 % 50, number * 104_729 % 121
    where = {"and": [{"eq": [{"col": "country"}, country]}, {"eq": [{"col": "age"}, age]}]}
    return json.dumps(count_query(where=where)).encode()


def main() -> None:
    """Print the figures."""
    print(json.dumps(run(), indent=2))


if __name__ == "__main__":
    main()
