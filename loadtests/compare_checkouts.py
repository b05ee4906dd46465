"""This checkout of the service beside another one, in one run: sparse counts and dense sums on a million people.

    git worktree add ../before <commit>
    python -m loadtests.compare_checkouts ../before

Both run in this checkout's environment, with release slots off. The load alternates between them in short rounds;
medians give the ratios, above 1 where this checkout is faster.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from loadtests.bench_hot_path import asked, measured, ours
from loadtests.rig import Rig, register_million, serving, throw_away_home

CONNECTIONS = (1, 16, 64)


def main() -> None:
    """Compare, and print a line for each load."""
    parser = argparse.ArgumentParser(prog="loadtests.compare_checkouts")
    parser.add_argument("before", type=Path, help="another checkout")
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
            register_million(rig)
        for connections in CONNECTIONS:
            compared(f"sparse at {connections}", old, new, partial(per_s, connections=connections), options.rounds)
        compared("dense", old, new, dense_per_s, options.rounds)


def compared(name: str, old: Rig, new: Rig, rate: Callable[[Rig], float], rounds: int) -> None:
    """Alternating rounds of both; each begins half of them."""
    rates: dict[int, list[float]] = {id(old): [], id(new): []}
    for round_ in range(rounds):
        for rig in (old, new) if round_ % 2 else (new, old):
            rates[id(rig)].append(rate(rig))
    before, after = rates[id(old)], rates[id(new)]
    ratios = sorted(one / other for one, other in zip(after, before, strict=True))
    print(
        f"{name:14} {statistics.median(before):8.1f} and {statistics.median(after):8.1f} a second, "
        f"ratio {statistics.median(after) / statistics.median(before):.3f}, "
        f"of the rounds {ratios[len(ratios) // 4]:.3f} to {ratios[-1 - len(ratios) // 4]:.3f}",
        flush=True,
    )


def per_s(rig: Rig, *, connections: int) -> float:
    """Sparse counts a second."""
    return measured(ours(rig), connections).per_s


def dense_per_s(rig: Rig) -> float:
    """Dense sums a second, one after the other."""
    started = time.perf_counter()
    asked(rig)
    return 1 / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
