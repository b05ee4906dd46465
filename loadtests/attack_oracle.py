"""Ten thousand requests under load; every slot, sequence and instant is recomputed from the public events.

    python -m loadtests.attack_oracle [requests]

The same as tests/leaks/test_oracle.py with any number of requests. The exit status is 1 if anything differs.
"""

import statistics
import sys

from loadtests.rig import throw_away_home
from tests.leaks.listening import loaded, queries

REQUESTS = 10_000


def main() -> int:
    """Ask, recompute, and print all differences and the lateness of answers."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS
    with throw_away_home() as home:
        load = loaded(home / "home", requests)
    oracle = load.oracle()
    foretold = [(n, oracle.foretold[n].begins_ns, oracle.foretold[n].leaves_ns) for n in oracle.order]
    begun = load.begun()
    differing = sum(one != other for one, other in zip(foretold, begun, strict=False)) + abs(len(foretold) - len(begun))
    answered = queries(load, oracle)
    misplaced = sum(query.sequence != query.foretold for query in answered)
    late_ms = sorted(query.late_ms for query in answered)
    print(f"{requests} requests, {load.gone} of them left by their clients, {len(begun)} begun")
    print(f"slots that differ from those foretold: {differing}; sequences: {misplaced} of {len(answered)}")
    print(f"answers before their instant: {sum(each < 0 for each in late_ms)}; late by the server: {load.overruns}")
    print(
        f"ms after the instant: median {statistics.median(late_ms):.2f}, 99 % {late_ms[int(0.99 * len(late_ms))]:.2f}"
    )
    return 1 if differing or misplaced or late_ms[0] < 0 else 0


if __name__ == "__main__":
    sys.exit(main())
