"""Everything that a play is rejected by, each check under a name of its own."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_audit.adversaries import ADVERSARIES
from sparing_audit.comparison import COMPARED, Mismatches, Recorded
from sparing_audit.curves import gaussian_delta, gaussian_epsilon
from sparing_audit.game import RHO, Game
from sparing_audit.laws import chernoff_p, mean_p, normal_p, proportion_upper, shortfalls, standardised_loss
from sparing_audit.service import Doubles

__all__ = [
    "MU",
    "Check",
    "bound_check",
    "canary_check",
    "checks_of",
    "completed",
    "delta_check",
    "loss_check",
    "noise_checks",
]

Booleans = NDArray[np.bool_]

MU: Final = math.sqrt(2 * RHO)
P_MIN: Final = 1e-5
"""The p-value below which a law is rejected: of a right one in so many tests."""
ERRORS_MAX: Final = 4.5
"""Standard errors that a mean over all victims may be off."""
EXTREME_MAX: Final = 6.3
"""The same for the largest of some ten thousand sums or correlations."""
EXPECTED_MIN: Final = 50
"""So many victims on either side of a loss are expected where a standard error tells how far their mean may be off."""
EPSILONS: Final = (0.0, 2.0, 4.0, 8.0, 12.0, 16.0)
DELTA: Final = 1e-5
BOUND_ERROR: Final = 1e-5
"""The probability with which a lower bound may be too high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: `measured` was held against `bound`, as the words say."""

    name: str
    passed: bool
    measured: float
    bound: float
    words: str
    adversary: str | None = None  # None: over all of them


def checks_of(game: Game, rng: np.random.Generator) -> list[Check]:
    """All checks of one dataset's play."""
    is_in, losses = game.victims.is_in, completed(game, rng)
    found = [
        *_comparisons(game.mismatches),
        *_direction_checks(game, rng),
        *noise_checks(game.recorded, is_in),
        loss_check(losses, is_in),
        delta_check(game.losses, is_in),
    ]
    for name in ADVERSARIES:
        places = game.victims.of(name)
        found.append(loss_check(losses[places], is_in[places], adversary=name))
        found.append(_delta_check_of(game.losses[places], is_in[places], adversary=name))
    return [*found, bound_check(game.losses, is_in)]


def completed(game: Game, rng: np.random.Generator) -> Doubles:
    """Each victim's loss (n,) after one more query, of the audit's own drawing, that spends the rest of the budget.

    With it every strategy has spent the budget whole, so that all losses follow one law, whether their adversaries
    stopped early or not. Nothing is drawn where nothing is left.
    """
    spent = np.zeros(game.losses.size)
    for each in game.recorded:
        spent[each.places] += each.counted**2 / (2 * each.sigma**2)
    rest = np.maximum(RHO - spent, 0.0)
    means = np.where(game.victims.is_in, rest, -rest)
    drawn: Doubles = means + np.sqrt(2 * rest) * rng.standard_normal(rest.size)
    return game.losses + drawn


def loss_check(losses: Doubles, is_in: Booleans, *, rho: float = RHO, adversary: str | None = None) -> Check:
    """Losses (n,) at budgets spent whole are N(B, 2B) of victims in the data and N(-B, 2B) of blank ones.

    Theory, section 11: exactly so, for every adaptive strategy.
    """
    parts = [standardised_loss(losses[is_in == inside], rho, is_in=inside) for inside in (True, False)]
    p = normal_p(np.concatenate(parts))
    words = f"p of {losses.size} losses against N(±{rho:g}, {2 * rho:g})"
    return Check(name="loss law", passed=p > P_MIN, measured=p, bound=P_MIN, words=words, adversary=adversary)


def delta_check(losses: Doubles, is_in: Booleans) -> Check:
    """The mean of [1 - e^(eps - L)]+ is within delta(eps), at several epsilons and in both directions.

    Where few victims are expected to have such a loss, or few not to, their standard error says little, and Chernoff's
    bound decides.
    """
    errors, words = -math.inf, ""
    for epsilon, direction, numbers in _shortfalls(losses, is_in):
        bound, error = gaussian_delta(epsilon, MU), float(numbers.std(ddof=1)) / math.sqrt(numbers.size)
        off = (float(numbers.mean()) - bound) / error if error > 0 else math.copysign(math.inf, numbers.mean() - bound)
        is_rare = numbers.size * min(bound, 1 - bound) < EXPECTED_MIN
        if is_rare and chernoff_p(float(numbers.mean()), bound, numbers.size) > P_MIN:
            off = min(off, 0.0)
        if off > errors:
            errors = off
            words = f"standard errors above delta({epsilon:g}) = {bound:.4g} {direction}: {numbers.mean():.4g}"
    return Check(name="delta", passed=errors <= ERRORS_MAX, measured=errors, bound=ERRORS_MAX, words=words)


def _delta_check_of(losses: Doubles, is_in: Booleans, *, adversary: str) -> Check:
    """The same for one adversary, of whose few victims a standard error may say little: by Chernoff's bound."""
    p, words = 1.0, "p of the means against delta"
    for epsilon, direction, numbers in _shortfalls(losses, is_in):
        found = chernoff_p(float(numbers.mean()), gaussian_delta(epsilon, MU), numbers.size)
        if found < p:
            p, words = found, f"p of {numbers.mean():.4g} against delta({epsilon:g}) {direction}"
    return Check(name="delta", passed=p > P_MIN, measured=p, bound=P_MIN, words=words, adversary=adversary)


def _shortfalls(losses: Doubles, is_in: Booleans) -> Iterator[tuple[float, str, Doubles]]:
    for epsilon in EPSILONS:
        yield epsilon, "in", shortfalls(losses[is_in], epsilon)
        yield epsilon, "out", shortfalls(-losses[~is_in], epsilon)


def bound_check(losses: Doubles, is_in: Booleans) -> Check:
    """A lower bound of mu that guesses from the losses betray, by Clopper and Pearson, is within the promised mu.

    The threshold of the guess is chosen on one half of the victims; the other half bounds both of its errors. The words
    have what the same errors say of epsilon alone, which from some thousand guesses is far below any large promise.
    """
    chosen = np.arange(losses.size) % 4 < 2
    thresholds = np.quantile(losses[chosen], np.linspace(0.02, 0.98, 49)).tolist()
    best = max(thresholds, key=lambda threshold: _mu_of(*_rates(losses[chosen], is_in[chosen], threshold, _smoothed)))
    rate_false, rate_missed = _rates(losses[~chosen], is_in[~chosen], best, _upper)
    bound, left = _mu_of(rate_false, rate_missed), 1 - DELTA - rate_false
    epsilon = max(0.0, math.log(left / rate_missed)) if left > 0 else 0.0
    words = (
        f"mu is at least this, epsilon at delta {DELTA:g} at least {epsilon:.3g}; promised are {MU:.4g} and "
        f"{gaussian_epsilon(MU, DELTA):.4g}"
    )
    return Check(name="lower bound", passed=bound <= MU, measured=bound, bound=MU, words=words)


def _mu_of(rate_false: float, rate_missed: float) -> float:
    """The smallest mu at which a guess may have both errors: Phi^-1(1 - FPR) - Phi^-1(FNR), 0 where that is less."""
    if max(rate_false, rate_missed) >= 1:
        return 0.0
    normal = NormalDist()
    return max(0.0, -normal.inv_cdf(rate_false) - normal.inv_cdf(rate_missed))


def _rates(
    losses: Doubles, is_in: Booleans, threshold: float, rate: Callable[[int, int], float]
) -> tuple[float, float]:
    """The errors of the guess that losses above the threshold are of victims in the data: false, and missed."""
    false, missed = losses[~is_in] > threshold, losses[is_in] <= threshold
    return rate(int(false.sum()), false.size), rate(int(missed.sum()), missed.size)


def _smoothed(hits: int, count: int) -> float:
    return (hits + 1) / (count + 2)


def _upper(hits: int, count: int) -> float:
    return proportion_upper(hits, count, BOUND_ERROR / 2)


def canary_check(answers: Doubles, is_in: Booleans, length: float, sigma: float, *, name: str, mu: float) -> Check:
    """One query that adds `length` at each canary's coordinate, in the data or not: the distance between both is mu."""
    estimate = float(answers[is_in].mean() - answers[~is_in].mean()) / sigma
    error = 2 / math.sqrt(answers.size)
    words = f"standard errors of a mu of {estimate:.4f} from {mu:.4g}, with vectors of {length / sigma:.4g} sigmas"
    off = abs(estimate - mu) / error
    return Check(name=name, passed=off <= ERRORS_MAX, measured=off, bound=ERRORS_MAX, words=words)


def noise_checks(recorded: Sequence[Recorded], is_in: Booleans) -> list[Check]:
    """Without the counted vectors the answers are Gaussian noise of the size stated, on the grid, and of no pattern."""
    rests = [_noise_of(each, is_in) for each in recorded]
    noise = np.concatenate(rests)
    off = abs(float(np.mean(noise**2)) - 1) / math.sqrt(2 / noise.size)
    p = normal_p(noise)
    largest = _largest_correlation(rests)
    steps = max(float(np.abs(np.round(each.values / each.grid) - each.values / each.grid).max()) for each in recorded)
    return [
        Check(
            name="noise size",
            passed=off <= ERRORS_MAX,
            measured=off,
            bound=ERRORS_MAX,
            words=f"standard errors of the variance of {noise.size} numbers, {np.mean(noise**2):.5f} of the stated one",
        ),
        Check(
            name="noise law", passed=p > P_MIN, measured=p, bound=P_MIN, words="p of the noise against the normal law"
        ),
        Check(
            name="noise steps", passed=steps == 0, measured=steps, bound=0, words="of a grid step that answers are off"
        ),
        Check(
            name="noise reused",
            passed=largest <= EXTREME_MAX,
            measured=largest,
            bound=EXTREME_MAX,
            words="standard errors of the largest correlation between queries, or between neighbouring numbers",
        ),
    ]


def _noise_of(each: Recorded, is_in: Booleans) -> Doubles:
    """The noise of a query in standard deviations, of which rounding to the grid is a part."""
    rest: Doubles = each.values - each.counted * is_in[each.places]
    return rest / math.sqrt(each.sigma**2 + each.grid**2 / 12)


def _largest_correlation(rests: Sequence[Doubles]) -> float:
    """Of pairs of queries with as many numbers, of all pairs by their first numbers, and of neighbours within one."""
    sizes = {rest.size for rest in rests}
    groups = [np.array([rest for rest in rests if rest.size == size]) for size in sizes]
    groups.append(np.array([rest[: min(sizes)] for rest in rests]))
    largest = 0.0
    for group in groups:
        lengths = np.sqrt((group**2).sum(axis=1))
        pairs = np.abs(group @ group.T) / np.outer(lengths, lengths) * math.sqrt(group.shape[1])
        largest = max(largest, float(np.max(pairs - np.diag(np.diag(pairs)))))
    every = np.concatenate(rests)
    return max(largest, abs(float(every[1:] @ every[:-1])) / float(every @ every) * math.sqrt(every.size))


_Direction = Callable[[Recorded], Doubles]
_DIRECTIONS: Final[Mapping[str, tuple[_Direction, str]]] = {
    "counted": (lambda each: each.counted, "vectors that were counted"),
    "shortened": (
        lambda each: np.where(np.abs(each.counted) < np.abs(each.asked), each.counted, 0.0),
        "vectors that were counted in part",
    ),
    "left out": (lambda each: each.asked - each.counted, "what was left out, cut off or erased"),
}


def _direction_checks(game: Game, rng: np.random.Generator) -> Iterator[Check]:
    """Each victim in the data adds what was counted, a blank one nothing, and nobody what was left out.

    Beyond that an answer is noise alone, along whatever vector. An adversary may stop when that noise was large, so
    that each sum is taken to a fixed total of squared vectors, the last one in part, and beyond the adversary's end
    with noise of the audit's own: then it is normal for every strategy.
    """
    total = 2.0 * RHO
    for name, (direction, words) in _DIRECTIONS.items():
        sums, squares = np.zeros(game.losses.size), np.zeros(game.losses.size)
        for each in game.recorded:
            along = direction(each) / each.sigma
            room = total - squares[each.places]
            part = np.sqrt(np.clip(room / np.maximum(along**2, 1e-300), 0.0, 1.0))
            sums[each.places] += _noise_of(each, game.victims.is_in) * along * part
            squares[each.places] += (along * part) ** 2
        rest = np.sqrt(np.maximum(total - squares, 0.0)) * rng.standard_normal(sums.size)
        draws = ((sums + rest) / math.sqrt(total))[squares > 0]
        if draws.size == 0:
            continue  # nothing is shortened by the rules of datasets
        p = min(normal_p(draws), mean_p(draws))
        yield Check(
            name=name,
            passed=p > P_MIN,
            measured=p,
            bound=P_MIN,
            words=f"p of the answers along {words}, of {draws.size} victims",
        )


def _comparisons(mismatches: Mismatches) -> Iterator[Check]:
    for name in COMPARED:
        count = mismatches.counts[name]
        words = "; ".join(mismatches.first.get(name, [])) or f"differences in {mismatches.compared[name]:,} comparisons"
        passed = count == 0 and mismatches.compared[name] > 0
        yield Check(name=name, passed=passed, measured=count, bound=0, words=words)
