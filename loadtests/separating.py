"""How well a guess from durations tells two worlds apart, with an interval that holds although the guess was chosen.

The tries of a pair are divided at random. One half chooses a feature, a direction, whether large values or certain
values speak for a world, and a threshold. The other half judges that choice, once. So neither the choice among features
nor that of a direction can find a difference where there is none.

Two figures are judged. The area under the ROC curve (AUC) of the chosen score has DeLong's interval (DeLong, DeLong and
Clarke-Pearson, 1988). The guess by threshold has the exact interval of Clopper and Pearson; with as many tries of one
world as of the other, the share of right guesses is the area under the curve of that threshold. Both figures are 0.5
where nothing can be told, and each interval has half of the error that the caller allows.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm, rankdata

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Score = Callable[[Numbers], Numbers]
"""The function that is larger where a value speaks more for world 1."""

BINS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure, and the limits between which the truth lies."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """The feature that tells the worlds apart best, and how well."""

    feature: str
    kind: str  # larger, smaller, or which: certain values
    auc: Interval
    guess: Interval

    @property
    def low(self) -> float:
        """The larger of the two lower limits. One of the figures is at least this, within the error allowed."""
        return max(self.auc.low, self.guess.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """One way to score a try."""

    feature: str
    kind: str


def separation(
    worlds: Flags, features: Mapping[str, Numbers], *, error: float, source: np.random.Generator
) -> Separation:
    """The best choice of one half of the tries (n,), judged on the other half.

    `error` is that of both intervals together. `worlds` (n,) says which tries were of world 1, half of them. Raises
    ValueError below eight tries of each world.
    """
    learning, judging = _halves(worlds, source)
    candidate = _chosen(worlds, features, learning, source)
    values = features[candidate.feature]
    score = _learned(candidate.kind, values[learning], worlds[learning])
    threshold = _best_threshold(score(values[learning]), worlds[learning])
    scores, truth = score(values[judging]), worlds[judging]
    return Separation(
        feature=candidate.feature,
        kind=candidate.kind,
        auc=auc_interval(scores, truth, error=error / 2),
        guess=share_interval(int(((scores > threshold) == truth).sum()), truth.size, error=error / 2),
    )


def auc_interval(scores: Numbers, worlds: Flags, *, error: float) -> Interval:
    """The area under the curve, ties counted half, with DeLong's interval."""
    ones, zeros = scores[worlds], scores[~worlds]
    area = auc(scores, worlds)
    ranks = rankdata(scores)
    above = (ranks[worlds] - rankdata(ones)) / zeros.size  # share of world 0 below each of world 1
    below = 1 - (ranks[~worlds] - rankdata(zeros)) / ones.size
    deviation = float(np.sqrt(above.var(ddof=1) / ones.size + below.var(ddof=1) / zeros.size))
    reach = float(norm.isf(error / 2)) * deviation
    return Interval(value=area, low=max(area - reach, 0.0), high=min(area + reach, 1.0))


def share_interval(right: int, of: int, *, error: float) -> Interval:
    """A share of right guesses with Clopper and Pearson's interval."""
    low = float(beta.ppf(error / 2, right, of - right + 1)) if right else 0.0
    high = float(beta.isf(error / 2, right + 1, of - right)) if right < of else 1.0
    return Interval(value=right / of, low=low, high=high)


def auc(scores: Numbers, worlds: Flags) -> float:
    """The chance that a try of world 1 scores above one of world 0, ties counted half."""
    ones = int(worlds.sum())
    zeros = worlds.size - ones
    return float((rankdata(scores)[worlds].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _halves(worlds: Flags, source: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two halves of the tries' indexes. Each has as many tries of each world as the other."""
    parts: list[list[NDArray[np.intp]]] = [[], []]
    for world in (False, True):
        places = source.permutation(np.flatnonzero(worlds == world))
        if places.size < 8:
            raise ValueError(f"{places.size} tries of a world are too few")
        for part, half in zip(parts, (places[::2], places[1::2]), strict=True):
            part.append(half)
    learning, judging = (np.concatenate(part) for part in parts)
    return learning, judging


def _chosen(
    worlds: Flags, features: Mapping[str, Numbers], learning: NDArray[np.intp], source: np.random.Generator
) -> _Candidate:
    """The candidate that does best when it is learned on one part of the learning half and tried on the other.

    Both parts take both roles, and the two results are added.
    """
    one, other = _halves(worlds[learning], source) if learning.size >= 32 else (np.arange(learning.size),) * 2
    folds = [(learning[one], learning[other]), (learning[other], learning[one])]

    def merit(candidate: _Candidate) -> float:
        values = features[candidate.feature]
        return sum(
            auc(_learned(candidate.kind, values[fit], worlds[fit])(values[seen]), worlds[seen]) for fit, seen in folds
        )

    return max(_candidates(features), key=merit)


def _candidates(features: Mapping[str, Numbers]) -> Iterator[_Candidate]:
    for feature in features:
        for kind in ("larger", "smaller", "which"):
            yield _Candidate(feature=feature, kind=kind)


def _learned(kind: str, values: Numbers, worlds: Flags) -> Score:
    if kind == "which":
        return _likelihood_ratio(values, worlds)
    sign = 1.0 if kind == "larger" else -1.0
    return lambda seen: sign * seen


def _likelihood_ratio(values: Numbers, worlds: Flags) -> Score:
    """The logarithm of how much more frequent a value's bin is in world 1. Bins hold about equally many tries."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))

    def frequencies(world: Flags) -> Numbers:
        counts = np.bincount(np.searchsorted(edges, values[world], side="right"), minlength=edges.size + 1) + 0.5
        shares: Numbers = counts / counts.sum()
        return shares

    ratios = np.log(frequencies(worlds) / frequencies(~worlds))
    return lambda seen: ratios[np.searchsorted(edges, seen, side="right")]


def _best_threshold(scores: Numbers, worlds: Flags) -> float:
    """The threshold above which most tries are of world 1 and below which most are of world 0."""
    order = np.argsort(scores, kind="stable")
    ranked, truth = scores[order], worlds[order]
    gains = np.concatenate([[0], np.cumsum(np.where(truth, -1 / worlds.sum(), 1 / (~worlds).sum()))])
    ends = np.concatenate([[True], ranked[1:] > ranked[:-1], [True]])  # a threshold cannot stand between equal scores
    place = int(np.argmax(np.where(ends, gains, -np.inf)))
    if place == 0:
        return -np.inf
    return float(ranked[place - 1])
