"""The time of a million coordinates of noise: ours, numpy's plain normal, OpenDP's discrete Gaussian; and of entropy.

The samplers run in turn within one run, so that other load affects all alike; the figures are medians. OpenDP's exact
sampler works through coordinates one by one, so that it is measured on fewer and scaled up.
"""

import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from service.core.noise import rounded_gaussian
from service.store.entropy import system_entropy

COUNT = 1_000_000
OPENDP_COUNT = 20_000
ROUNDS = 9
SIGMA = 1000.0


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def run() -> dict[str, float]:
    """Medians in milliseconds for 10^6 coordinates (or words), and the ratios that the service promises."""
    dp.enable_features("contrib")
    discrete = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float), scale=SIGMA)
    zeros = [0] * OPENDP_COUNT
    normal = np.random.default_rng()
    works: dict[str, tuple[Callable[[], object], int]] = {
        "numpy_standard_normal_ms": (lambda: normal.standard_normal(COUNT), COUNT),
        "rounded_gaussian_ms": (lambda: rounded_gaussian(COUNT, SIGMA, system_entropy), COUNT),
        "rounded_gaussian_sigma_2_28_ms": (lambda: rounded_gaussian(COUNT, 2.0**28, system_entropy), COUNT),
        "rounded_gaussian_sigma_2_32_ms": (lambda: rounded_gaussian(COUNT, 2.0**32, system_entropy), COUNT),
        "opendp_discrete_gaussian_ms": (lambda: discrete(zeros), OPENDP_COUNT),
        # A word for each coordinate, by the 2^16 that a chunk of noise asks for.
        "entropy_aes_ctr_ms": (lambda: [system_entropy(2**16) for _ in range(16)], 2**20),
        "entropy_urandom_ms": (lambda: [os.urandom(2**19) for _ in range(16)], 2**20),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, (work, count) in works.items():
            times[name].append(seconds(work) * COUNT / count * 1e3)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ours = medians["rounded_gaussian_ms"]
    return medians | {
        "times_numpy_standard_normal": ours / medians["numpy_standard_normal_ms"],
        "times_faster_than_opendp": medians["opendp_discrete_gaussian_ms"] / ours,
        "urandom_over_aes_ctr": medians["entropy_urandom_ms"] / medians["entropy_aes_ctr_ms"],
    }


def main() -> None:
    """Print every figure on a line of its own."""
    for name, figure in run().items():
        print(f"{name:36} {figure:12.2f}")


if __name__ == "__main__":
    main()
