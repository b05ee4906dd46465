"""Tests of a sample against a rounded law; each returns a p-value, which a wrong sampler drives to zero."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CELLS_MAX = 200


def chi_square(draws: NDArray[np.int64], sigma: float, law: Any = stats.norm) -> float:
    """Pearson's test against F((k + 1/2)/sigma) - F((k - 1/2)/sigma), by cells of whole steps with 25 expected."""
    outermost = np.floor(law.isf(25 / draws.size) * sigma - 0.5) + 0.5
    edges = np.arange(-outermost, outermost + 0.5, max(1, 2 * outermost // CELLS_MAX))
    below = np.concatenate([[0], law.cdf(edges / sigma), [1]])
    counts = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    return float(stats.chisquare(counts, draws.size * np.diff(below)).pvalue)


def moments(draws: NDArray[np.int64], sigma: float) -> float:
    """Mean 0, variance sigma^2 + 1/12 and fourth moment, each by its standard error; the least p-value times three.

    For sigma of 3/4 or more, where the rounding error is as good as uniform and independent: 1e-4 of the variance.
    """
    variance = sigma**2 + 1 / 12
    fourth = 3 * sigma**4 + sigma**2 / 2 + 1 / 80
    standard = draws.astype(np.float64)
    deviations = [
        standard.mean() / np.sqrt(variance),
        ((standard**2).mean() - variance) / np.sqrt(fourth - variance**2),
        ((standard**4).mean() - fourth) / np.sqrt(96 * variance**4),
    ]
    return 3 * min(float(2 * stats.norm.sf(abs(deviation) * np.sqrt(draws.size))) for deviation in deviations)


def independence(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """A chi-square test of the table of both samples' octiles, which sees dependence in sign, size or both."""
    octile = [np.searchsorted(np.quantile(draws, np.arange(1, 8) / 8), draws) for draws in (one, other)]
    table = np.bincount(8 * octile[0] + octile[1], minlength=64).reshape(8, 8)
    return float(stats.chi2_contingency(table).pvalue)
