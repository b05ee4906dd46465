"""The checks that can reject a play, each of a measured number against a bound.

Under an accounting losses hold its promise for every adaptive strategy, whether it spends its budget B or not:

| accounting | a total B promises | checks |
|---|---|---|
| gdp | the curve of sqrt(2 B)-GDP | the hockey stick at several epsilons |
| zcdp | a divergence of a B at every order a | moments at several orders, the mean loss, the hockey stick |
| rdp | a divergence of a B at its order a | the moment at the order, the hockey stick |
| pure | a loss of B at most, with certainty | the largest loss, the hockey stick |

Where all noise is Gaussian, losses at a budget that is spent whole follow one law too, under every rule of admission
(theory, section 11).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from sparing_audit.accountings import Accounting
from sparing_audit.curves import gaussian_epsilon
from sparing_audit.game import COMPARED, Game, Recorded
from sparing_audit.laws import (
    Booleans,
    Doubles,
    chernoff_p,
    even_p,
    mean_p,
    normal_p,
    proportion_upper,
    shortfalls,
    standardised_loss,
    student_p,
)
from sparing_audit.noise import Gaussian

P_MIN: Final = 1e-5
"""The p-value below which a law is rejected. A right law is rejected in one of 1 / P_MIN tests."""
ERRORS_MAX: Final = 4.5
"""The most standard errors by which a mean over all victims may be off."""
EXTREME_MAX: Final = 6.3
"""The bound for the largest of some ten thousand sums or correlations."""
DELTA: Final = 1e-5
BOUND_ERROR: Final = 1e-5
"""The probability that a lower bound is too high."""
TILTS: Final = (0.5, 1.0, 1.5)
"""The tilts of the orders 1 + tilt / sqrt(2 B) whose zCDP moments are taken.

Some thousand losses show no higher orders.
"""
DEVIATIONS: Final = 2.0
"""A loss is cut off so many deviations above its mean under the tilt, so that its moment has a bound."""
MULTIPLES: Final = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
"""The epsilons of the hockey stick, in deviations."""
SLACK: Final = 1e-9
"""The relative error that some dozen roundings of doubles may add up to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: `measured` was compared with `bound`, as the words say."""

    name: str
    passed: bool
    measured: float
    bound: float
    words: str
    adversary: str | None = None  # None: over all of them


def _likely(name: str, p: float, words: str, adversary: str | None = None) -> Check:
    """A check of a p-value."""
    return Check(name=name, passed=p > P_MIN, measured=p, bound=P_MIN, words=words, adversary=adversary)


def _at_most(name: str, measured: float, bound: float, words: str, adversary: str | None = None) -> Check:
    return Check(name=name, passed=measured <= bound, measured=measured, bound=bound, words=words, adversary=adversary)


def rule_checks(game: Game) -> Iterator[Check]:
    """All checks of one play under a rule of admission, whose noise is Gaussian."""
    is_in, accounting = game.victims.is_in, game.accounting
    yield from accounting_checks(game)
    yield _comparison(game, "retries")
    yield reuse_check(game.recorded, is_in)
    yield bound_check(game.losses, is_in, accounting.deviation)
    losses = completed(game)
    for name, places in game.victims.groups():
        yield loss_check(losses[places], is_in[places], accounting.amount, adversary=name)


def accounting_checks(game: Game) -> Iterator[Check]:
    """All checks of one play, whatever its noise."""
    is_in = game.victims.is_in
    yield from (_comparison(game, name) for name in COMPARED)
    yield from _direction_checks(game)
    yield from noise_checks(game.recorded, is_in, game.rng)
    for name, places in game.victims.groups():
        yield from promise_checks(game.accounting, game.losses[places], is_in[places], adversary=name)


def _comparison(game: Game, name: str) -> Check:
    """No difference; what was never compared has not passed."""
    count, compared = game.mismatches.counts[name], game.mismatches.compared[name]
    words = "; ".join(game.mismatches.first.get(name, [])) or f"differences in {compared:,} comparisons"
    return Check(name=name, passed=count == 0 < compared, measured=count, bound=0, words=words)


def completed(game: Game) -> Doubles:
    """Each victim's loss (n,) after one more query, simulated by the audit, that spends the rest of the budget.

    With this query every strategy has spent the whole budget. So all losses follow one law, whether their adversaries
    stopped early or not. Nothing is drawn where nothing is left.
    """
    spent = np.zeros(game.losses.size)
    for each in game.recorded:
        spent[each.places] += each.counted**2 / (2 * each.law.size**2)
    rest = np.maximum(game.accounting.amount - spent, 0.0)
    means = np.where(game.victims.is_in, rest, -rest)
    drawn: Doubles = means + np.sqrt(2 * rest) * game.rng.standard_normal(rest.size)
    return game.losses + drawn


def loss_check(losses: Doubles, is_in: Booleans, rho: float, *, adversary: str | None = None) -> Check:
    """Losses (n,) at budgets spent whole are N(B, 2B) of victims in the data and N(-B, 2B) of blank ones."""
    draws = standardised_loss(np.where(is_in, losses, -losses), rho)
    words = f"p of {losses.size} losses against N(±{rho:g}, {2 * rho:g})"
    return _likely("loss law", normal_p(draws), words, adversary)


def bound_check(losses: Doubles, is_in: Booleans, promised: float) -> Check:
    """A lower bound of mu that guesses from the losses betray, by Clopper and Pearson, is within the promised mu.

    The guess is that losses above a threshold are of victims in the data. The threshold is chosen on one half of the
    victims; the other half bounds both errors of the guess. The words have what the same errors say of epsilon alone,
    which from some thousand guesses is far below any large promise.
    """
    chosen = np.arange(losses.size) % 4 < 2

    def rates(threshold: float, among: Booleans, rate: Callable[[int, int], float]) -> Iterator[float]:
        """The false and the missed guesses, as rates of those that could be."""
        for wrong in (losses[among & ~is_in] > threshold, losses[among & is_in] <= threshold):
            yield rate(int(wrong.sum()), wrong.size)

    thresholds = np.quantile(losses[chosen], np.linspace(0.02, 0.98, 49)).tolist()
    best = max(thresholds, key=lambda each: _mu_of(*rates(each, chosen, lambda hits, of: (hits + 1) / (of + 2))))
    false, missed = rates(best, ~chosen, lambda hits, of: proportion_upper(hits, of, BOUND_ERROR / 2))
    bound, left = _mu_of(false, missed), 1 - DELTA - false
    epsilon = max(0.0, math.log(left / missed)) if left > 0 else 0.0
    words = (
        f"mu is at least this, epsilon at delta {DELTA:g} at least {epsilon:.3g}; promised are {promised:.4g} and "
        f"{gaussian_epsilon(promised, DELTA):.4g}"
    )
    return _at_most("lower bound", bound, promised, words)


def _mu_of(rate_false: float, rate_missed: float) -> float:
    """The smallest mu at which a guess may have both errors: Phi^-1(1 - FPR) - Phi^-1(FNR), or 0 if negative."""
    if max(rate_false, rate_missed) >= 1:
        return 0.0
    normal = NormalDist()
    return max(0.0, -normal.inv_cdf(rate_false) - normal.inv_cdf(rate_missed))


def canary_check(asked: Recorded, is_in: Booleans, *, name: str, mu: float) -> Check:
    """One query that adds as much at each canary's coordinate, in the data or not: the distance between both is mu."""
    estimate = float(asked.values[is_in].mean() - asked.values[~is_in].mean()) / asked.law.size
    length = float(np.abs(asked.asked[0])) / asked.law.size
    words = f"standard errors of a mu of {estimate:.4f} from {mu:.4g}, with vectors of {length:.4g} sigmas"
    return _at_most(name, abs(estimate - mu) / (2 / math.sqrt(is_in.size)), ERRORS_MAX, words)


def noise_checks(recorded: Sequence[Recorded], is_in: Booleans, rng: np.random.Generator) -> Iterator[Check]:
    """Check that answers without what was counted are noise of the stated law and size, in whole steps."""
    yield _at_most("noise steps", max(each.grid_error for each in recorded), 0.0, "of a grid step that answers are off")
    for label in dict.fromkeys(each.law.label for each in recorded):
        mine = [each for each in recorded if each.law.label == label]
        statistics = [each.law.statistics(each.noise(is_in), rng) for each in mine]
        sizes, evens = (np.concatenate(each) for each in zip(*statistics, strict=True))
        off = abs(float(sizes.mean()) - 1) / math.sqrt(mine[0].law.spread / sizes.size)
        words = f"standard errors of the size of {sizes.size} numbers of {label}, {sizes.mean():.5f} of the stated one"
        yield _at_most("noise size", off, ERRORS_MAX, words)
        yield _likely("noise law", even_p(evens), f"p of them against the law of {label}")


def reuse_check(recorded: Sequence[Recorded], is_in: Booleans) -> Check:
    """Noise has no pattern: of pairs of queries, by as many first numbers as both have, and of neighbours."""
    rests = [each.noise(is_in) / each.law.size for each in recorded]
    every, widest = np.concatenate(rests), max(rest.size for rest in rests)
    rows = np.array([np.pad(rest, (0, widest - rest.size)) for rest in rests])
    there = np.array([np.arange(widest) < rest.size for rest in rests], dtype=np.float64)
    squares = rows**2 @ there.T  # of the part of a row that it shares with another
    pairs = np.abs(rows @ rows.T) * np.sqrt(there @ there.T / (squares * squares.T))
    neighbours = abs(float(every[1:] @ every[:-1])) / float(every @ every) * math.sqrt(every.size)
    words = "standard errors of the largest correlation between queries, or between neighbouring numbers"
    return _at_most("noise reused", max(neighbours, float(np.triu(pairs, 1).max())), EXTREME_MAX, words)


_DIRECTIONS: Final[Mapping[str, tuple[Callable[[Recorded, Booleans], Doubles], str]]] = {
    "counted": (lambda each, is_in: each.counted * is_in, "vectors that were counted"),
    "shortened": (
        lambda each, is_in: np.where(np.abs(each.counted) < np.abs(each.asked), each.counted * is_in, 0.0),
        "vectors that were counted in part",
    ),
    "left out": (lambda each, is_in: (each.asked - each.counted) * is_in, "what was left out, cut off or erased"),
    "blank": (lambda each, is_in: each.asked * ~is_in, "what blank records would have added"),
}


def _direction_checks(game: Game) -> Iterator[Check]:
    """Check that each victim in the data adds what was counted, a blank one nothing, and nobody what was left out.

    Beyond that an answer is noise alone, along whatever vector. An adversary may stop when that noise was large, so
    that each sum is taken to a fixed total of squared vectors, the last one in part, and beyond the adversary's end
    with noise of the audit's own: then it has the variance 1 for every strategy, and is normal where all noise is.
    """
    total, is_in = 2 * game.accounting.amount, game.victims.is_in
    is_normal = all(isinstance(each.law, Gaussian) for each in game.recorded)
    for name, (direction, words) in _DIRECTIONS.items():
        sums, squares = np.zeros(game.losses.size), np.zeros(game.losses.size)
        for each in game.recorded:
            places, deviation = each.places, each.law.size * math.sqrt(each.law.variance)
            along = direction(each, is_in[places]) / each.law.size
            part = along * np.sqrt(np.clip((total - squares[places]) / np.maximum(along**2, 1e-300), 0.0, 1.0))
            sums[places] += each.noise(is_in) / deviation * part
            squares[places] += part**2
        rest = np.sqrt(np.maximum(total - squares, 0.0)) * game.rng.standard_normal(sums.size)
        draws = ((sums + rest) / math.sqrt(total))[squares > 0]
        if draws.size > 0:  # nothing is shortened by the rules of datasets
            p = min(mean_p(draws), normal_p(draws) if is_normal else 1.0)
            yield _likely(name, p, f"p of the answers along {words}, of {draws.size} victims")


def promise_checks(
    accounting: Accounting, losses: Doubles, is_in: Booleans, *, adversary: str | None = None
) -> Iterator[Check]:
    """Losses (n,) of victims in the data or not hold what the budget of the accounting promises, in both directions."""
    found: dict[str, list[tuple[float, str]]] = {}
    for direction, mine in (("in", losses[is_in]), ("out", -losses[~is_in])):
        for name, p, words in _promises(accounting, mine):
            found.setdefault(name, []).append((p, f"p of {words} {direction}"))
    for name, cases in found.items():
        yield _likely(name, *min(cases), adversary)
    if accounting.kind == "pure":
        words = f"the largest of {losses.size} losses, none of which is above {accounting.amount:g}"
        yield _at_most("certainty", float(np.abs(losses).max()), accounting.amount * (1 + SLACK), words, adversary)


def _promises(accounting: Accounting, losses: Doubles) -> Iterator[tuple[str, float, str]]:
    """Each mean of losses (n,) that the budget bounds: the check's name, a p-value, and what is held against what.

    | check | mean | at most | p |
    |---|---|---|---|
    | delta | [1 - e^(eps - L)]+ | the delta promised at eps | by Chernoff's bound |
    | divergence | e^((a - 1) L), L cut off at a fixed height | e^((a - 1) D), D promised of order a | the same |
    | mean loss | L, the divergence of order 1 | B | by Student's law |
    """
    for epsilon in (multiple * accounting.deviation for multiple in MULTIPLES):
        bound, mean = accounting.delta(epsilon), float(shortfalls(losses, epsilon * (1 + SLACK)).mean())
        yield "delta", chernoff_p(mean, bound, losses.size), f"{mean:.4g} against delta({epsilon:.3g}) = {bound:.4g}"
    orders = {"zcdp": [1 + tilt / accounting.deviation for tilt in TILTS], "rdp": [accounting.order]}
    for order in orders.get(accounting.kind, []):
        stated = accounting.divergence(order)
        height = (2 * order - 1) * accounting.amount + DEVIATIONS * accounting.deviation
        bound = min(math.exp((order - 1) * (stated - height)), 1.0)
        mean = float(np.exp((order - 1) * np.minimum(losses - height, 0.0)).mean())
        words = f"a divergence of {math.log(mean) / (order - 1) + height:.4g} against {stated:.4g} at order {order:.4g}"
        yield "divergence", chernoff_p(mean, bound, losses.size), words
    if accounting.kind == "zcdp":
        p = student_p(losses, accounting.amount)
        yield "mean loss", p, f"a mean loss of {losses.mean():.4g} against {accounting.amount:g}"
