"""Replay one seed with a readable trace, or run a range of seeds: `python -m tests.simulation --seed 7`."""

import argparse
import sys
import time
from collections import Counter

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
    options = parser.parse_args()
    drawn = {"shares": options.shares, "shortens": options.shortens}
    if options.seed is not None:
        return _run([options.seed], is_traced=True, **drawn)
    return _run(range(options.first, options.first + options.count), is_traced=False, **drawn)


def _run(seeds: "list[int] | range", *, is_traced: bool, shares: bool, shortens: bool) -> int:
    faults: Counter[str] = Counter()
    failed, steps, commits, entries, started = 0, 0, 0, 0, time.monotonic()
    for seed in seeds:
        world = World(seed, shares=shares, shortens=shortens, trace=_say if is_traced else None)
        try:
            world.run()
        except LawBroken as broken:
            failed += 1
            _say(str(broken))
        faults += world.faults + (world.liar.counts if world.liar is not None else Counter())
        steps, commits, entries = steps + world.steps, commits + world.laws.commits, entries + world.laws.seq
    _say(
        f"{len(seeds)} seeds, {failed} failed, {steps} steps, {commits} commits, {entries} ledger entries,"
        f" {sum(faults.values())} faults in {time.monotonic() - started:.1f} s"
    )
    _say(", ".join(f"{kind} {count}" for kind, count in faults.most_common()))
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
