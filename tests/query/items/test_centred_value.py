"""The parts of the cost that the linear items of means and variances get: no other division is better on average."""

from typing import Any

import numpy as np

from service.query.items.centred_value import MEAN_PARTS, VARIANCE_PARTS


def mean_error(parts: tuple[float, float], u: Any) -> Any:
    """The square of a mean's error, by the delta method, with the mean u half distances from the middle."""
    of_sum, of_count = (part / sum(parts) for part in parts)
    return 1 / of_sum + u**2 / of_count


def variance_error(parts: tuple[float, float, float], u: Any, v: Any) -> Any:
    """The square of a variance's error, where the variance is v square half distances."""
    of_sum, of_count, of_squares = (part / sum(parts) for part in parts)
    return 0.25 / of_squares + 4 * u**2 / of_sum + (u**2 + 0.5 - v) ** 2 / of_count


def test_no_other_division_is_better_on_average() -> None:
    """Over means from bound to bound, and over the variances that such a mean allows; to a part in a thousand."""
    u = np.linspace(-1, 1, 2001)
    others = [float(np.mean(mean_error((of_sum, 1), u))) for of_sum in np.geomspace(0.1, 10, 100)]
    assert np.mean(mean_error(MEAN_PARTS, u)) <= min(others) * 1.001
    worst = mean_error(MEAN_PARTS, u) / (1 + abs(u)) ** 2
    assert worst[-1] < 1.081
    assert max(worst) < 1.58

    v = np.linspace(0, 1, 101)[:, np.newaxis] * (1 - u**2)
    grid = np.geomspace(0.3, 5, 15)
    others = [float(np.mean(variance_error((s, n, 1), u, v))) for s in grid for n in grid]
    assert np.mean(variance_error(VARIANCE_PARTS, u, v)) <= min(others) * 1.001
    assert np.mean(variance_error((1, 1, 1), u, v)) > min(others) * 1.05
