"""Several answers to one query combined into one more precise answer, and the sigma that refines an answer.

The noise of different answers is independent. So the weighted mean with the weights 1 / sigma^2 has the least variance
of all, 1 / sum(1 / sigma^2). `combine` and `missing_sigma` work on released numbers alone and cost nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sparing._answers import Answer, Interval
from sparing._coordinates import PerItem, by_coordinate, by_item, common, items_of
from sparing._laplace_sums import laplace_sum_quantile
from sparing._normal import two_sided_quantile
from sparing._rounding import with_half_widths


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Combined:
    """The mean of several answers to one query, each weighted by 1 / sigma^2; made by `combine`.

    It estimates the mean, with the same weights, of the counted sums. These sums are equal if the answers are
    `coverage_certified` and no rows changed between them. Otherwise an answer may leave out an individual that another
    answer counts.
    """

    answers: tuple[Answer, ...]  # in the order of the ledger
    values: tuple[float, ...]  # one for each coordinate, in the order of `labels`
    sigma: PerItem  # standard deviation of the noise in each coordinate, in the query's units, before its rounding

    @property
    def labels(self) -> Sequence[Mapping[str, object]]:
        """The name of each number, as the answers have it."""
        return self.answers[0].labels

    @property
    def axes(self) -> tuple[Mapping[str, object], ...]:
        """The axes, a short form of the labels, as the answers have them."""
        return self.answers[0].axes

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.answers[0].dimension

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the answers, which add up to 1. Raises ValueError if weights differ by item."""
        return _weights([common(answer.sigma) for answer in self.answers])

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The standard deviation of the noise in each coordinate."""
        return by_coordinate(self.sigma, self.axes, self.dimension)

    @property
    def coverage_certified(self) -> bool:
        """Tell whether public numbers alone prove, for every answer, that no individual was left out."""
        return all(answer.coverage_certified for answer in self.answers)

    @property
    def has_laplace(self) -> bool:
        """Tell whether some of the noise is Laplace noise."""
        return any(answer.has_laplace for answer in self.answers)

    @property
    def caveats(self) -> tuple[str, ...]:
        """The caveats of all answers, each once."""
        return tuple(dict.fromkeys(words for answer in self.answers for words in answer.caveats))

    @property
    def value(self) -> float:
        """The one number of the result. Raises ValueError if there are several."""
        if len(self.values) != 1:
            raise ValueError(f"this combination has {len(self.values)} values; use .values")
        return self.values[0]

    def half_width(self, confidence: float = 0.95, *, simultaneous: bool = False) -> float:
        """The largest distance of each number from what was counted, with at least this confidence.

        Rounding to a grid moves the noise of an answer by at most half a step. So the quantile of the weighted sum of
        the noise, plus half the weighted mean of the grids, suffices at any sigma. With `simultaneous`, all numbers are
        within the distance at once. Raises ValueError for a confidence not above 0 and below 1, and if the distance
        differs by item.
        """
        return common(self._half_width(confidence, simultaneous=simultaneous))

    def intervals(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Interval, ...]:
        """The interval around each number; the arguments are those of `half_width`."""
        widths = by_coordinate(self._half_width(confidence, simultaneous=simultaneous), self.axes, self.dimension)
        return tuple(
            Interval(low=value - width, high=value + width) for value, width in zip(self.values, widths, strict=True)
        )

    def interval(self, confidence: float = 0.95) -> Interval:
        """The interval around `value`. Raises ValueError if there are several numbers."""
        width = self.half_width(confidence)
        return Interval(low=self.value - width, high=self.value + width)

    def _half_width(self, confidence: float = 0.95, *, simultaneous: bool = False) -> PerItem:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be above 0 and below 1, got {confidence}")
        each = math.exp(math.log(confidence) / self.dimension) if simultaneous else confidence
        places = _item_places(self.answers[0]) if isinstance(self.sigma, tuple) else [0]
        widths = []
        for place, sigma in zip(places, by_item(self.sigma), strict=True):
            weights = _weights([answer.sigmas[place] for answer in self.answers])
            grid = _mean(weights, [answer.grids[place] for answer in self.answers])
            widths.append(self._quantile(weights, sigma, each) + grid / 2)
        return tuple(widths) if isinstance(self.sigma, tuple) else widths[0]

    def _quantile(self, weights: Sequence[float], sigma: float, confidence: float) -> float:
        """The size that the combined noise, of standard deviation `sigma`, does not exceed with this probability."""
        weighted = list(zip(weights, self.answers, strict=True))
        scales = [weight * answer.scale for weight, answer in weighted if answer.scale is not None]
        if not scales:
            return two_sided_quantile(confidence) * sigma
        normal = [weight * common(answer.sigma) for weight, answer in weighted if answer.scale is None]
        return laplace_sum_quantile(scales, confidence, sigma=math.hypot(*normal))

    def __repr__(self) -> str:
        """A text of one line, whatever the dimension."""
        widths = by_coordinate(self._half_width(), self.axes, self.dimension)[:3]
        shown = with_half_widths(self.values[:3], widths, rest=", ..." if self.dimension > 3 else "")
        warnings = list(dict.fromkeys(warning for answer in self.answers for warning in answer.warnings))
        warned = f", warnings={warnings}" if warnings else ""
        warned = (f", caveats={list(self.caveats)}" if self.caveats else "") + warned
        return f"Combined({shown}{warned}, dimension={self.dimension}, answers={len(self.answers)})"


Released = Answer | Combined


def combine(answers: Iterable[Answer]) -> Combined:
    """The weighted mean of answers to one query that has the least variance, whatever their order.

    An answer names its coordinates but not its `where`: the caller must make sure that all answers are to one query.

    Raises:
        ValueError: there is no answer; two answers differ in their coordinates or their epoch; an answer is given
            twice, maybe once as a reused answer, as both have the same noise; or the answers count active individuals,
            whose number changes with every charge.
    """
    given = list(answers)
    if not given:
        raise ValueError("answers must not be empty")
    for place, answer in enumerate(given[1:], start=1):
        _check_coordinates(answer, given[0], f"answers[{place}]", "answers[0]")
    check_independent(given, "answers")
    if len(given) > 1 and is_of_accounts(given[0]):
        raise ValueError("answers are of active individuals at different times, and their mean is of none of these")
    given.sort(key=lambda answer: (answer.sequence, answer.id))
    by_place = list(zip(*(answer.sigmas for answer in given), strict=True))
    weights = {sigmas: _weights(sigmas) for sigmas in set(by_place)}
    numbers = zip(by_place, zip(*(each.values for each in given), strict=True), strict=True)
    has_items = any(isinstance(answer.sigma, tuple) for answer in given)
    places = _item_places(given[0]) if has_items else [0]
    sigmas = tuple(_joint_sigma(by_place[place]) for place in places)
    return Combined(
        answers=tuple(given),
        values=tuple(_mean(weights[sigmas], several) for sigmas, several in numbers),
        sigma=sigmas if has_items else sigmas[0],
    )


def missing_sigma(have: Released, wanted_sigma: float) -> float | None:
    """The sigma for asking the same query again, so that `combine` with the present answers reaches `wanted_sigma`.

    It is the s with 1 / s^2 = 1 / wanted^2 - 1 / have^2. The charge of a query with vector v is |v|^2 / (2 sigma^2). So
    both queries together cost as much as one query at the wanted sigma, and nothing is wasted. Ask with `reuse=False`,
    as the query may have been asked with s before.

    Returns:
        The sigma; None if the wanted sigma is reached already.

    Raises:
        ValueError: the wanted sigma is not positive and finite.
    """
    if not (wanted_sigma > 0 and math.isfinite(wanted_sigma)):
        raise ValueError(f"wanted_sigma must be positive and finite, got {wanted_sigma}")
    sigma = common(have.sigma)
    if sigma <= wanted_sigma:
        return None
    share = wanted_sigma / sigma
    return wanted_sigma / math.sqrt((1 - share) * (1 + share))


def answers_of(released: Released) -> tuple[Answer, ...]:
    """The answers from which these numbers were made."""
    return released.answers if isinstance(released, Combined) else (released,)


def noise_variance(released: Released, place: int = 0) -> float:
    """The variance of the noise in the number at a place, in squared units of the query.

    The noise of an answer is a Gaussian rounded to the grid. Its variance is sigma^2 + grid^2 / 12 to a part in a
    million if sigma is at least the grid, and less if sigma is smaller.
    """
    if isinstance(released, Combined):
        weighted = zip(_weights([each.sigmas[place] for each in released.answers]), released.answers, strict=True)
        return math.fsum(weight**2 * noise_variance(answer, place) for weight, answer in weighted)
    return released.sigmas[place] ** 2 + released.grids[place] ** 2 / 12


def check_independent(together: Sequence[Released], name: str) -> None:
    """Raise ValueError if an answer occurs twice or the epochs differ; messages call the sequence `name`."""
    places: dict[str, int] = {}
    epoch = answers_of(together[0])[0].epoch
    for place, released in enumerate(together):
        for answer in answers_of(released):
            if answer.id in places:
                first = places[answer.id]
                raise ValueError(
                    f"{name}[{place}] and {name}[{first}] are one answer, {answer.id}, with the same noise"
                )
            if answer.epoch != epoch:
                raise ValueError(f"{name}[{place}] is of epoch {answer.epoch}, and {name}[0] of epoch {epoch}")
            places[answer.id] = place


def _check_coordinates(answer: Answer, other: Answer, name: str, other_name: str) -> None:
    if answer.dimension != other.dimension:
        raise ValueError(f"{name} has {answer.dimension} numbers, and {other_name} has {other.dimension}")
    if len(answer.labels) != len(other.labels):
        raise ValueError(f"{name} has {len(answer.labels)} labels, and {other_name} has {len(other.labels)}")
    if answer.axes == other.axes and answer.labels == other.labels:
        return
    for place, (label, expected) in enumerate(zip(answer.labels, other.labels, strict=True)):
        if label != expected:
            raise ValueError(f"number {place} is {dict(label)} in {name}, and {dict(expected)} in {other_name}")
    raise ValueError(f"{name} has the axes {list(answer.axes)}, and {other_name} {list(other.axes)}")


def is_of_accounts(answer: Answer) -> bool:
    """Tell whether an answer is about accounts at the time of the query: a count of active individuals, or a tick."""
    return any(title.startswith("active(") or title == "exhausted" for title, _ in items_of(answer.axes))


def _item_places(answer: Answer) -> list[int]:
    """The first coordinate of each item."""
    return [0, *accumulate(size for _, size in items_of(answer.axes))][:-1]


def _weights(sigmas: Sequence[float]) -> tuple[float, ...]:
    """The weights of answers with these sigmas: 1 / sigma^2 over the sum of all 1 / sigma^2."""
    least = min(sigmas)
    shares = [(least / sigma) ** 2 for sigma in sigmas]
    whole = math.fsum(shares)
    return tuple(share / whole for share in shares)


def _joint_sigma(sigmas: Sequence[float]) -> float:
    """The standard deviation of the weighted mean."""
    least = min(sigmas)
    return least / math.sqrt(math.fsum((least / sigma) ** 2 for sigma in sigmas))


def _mean(weights: Sequence[float], numbers: Sequence[float]) -> float:
    return math.fsum(weight * number for weight, number in zip(weights, numbers, strict=True))
