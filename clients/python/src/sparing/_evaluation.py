"""The quality of a model's predictions, from noisy counts of predictions and targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, nan, sqrt

import numpy as np

from sparing._answers import Answer
from sparing._design import Doubles
from sparing._rooms.estimates import RELIABLE_MIN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """The quality of a model's predictions; the standard errors cover both the noise and the sampling of individuals.

    If the number of individuals is not positive, the other numbers are NaN.
    """

    n_individuals: float
    accuracy: float
    accuracy_se: float
    auc: float | None  # the area under the ROC curve; None of more than two classes
    auc_se: float | None
    coverage_certified: bool  # of every answer that it is worked out from
    answers: Sequence[Answer] = field(repr=False)
    calibration: Doubles | None = field(repr=False)  # (bins, 2): individuals by log-odds, and those with the target


def evaluation_of_bins(answer: Answer, bins: int, *, negative: int) -> Evaluation:
    """The evaluation from counts by target and bin of the log-odds; the first `negative` bins lie below 0."""
    cells, sigma = np.array(answer.values, dtype=np.float64).reshape(2, bins), answer.sigmas[0]
    is_right = np.zeros((2, bins), dtype=np.bool_)
    is_right[0, :negative] = is_right[1, negative:] = True
    whole, right = float(cells.sum()), float(cells[is_right].sum())
    auc, auc_se = _area(cells, sigma)
    return Evaluation(
        n_individuals=whole,
        accuracy=_share(right, whole),
        accuracy_se=_share_error(right, whole, sigma**2 * bins, sigma**2 * bins),
        auc=auc,
        auc_se=auc_se,
        coverage_certified=answer.coverage_certified,
        answers=(answer,),
        calibration=np.stack([cells.sum(axis=0), cells[1]], axis=1),
    )


def evaluation_of_counts(right: Answer, whole: Answer) -> Evaluation:
    """The evaluation from the count of correctly predicted individuals and the count of all individuals."""
    found, of = float(right.values[0]), float(whole.values[0])
    return Evaluation(
        n_individuals=of,
        accuracy=_share(found, of),
        accuracy_se=_share_error(found, of, right.sigmas[0] ** 2, whole.sigmas[0] ** 2, are_independent=True),
        auc=None,
        auc_se=None,
        coverage_certified=right.coverage_certified and whole.coverage_certified,
        answers=(right, whole),
        calibration=None,
    )


def _share(right: float, whole: float) -> float:
    return right / whole if whole > 0 else nan


def _share_error(
    right: float, whole: float, right_variance: float, rest_variance: float, *, are_independent: bool = False
) -> float:
    """The standard error of right / whole, from noise and sampling.

    The whole is right + rest, where `rest_variance` is the noise variance of the rest. With `are_independent`, the
    whole is counted by itself, and `rest_variance` is its own noise variance.
    """
    if whole <= 0:
        return nan
    share = right / whole
    slope = 1.0 if are_independent else 1 - share
    noise = (slope**2 * right_variance + share**2 * rest_variance) / whole**2
    return sqrt(noise + max(share * (1 - share), 0.0) / whole)


def _area(cells: Doubles, sigma: float) -> tuple[float, float]:
    """The area under the ROC curve, with ties counted half, and its standard error.

    The error is infinite if the number of individuals with the target, or without it, is too small beside the noise.

    The error from the noise follows from the derivative in each cell. The error from sampling follows from each
    individual's share of correctly ordered pairs (DeLong, DeLong & Clarke-Pearson, Biometrics 44 (1988)).
    """
    without, having = (float(row.sum()) for row in cells)
    if without <= 0 or having <= 0:
        return nan, nan
    is_reliable = min(without, having) >= RELIABLE_MIN * sigma * sqrt(cells.shape[1])
    below = np.cumsum(cells[0]) - cells[0] / 2  # of those without the target, for each bin
    above = having - np.cumsum(cells[1]) + cells[1] / 2
    pairs = without * having
    area = float(cells[1] @ below) / pairs
    slopes = np.stack([above - area * having, below - area * without]) / pairs
    variance = sigma**2 * float((slopes**2).sum()) + max(float((cells * slopes**2).sum()), 0.0)
    return area, sqrt(variance) if is_reliable else inf
