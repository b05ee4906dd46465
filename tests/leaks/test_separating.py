"""The statistic of the timing attack: it finds what is there, in either direction, and nothing where nothing is."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from loadtests.separating import Separation, auc, auc_interval, separation, share_interval

TRIES = 100
ERROR = 0.05
Numbers = NDArray[np.float64]


def worlds(tries: int = TRIES) -> NDArray[np.bool_]:
    """Half of the tries in each world, in turn."""
    return np.tile([False, True], tries)


def found(seed: int, shift: float, *, others: int = 5, error: float = ERROR) -> Separation:
    """The finding for a feature that is larger by `shift` in world 1, among others that tell nothing."""
    source = np.random.default_rng(seed)
    features = {f"noise {n}": source.normal(size=2 * TRIES) for n in range(others)}
    features["duration"] = source.normal(size=2 * TRIES) + shift * worlds()
    return separation(worlds(), features, error=error, source=source)


def test_where_nothing_differs_nothing_is_found() -> None:
    """In 300 pairs of equal worlds, six features each, no more are told apart than the error allows."""
    false_alarms = sum(found(seed, 0.0).low > 0.5 for seed in range(300))
    assert false_alarms <= binom.isf(1e-4, 300, ERROR)


@pytest.mark.parametrize("shift", [2.0, -2.0])
def test_a_shift_in_either_direction_is_found_and_named(shift: float) -> None:
    """The feature that differs is the one that is chosen, and its figures are far above one half."""
    separations = [found(seed, shift, error=1e-4) for seed in range(20)]
    assert {each.feature for each in separations} == {"duration"}
    assert all(each.auc.value > 0.8 and each.low > 0.55 for each in separations)


def test_an_area_beyond_the_limit_is_recognised_for_500_tries_among_200_pairs() -> None:
    """The weakest leak that an attack of that size must see: an area of 0.70."""
    shift = norm.ppf(0.70) * np.sqrt(2)
    source = np.random.default_rng(4)
    seen = []
    for _ in range(20):
        features = {"duration": source.normal(size=1000) + shift * worlds(500)}
        seen.append(separation(worlds(500), features, error=0.01 / 200, source=source).low > 0.55)
    assert sum(seen) >= 18


def test_values_that_are_frequent_in_one_world_are_found_without_an_order() -> None:
    """Durations at both ends in one world and in the middle in the other have equal medians, and are told apart."""
    source = np.random.default_rng(2)
    middle = source.normal(size=2 * TRIES)
    ends = source.choice([-6.0, 6.0], size=2 * TRIES) + source.normal(size=2 * TRIES)
    features = {"duration": np.where(worlds(), ends, middle)}
    separated = separation(worlds(), features, error=1e-4, source=source)
    assert separated.kind == "which"
    assert separated.low > 0.8


def test_a_constant_tells_nothing() -> None:
    """All statuses are 200: the area is one half exactly."""
    features = {"status": np.full(2 * TRIES, 200.0)}
    separated = separation(worlds(), features, error=ERROR, source=np.random.default_rng(1))
    assert (separated.auc.low, separated.auc.value, separated.auc.high) == (0.5, 0.5, 0.5)
    assert separated.guess.value == 0.5


@pytest.mark.parametrize("area", [0.5, 0.7, 0.95])
def test_the_interval_holds_the_true_area(area: float) -> None:
    """Normal durations whose area is known: the interval misses it no more often than it may."""
    source, shift, error = np.random.default_rng(3), norm.ppf(area) * np.sqrt(2), 0.05
    missed = 0
    for _ in range(500):
        interval = auc_interval(source.normal(size=2 * TRIES) + shift * worlds(), worlds(), error=error)
        missed += not interval.low <= area <= interval.high
    assert missed <= binom.isf(1e-4, 500, 1.3 * error)  # DeLong's interval is asymptotic


def test_ties_count_half() -> None:
    """Equal scores in both worlds are a coin's throw."""
    scores = np.array([1.0, 1.0, 1.0, 2.0])
    assert auc(scores, np.array([False, True, False, True])) == 0.75


def test_the_interval_of_a_share_is_clopper_and_pearsons() -> None:
    """No right guess of ten, and all of ten, at 95 %: 0.3085 and 0.6915, as in any table."""
    none, all_ = share_interval(0, 10, error=0.05), share_interval(10, 10, error=0.05)
    assert (none.low, round(none.high, 4)) == (0.0, 0.3085)
    assert (round(all_.low, 4), all_.high) == (0.6915, 1.0)


def test_too_few_tries_are_refused() -> None:
    """Seven of a world are too few to be halved."""
    with pytest.raises(ValueError, match="7 tries of a world are too few"):
        separation(worlds(7), {"duration": np.zeros(14)}, error=ERROR, source=np.random.default_rng(1))
