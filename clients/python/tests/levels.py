"""How precise levels of bins make a median, from the variances of consistent counts."""

import math
from typing import Any

from sparing import bin_levels
from sparing._nested_counts import NestedCounts, NoisyLevel, WeightedSum


def deviation(bins: int, branching: int, *, cuts_every: int = 1) -> tuple[int, float]:
    """The number of levels, and the root mean square deviation of the rows below a median, for a rho of 1/2 in all."""
    levels: list[Any] = [group.json["bin"] for group in bin_levels("age", range(bins + 1), branching=branching)]
    noisy = [
        NoisyLevel(bounds=tuple(level["edges"]), counts=(0.0,) * (len(level["edges"]) - 1), variance=float(len(levels)))
        for level in levels
    ]
    counts = NestedCounts(noisy)
    sums = [WeightedSum(cuts=(0, cut, bins), weights=(0.5, -0.5)) for cut in range(1, bins, cuts_every)]
    return len(levels), math.sqrt(math.fsum(map(counts.variance, sums)) / len(sums))
