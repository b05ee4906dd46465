"""The time that the accountants without a filter take: losses of 10^4 equal steps, and orders of many individuals.

    python -m loadtests.bench_accountants [--quick]

- The epsilon of 10,000 equal steps by privacy loss distributions, in both directions, with nothing kept from before:
  of a full batch and Poisson-subsampled, the median of some rounds. It may take at most 1 s.
- Rényi divergences of 60,000 individuals over 1,000 steps at 16 orders. Each step has a new norm of each individual,
  which is rounded up into one of 256 cells of a grid and counted. A table of exact divergences by cell and order, made
  within the measured time, gives the sums. It may take at most 10 s. The norms are drawn before.

Times are processor time of the process, which does not depend on other load, with wall time beside it. The exit status
is 1 if either takes longer. --quick takes a tenth of the individuals and of the steps, and bounds nothing.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sparing.research.noise_grid import OwnSteps, grid_of_equal_ratios
from sparing.research.privacy_loss import Steps, epsilon_of_steps, losses_of

INDIVIDUALS, STEPS, CELLS = 60_000, 1_000, 256
ORDERS = (1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 48, 64)
LOSSES_S_MAX, ORDERS_S_MAX = 1.0, 10.0
EQUAL_STEPS = {
    "full batch, mu .01": Steps(0.01, 1.0, 10_000),
    "q = .01, mu .5": Steps(0.5, 0.01, 10_000),
    "q = .001, mu 1": Steps(1.0, 0.001, 10_000),
}
ROUNDS = 5


class Taken(NamedTuple):
    """Seconds of processor and of wall time, and the result of the work."""

    processor_s: float
    wall_s: float
    result: float


def taken(work: Callable[[], float]) -> Taken:
    """The time and the result of one call."""
    processor, wall = time.process_time(), time.perf_counter()
    result = work()
    return Taken(time.process_time() - processor, time.perf_counter() - wall, result)


def losses(steps: Steps) -> Taken:
    """Measure the time of one epsilon."""
    losses_of.cache_clear()
    return taken(lambda: epsilon_of_steps([steps], delta=1e-5))


def orders(individuals: int, steps: int) -> Taken:
    """Measure the recording of all steps and the divergences; the result is the largest divergence."""
    rng = np.random.default_rng(31)
    own = OwnSteps(grid_of_equal_ratios(1e-3, 1.0, intervals=CELLS - 1), individuals)
    norms = [rng.uniform(0, 1, individuals) ** 2 for _ in range(16)]

    def work() -> float:
        for step in range(steps):
            own.record(norms[step % len(norms)], sigma=1.0)
        return float(own.divergences(rate=0.01, orders=ORDERS).max())

    return taken(work)


def shown(measured: Taken) -> str:
    """Both times as text."""
    return f"{measured.processor_s:7.3f} s of processor, {measured.wall_s:7.3f} s in all"


def main() -> int:
    """Print the figures; 1 if one is beyond its bound."""
    parser = argparse.ArgumentParser(prog="loadtests.bench_accountants", description="Time the accountants.")
    parser.add_argument("--quick", action="store_true", help="a tenth of all, and nothing asked")
    quick = parser.parse_args().quick
    late = 0
    for name, steps in EQUAL_STEPS.items():
        measured = sorted(losses(steps) for _ in range(1 if quick else ROUNDS))[ROUNDS // 2 if not quick else 0]
        late += measured.processor_s > LOSSES_S_MAX
        print(f"losses of 10,000 steps, {name:20} {shown(measured)}   epsilon {measured.result:.6f}", flush=True)
    individuals, count = (INDIVIDUALS // 10, STEPS // 10) if quick else (INDIVIDUALS, STEPS)
    measured = orders(individuals, count)
    late += measured.processor_s > ORDERS_S_MAX
    name = f"{len(ORDERS)} orders, {individuals:,} individuals, {count:,} steps"
    print(f"{name:43} {shown(measured)}   largest {measured.result:.6f}")
    if late and not quick:
        print(f"{late} figures are beyond {LOSSES_S_MAX} s and {ORDERS_S_MAX} s")
    return 1 if late and not quick else 0


if __name__ == "__main__":
    sys.exit(main())
