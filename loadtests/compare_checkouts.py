"""This checkout of the service beside another one, in one run: sparse counts, counts of everybody, and sums.

    git worktree add ../before <commit>
    python -m loadtests.compare_checkouts ../before --people 1000000

Both run in this checkout's environment, with release slots off. The load alternates between them in short rounds;
medians give the ratios, above 1 where this checkout is faster.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from loadtests.bench_hot_path import DENSE, measured, ours
from loadtests.rig import PEOPLE, Rig, count_query, register_people, serving, throw_away_home

CONNECTIONS = (1, 16, 64)
DENSE_QUERIES = {"count of everybody": count_query(), "sum": {**count_query(), **DENSE}}


def main() -> None:
    """Compare, and print a line for each load."""
    parser = argparse.ArgumentParser(prog="loadtests.compare_checkouts")
    parser.add_argument("before", type=Path, help="another checkout")
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--connections", type=int, nargs="*", default=CONNECTIONS, help="of the sparse counts")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    off = {"SPARING_RELEASE_SLOT_MS": "0"}
    with (
        throw_away_home() as old_home,
        throw_away_home() as new_home,
        serving(old_home, environment=off, checkout=options.before.resolve()) as old,
        serving(new_home, environment=off) as new,
    ):
        for rig in (old, new):
            register_people(rig, options.people)
        for name, query in DENSE_QUERIES.items():
            compared(name, old, new, partial(dense_per_s, query=query), options.rounds)
        for connections in options.connections:
            compared(f"sparse at {connections}", old, new, partial(per_s, connections=connections), options.rounds)


def compared(name: str, old: Rig, new: Rig, rate: Callable[[Rig], float], rounds: int) -> None:
    """Alternating rounds of both; each begins half of them."""
    rates: dict[int, list[float]] = {id(old): [], id(new): []}
    for round_ in range(rounds):
        for rig in (old, new) if round_ % 2 else (new, old):
            rates[id(rig)].append(rate(rig))
    before, after = rates[id(old)], rates[id(new)]
    ratios = sorted(one / other for one, other in zip(after, before, strict=True))
    print(
        f"{name:18} {statistics.median(before):8.1f} and {statistics.median(after):8.1f} a second "
        f"({1000 / statistics.median(before):.2f} and {1000 / statistics.median(after):.2f} ms), "
        f"ratio {statistics.median(after) / statistics.median(before):.3f}, "
        f"of the rounds {ratios[len(ratios) // 4]:.3f} to {ratios[-1 - len(ratios) // 4]:.3f}",
        flush=True,
    )


def per_s(rig: Rig, *, connections: int) -> float:
    """Sparse counts a second."""
    return measured(ours(rig), connections).per_s


def dense_per_s(rig: Rig, *, query: dict[str, object]) -> float:
    """Queries that touch everybody a second, one after the other."""
    headers = {"Idempotency-Key": os.urandom(12).hex()}
    started = time.perf_counter()
    rig.analyst.post("/v1/datasets/million/queries", json=query, headers=headers).raise_for_status()
    return 1 / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
