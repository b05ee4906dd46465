"""Sparse counts under the default slots: throughput over 64 connections, and the latency of a single one.

    python -m loadtests.bench_slots

At a capacity of a hundred thousand and of a million, each filled: waiting for slots is part of the time.
"""

import json
import os
import statistics
import sys
import time

from loadtests.bench_hot_path import measured, ours, sparse
from loadtests.rig import DATASET, Rig, arrow_bytes, people, serving, throw_away_home

CAPACITIES = (100_000, 1_000_000)
CONNECTIONS = 64
ROUNDS = 7
ALONE = 100


def run() -> dict[str, float]:
    """Medians."""
    figures: dict[str, float] = {}
    for capacity in CAPACITIES:
        with throw_away_home() as home, serving(home) as rig:
            register(rig, capacity)
            for number in range(10):
                ask_ms(rig, number)
            figures[f"alone_ms_at_{capacity}"] = statistics.median(ask_ms(rig, number) for number in range(ALONE))
            measured(ours(rig), CONNECTIONS)
            rates = [measured(ours(rig), CONNECTIONS).per_s for _ in range(ROUNDS)]
            figures[f"per_s_at_{capacity}"] = statistics.median(rates)
    return figures


def register(rig: Rig, capacity: int) -> None:
    """Register a dataset and fill it to its capacity."""
    rig.curator.post("/v1/datasets", json={**DATASET, "capacity": capacity}).raise_for_status()
    rig.curator.post(
        "/v1/datasets/million/tables/people/rows",
        content=arrow_bytes(people(capacity)),
        headers={"Content-Type": "application/vnd.apache.arrow.stream"},
    ).raise_for_status()


def ask_ms(rig: Rig, number: int) -> float:
    """One count, after which no other request waits."""
    headers = {"Idempotency-Key": os.urandom(12).hex(), "Content-Type": "application/json"}
    began = time.perf_counter()
    rig.analyst.post("/v1/datasets/million/queries", content=sparse(number), headers=headers).raise_for_status()
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    json.dump(run(), sys.stdout, indent=2)
    print()
