"""Replay one seed with a readable trace, or run a range of seeds: `python -m tests.simulation --seed 7`."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from tests.simulation.laws import LawBroken
from tests.simulation.world import World


def main() -> int:
    """Print what happens; 1 when a law breaks."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed with its trace")
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed of a range")
    parser.add_argument("--count", type=int, default=100, help="seeds in the range")
    parser.add_argument("--shares", action="store_true", help="give the replicas a cache that lies")
    parser.add_argument("--shortens", action="store_true", help="ask half of the counts under the clip rule")
    parser.add_argument("--varies", action="store_true", help="any accounting and a monitor; ticks and reduced sums")
    options = parser.parse_args()
    world = partial(World, shares=options.shares, shortens=options.shortens, varies=options.varies)
    if options.seed is not None:
        return _run([options.seed], partial(world, trace=_say))
    return _run(range(options.first, options.first + options.count), world)


def _run(seeds: "list[int] | range", world_of: Callable[[int], World]) -> int:
    faults, kinds = Counter[str](), Counter[str]()
    failed, steps, commits, entries, started = 0, 0, 0, 0, time.monotonic()
    for seed in seeds:
        world = world_of(seed)
        try:
            world.run()
        except LawBroken as broken:
            failed += 1
            _say(str(broken))
        faults += world.faults + (world.liar.counts if world.liar is not None else Counter())
        kinds += world.laws.kinds
        steps, commits, entries = steps + world.steps, commits + world.laws.commits, entries + world.laws.seq
    _say(
        f"{len(seeds)} seeds, {failed} failed, {steps} steps, {commits} commits, {entries} ledger entries,"
        f" {sum(faults.values())} faults in {time.monotonic() - started:.1f} s"
    )
    for counts in (faults, kinds):
        _say(", ".join(f"{kind} {count}" for kind, count in counts.most_common()))
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
