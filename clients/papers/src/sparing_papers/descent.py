"""Feldman and Zrnic 2021, Algorithm 3: full-batch gradient descent in which each individual pays for its own gradient.

A gradient is shortened to the clip C, and to the root of what its individual has left of the squared norm budget. Noise
of standard deviation sigma C is drawn once for each step. (The algorithm as printed would draw it once for each
individual.) Up to B_norm / C^2 steps the parameters are those of private descent without a filter, because until then
no individual can be short of its budget.

The model is linear, a softmax or a logistic regression. The gradient of an individual is (prediction - label) times its
features. The norm of the gradient is the product of both norms.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_papers.digits import CLASSES
from sparing_papers.labelled import Labelled

__all__ = [
    "LOGISTIC",
    "SOFTMAX",
    "Descent",
    "Fit",
    "LinearLoss",
    "area_under_curve",
    "fit",
    "losses",
    "percent_right",
    "softmax",
]

BLOCK: Final = 1000
"""The number of individuals whose features are worked on at a time."""

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearLoss:
    """The cross-entropy of a linear model, as functions of features (n, d), labels (n,) and parameters (rows, d)."""

    rows: int  # of the parameters
    errors: Callable[[Floats, Labels, Doubles], Floats]  # (n, rows): prediction less label
    losses: Callable[[Floats, Labels, Doubles], Doubles]  # (n,), nats


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """The settings of a descent. Lengths are in the unit of the features."""

    clip: float  # C: the longest that a gradient may be
    noise: float  # standard deviation of each coordinate of a sum, the paper's sigma C
    rate: float  # of a step, per mean gradient
    budget: float  # B_norm, the largest sum of squared lengths of an individual
    steps: int  # all of them; those beyond the certified ones rest on the filter

    @property
    def certified(self) -> int:
        """The number of steps that the budget pays for if every gradient is as long as the clip."""
        return math.floor(self.budget / self.clip**2 * (1 + 1e-12))

    @property
    def rho(self) -> float:
        """The zCDP of all steps, by Proposition 5.1."""
        return self.budget / (2 * self.noise**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The result of a descent."""

    parameters: dict[int, Doubles]  # (classes, d) by the number of steps before
    spent: dict[int, Doubles]  # (n,) squared lengths in all, by the same
    active: list[int]  # individuals with something left of their budget, before each step


def fit(
    data: Labelled,
    settings: Descent,
    seed: Sequence[int],
    *,
    loss: LinearLoss | None = None,
    kept: Iterable[int] = (),
    tell: Callable[[float], None] = lambda _: None,
) -> Fit:
    """Descend from zero. The state is kept after the numbers of steps in `kept`, and at the end.

    The loss is that of a softmax regression of ten classes, unless another is given. `tell` is called with the share of
    steps done. Equal seeds give equal fits on one machine, bit by bit.
    """
    model, source = loss or SOFTMAX, np.random.default_rng(seed)
    lengths = np.sqrt(np.einsum("ij,ij->i", data.train, data.train, dtype=np.float64))
    room = np.full(len(data.train), settings.budget)
    parameters = np.zeros((model.rows, data.train.shape[1]))
    wanted = {*kept, settings.steps}
    found = Fit(parameters={}, spent={}, active=[])
    for step in range(settings.steps + 1):
        if step in wanted:
            found.parameters[step], found.spent[step] = parameters, settings.budget - room
        if step == settings.steps:
            break
        found.active.append(int(np.count_nonzero(room > 0)))
        total, room = _summed(data, model, lengths, parameters, room, settings.clip)
        total += source.normal(0, settings.noise, total.shape)
        parameters = parameters - settings.rate / len(data.train) * total
        tell((step + 1) / settings.steps)
    return found


def _summed(
    data: Labelled, loss: LinearLoss, lengths: Doubles, parameters: Doubles, room: Doubles, clip: float
) -> tuple[Doubles, Doubles]:
    """The sum of all gradients, each as long as clip and room allow, and the room that is left.

    It goes block by block, so that a block's features stay in the processor's cache for both of its products.
    """
    total, left = np.zeros_like(parameters), np.empty_like(room)
    for start in range(0, len(room), BLOCK):
        block = slice(start, start + BLOCK)
        features, most = data.train[block], np.sqrt(room[block])
        errors = loss.errors(features, data.train_labels[block], parameters)
        norms = lengths[block] * np.sqrt(np.einsum("ij,ij->i", errors, errors, dtype=np.float64))
        counted = np.minimum(np.minimum(norms, clip), most)
        errors *= (counted / np.maximum(norms, np.finfo(float).tiny))[:, None].astype(np.float32)
        # The last of a budget leaves nothing behind, whatever its square was rounded to.
        left[block] = np.where(counted < most, np.maximum(room[block] - counted**2, 0), 0)
        total += errors.T @ features
    return total, left


def percent_right(features: Floats, labels: Labels, parameters: Doubles) -> float:
    """The percentage of images of which the digit is predicted."""
    return 100 * float(np.mean((features @ parameters.T.astype(np.float32)).argmax(axis=1) == labels))


def area_under_curve(features: Floats, labels: Labels, parameters: Doubles) -> float:
    """The chance that a row of label 1 has a higher score than a row of label 0; equal scores count half.

    It is found by ranks (Mann and Whitney 1947), where equal scores have the mean of their ranks. Raises ValueError if
    a label is missing.
    """
    positives = int(np.count_nonzero(labels == 1))
    negatives = len(labels) - positives
    if positives == 0 or negatives == 0:
        raise ValueError("an area under the curve needs both labels")
    scores = features @ parameters[0].astype(np.float32)
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float((ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def losses(features: Floats, labels: Labels, parameters: Doubles) -> Doubles:
    """The cross-entropy of each image, (n,)."""
    right = softmax(features, parameters)[np.arange(len(labels)), labels]
    return -np.log(np.maximum(right.astype(np.float64), 1e-12))


def softmax(features: Floats, parameters: Doubles) -> Floats:
    """The probabilities (n, classes) that a model gives to each digit."""
    scores = features @ parameters.T.astype(np.float32)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _softmax_errors(features: Floats, labels: Labels, parameters: Doubles) -> Floats:
    errors = softmax(features, parameters)
    errors[np.arange(len(errors)), labels] -= 1
    return errors


def _logistic_errors(features: Floats, labels: Labels, parameters: Doubles) -> Floats:
    scores = features @ parameters.T.astype(np.float32)
    return np.float32(0.5) * (1 + np.tanh(scores / 2)) - labels[:, None].astype(np.float32)


def _logistic_losses(features: Floats, labels: Labels, parameters: Doubles) -> Doubles:
    scores = (features @ parameters[0].astype(np.float32)).astype(np.float64)
    found: Doubles = np.logaddexp(0, np.where(labels == 1, -scores, scores))
    return found


SOFTMAX: Final = LinearLoss(rows=CLASSES, errors=_softmax_errors, losses=losses)
LOGISTIC: Final = LinearLoss(rows=1, errors=_logistic_errors, losses=_logistic_losses)
