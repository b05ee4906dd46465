"""This checkout of the service beside another one, in one run: sparse counts, sums, uploads, and forwarded counts.

    git worktree add ../before <commit>
    python -m loadtests.compare_checkouts ../before --people 1000000

Both run in this checkout's environment, without release slots unless requests are forwarded. The load alternates
between them in short rounds. Medians give the ratios, above 1 where this checkout is faster.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from loadtests.bench_hot_path import DENSE, SECONDS, measured, ours
from loadtests.load import Target, load
from loadtests.rig import PEOPLE, Rig, count_query, register_people, serving, throw_away_home

T = TypeVar("T")

CONNECTIONS = (1, 16, 64)
PRINCIPALS = (1, 32)
FORWARDED_CONNECTIONS = 32
UPLOADED_PEOPLE = 100_000
WITHOUT_SLOTS = {"SPARING_RELEASE_SLOT_MS": "0"}
DENSE_QUERIES = {"count of everybody": count_query(), "sum": {**count_query(), **DENSE}}


def main() -> None:
    """Compare, and print a line for each load."""
    parser = argparse.ArgumentParser(prog="loadtests.compare_checkouts")
    parser.add_argument("before", type=Path, help="another checkout")
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--connections", type=int, nargs="*", default=CONNECTIONS, help="of the sparse counts")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    checkouts = (options.before.resolve(), None)
    with ExitStack() as stack:
        old, new = (stack.enter_context(alone(each, options.people)) for each in checkouts)
        for name, query in DENSE_QUERIES.items():
            compared(name, old, new, partial(dense_per_s, query=query), options.rounds)
        for connections in options.connections:
            compared(f"sparse at {connections}", old, new, partial(per_s, connections=connections), options.rounds)
        compared("uploads", old, new, uploads_per_s, options.rounds)
    with ExitStack() as stack:
        before, after = (stack.enter_context(forwarding(each, options.people)) for each in checkouts)
        for principals in PRINCIPALS:
            rate = partial(forwarded_per_s, principals=principals)
            compared(f"forwarded, {principals} asking", before, after, rate, options.rounds)


@contextmanager
def alone(checkout: Path | None, people_count: int) -> Iterator[Rig]:
    """Serve a checkout in one process, without release slots."""
    with throw_away_home() as home, serving(home, environment=WITHOUT_SLOTS, checkout=checkout) as rig:
        register_people(rig, people_count)
        yield rig


@contextmanager
def forwarding(checkout: Path | None, people_count: int) -> Iterator[list[Target]]:
    """Serve a checkout in two processes with release slots: an owner, and a neighbour that many analysts ask."""
    with throw_away_home() as home, serving(home, checkout=checkout) as owner:
        register_people(owner, people_count)
        load(ours(owner).target, connections=1, seconds=1)
        with serving(home, checkout=checkout) as neighbour:
            target = ours(neighbour).target
            asked = [{"role": "analyst", "name": f"asking {number}"} for number in range(max(PRINCIPALS))]
            keys = [owner.curator.post("/v1/principals", json=each).json()["key"] for each in asked]
            yield [replace(target, headers={"Authorization": f"Bearer {key}"}) for key in keys]


def compared(name: str, old: T, new: T, rate: Callable[[T], float], rounds: int) -> None:
    """Measure alternating rounds of both; each begins half of them."""
    rates: tuple[list[float], list[float]] = [], []
    for round_ in range(rounds):
        for place in (0, 1) if round_ % 2 else (1, 0):
            rates[place].append(rate((old, new)[place]))
    before, after = rates
    ratios = sorted(one / other for one, other in zip(after, before, strict=True))
    print(
        f"{name:22} {statistics.median(before):8.1f} and {statistics.median(after):8.1f} a second "
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


def uploads_per_s(rig: Rig) -> float:
    """Uploads a second, each of a hundred thousand people to a dataset of its own."""
    name = f"d{os.urandom(6).hex()}"
    started = time.perf_counter()
    register_people(rig, UPLOADED_PEOPLE, name=name)
    return 1 / (time.perf_counter() - started)


def forwarded_per_s(targets: list[Target], *, principals: int) -> float:
    """Sparse counts a second at a neighbour of the owner, by `principals` analysts over 32 connections in all."""
    return len(load(*targets[:principals], connections=FORWARDED_CONNECTIONS, seconds=SECONDS)) / SECONDS


if __name__ == "__main__":
    main()
