"""The durable hot path against a bare endpoint: the same body validated, one INSERT committed, the same Postgres.

    python -m loadtests.bench_hot_path

A sparse count on a million people, slots off. The bare endpoint is what anybody would write: FastAPI, a pydantic model
of the body, a psycopg pool of the same size, one INSERT of the body, one COMMIT, one worker. Both servers run side by
side; the load alternates between them in short rounds, at 1, 16 and 64 connections, and medians give the ratios.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from loadtests.rig import count_query, register_million, serving, throw_away_home
from service.store.embedded import attach_postgres

ROUNDS = 5
SECONDS = 2.0
CONNECTIONS = (1, 16, 64)
SPARSE = {"and": [{"eq": [{"col": "country"}, 7]}, {"eq": [{"col": "age"}, 33]}]}  # about 165 people


def run() -> dict[str, float]:
    """Requests per second and p99 in ms of both at each number of connections, and the ratios ours / bare."""
    figures: dict[str, float] = {}
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        register_million(rig)
        database_url = attach_postgres(home)
        with bare(str(database_url)) as bare_url:
            targets = {
                "ours": (f"{rig.url}/v1/datasets/million/queries", dict(rig.analyst.headers)),
                "bare": (f"{bare_url}/queries", {}),
            }
            for connections in CONNECTIONS:
                figures |= compare(targets, connections)
    return figures


def compare(targets: dict[str, tuple[str, dict[str, str]]], connections: int) -> dict[str, float]:
    """Interleaved rounds of both targets."""
    rates: dict[str, list[float]] = {name: [] for name in targets}
    tails: dict[str, list[float]] = {name: [] for name in targets}
    for _ in range(ROUNDS):
        for name, (url, headers) in targets.items():
            done = asyncio.run(load(url, headers, connections))
            rates[name].append(len(done) / SECONDS)
            tails[name].append(sorted(done)[int(0.99 * (len(done) - 1))] * 1000)
    figures = {f"{name}_per_s_at_{connections}": statistics.median(rate) for name, rate in rates.items()}
    figures |= {f"{name}_p99_ms_at_{connections}": statistics.median(tail) for name, tail in tails.items()}
    per_s, p99 = f"per_s_at_{connections}", f"p99_ms_at_{connections}"
    figures[f"ratio_{per_s}"] = figures[f"ours_{per_s}"] / figures[f"bare_{per_s}"]
    figures[f"ratio_{p99}"] = figures[f"ours_{p99}"] / figures[f"bare_{p99}"]
    return figures


async def load(url: str, headers: dict[str, str], connections: int) -> list[float]:
    """Seconds of every request that was answered within the round; each connection asks one after the other."""
    end = time.perf_counter() + SECONDS
    durations: list[float] = []
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(limits=limits, headers=headers, timeout=60, trust_env=False) as client:

        async def ask_on() -> None:
            while time.perf_counter() < end:
                started = time.perf_counter()
                key = os.urandom(12).hex()
                reply = await client.post(url, content=BODY, headers={"Idempotency-Key": key, **JSON})
                reply.raise_for_status()
                durations.append(time.perf_counter() - started)

        await asyncio.gather(*(ask_on() for _ in range(connections)))
    return durations


BODY = json.dumps(count_query(where=SPARSE)).encode()
JSON = {"Content-Type": "application/json"}


@contextmanager
def bare(database_url: str) -> Iterator[str]:
    """The bare endpoint as a process of its own."""
    command = [sys.executable, "-m", "loadtests.bare", database_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield (process.stdout.readline() if process.stdout else "").strip()
        finally:
            process.terminate()


def main() -> None:
    """Print the figures."""
    print(json.dumps(run(), indent=2))


if __name__ == "__main__":
    main()
