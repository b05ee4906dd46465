"""Everything that a play is rejected by: a table of checks, each of what was measured against a bound.

At a budget B of rho that is spent whole, losses follow one law under every rule of admission (theory, section 11).
Under an accounting they hold its promise for every adaptive strategy, whether it spends its budget or not:

| accounting | a total B promises | checks |
|---|---|---|
| gdp | the curve of sqrt(2 B)-GDP | the hockey stick at several epsilons |
| zcdp | a divergence of a B at every order a | moments at several orders, the mean loss, the hockey stick |
| rdp | a divergence of a B at its order a | the moment at the order, the hockey stick |
| pure | a loss of B at most, with certainty | the largest loss, the hockey stick |
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from sparing_audit.accountings import Accounting
from sparing_audit.adversaries import ADVERSARIES, ASKERS
from sparing_audit.curves import gaussian_delta, gaussian_epsilon
from sparing_audit.game import RHO, Game, Recorded
from sparing_audit.laws import (
    Booleans,
    Doubles,
    chernoff_p,
    even_p,
    mean_p,
    normal_of_student,
    normal_p,
    proportion_upper,
    shortfalls,
    standardised_loss,
)

__all__ = [
    "MU",
    "Check",
    "accounting_checks",
    "bound_check",
    "canary_check",
    "completed",
    "delta_check",
    "loss_check",
    "noise_checks",
    "promise_checks",
    "reuse_check",
    "rule_checks",
]

MU: Final = math.sqrt(2 * RHO)
P_MIN: Final = 1e-5
"""The p-value below which a law is rejected: of a right one in so many tests."""
ERRORS_MAX: Final = 4.5
"""Standard errors that a mean over all victims may be off."""
EXTREME_MAX: Final = 6.3
"""The bound for the largest of some ten thousand sums or correlations."""
EXPECTED_MIN: Final = 50
"""The expected victims on either side of a loss from which on a standard error bounds how far their mean is off."""
EPSILONS: Final = (0.0, 2.0, 4.0, 8.0, 12.0, 16.0)
DELTA: Final = 1e-5
BOUND_ERROR: Final = 1e-5
"""The probability with which a lower bound may be too high."""
TILTS: Final = (0.5, 1.0, 1.5)
"""The orders of zCDP whose moments are taken: 1 + tilt / sqrt(2 B), as far as some thousand losses show them."""
DEVIATIONS: Final = 2.0
"""A loss is cut off so many deviations above its mean under the tilt, so that its moment has a bound."""
MULTIPLES: Final = (0.0, 0.5, 1.0, 2.0, 3.0)
"""The epsilons of the hockey stick under an accounting, in deviations."""
SLACK: Final = 1e-9
"""The relative error of some dozen rounded doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: `measured` was held against `bound`, as the words say."""

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
    """All checks of one play under a rule of admission."""
    is_in, losses = game.victims.is_in, completed(game)
    yield from _comparisons(game)
    yield from _direction_checks(game)
    yield from noise_checks(game.recorded, is_in, game.rng)
    yield reuse_check(game.recorded, is_in)
    yield loss_check(losses, is_in)
    yield delta_check(game.losses, is_in)
    for name in ADVERSARIES:
        places = game.victims.of(name)
        yield loss_check(losses[places], is_in[places], adversary=name)
        directions = _directions(game.losses[places], is_in[places])
        yield _stick_check(directions, EPSILONS, lambda epsilon: gaussian_delta(epsilon, MU), name)
    yield bound_check(game.losses, is_in)


def accounting_checks(game: Game, accounting: Accounting) -> Iterator[Check]:
    """All checks of one play under an accounting."""
    is_in = game.victims.is_in
    yield from _comparisons(game)
    yield from noise_checks(game.recorded, is_in, game.rng)
    yield from _along(game)
    yield from promise_checks(accounting, game.losses, is_in)
    for name in ASKERS:
        places = game.victims.of(name)
        yield from promise_checks(accounting, game.losses[places], is_in[places], adversary=name)


def _comparisons(game: Game) -> Iterator[Check]:
    """No difference; what was never compared has not passed."""
    for name in game.compared:
        count, compared = game.mismatches.counts[name], game.mismatches.compared[name]
        words = "; ".join(game.mismatches.first.get(name, [])) or f"differences in {compared:,} comparisons"
        yield Check(name=name, passed=count == 0 < compared, measured=count, bound=0, words=words)


def completed(game: Game) -> Doubles:
    """Each victim's loss (n,) after one more query, of the audit's own drawing, that spends the rest of the budget.

    With it every strategy has spent the budget whole, so that all losses follow one law, whether their adversaries
    stopped early or not. Nothing is drawn where nothing is left.
    """
    spent = np.zeros(game.losses.size)
    for each in game.recorded:
        spent[each.places] += each.counted**2 / (2 * each.law.size**2)
    rest = np.maximum(RHO - spent, 0.0)
    means = np.where(game.victims.is_in, rest, -rest)
    drawn: Doubles = means + np.sqrt(2 * rest) * game.rng.standard_normal(rest.size)
    return game.losses + drawn


def loss_check(losses: Doubles, is_in: Booleans, *, rho: float = RHO, adversary: str | None = None) -> Check:
    """Losses (n,) at budgets spent whole are N(B, 2B) of victims in the data and N(-B, 2B) of blank ones."""
    parts = [standardised_loss(losses[is_in == inside], rho, is_in=inside) for inside in (True, False)]
    words = f"p of {losses.size} losses against N(±{rho:g}, {2 * rho:g})"
    return _likely("loss law", normal_p(np.concatenate(parts)), words, adversary)


def delta_check(losses: Doubles, is_in: Booleans) -> Check:
    """The mean of [1 - e^(eps - L)]+ is within delta(eps), at several epsilons and in both directions.

    Where few victims are expected to have such a loss, or few not to, their standard error says little, and Chernoff's
    bound decides.
    """
    cases = []
    for epsilon in EPSILONS:
        bound = gaussian_delta(epsilon, MU)
        for direction, mine in _directions(losses, is_in).items():
            numbers = shortfalls(mine, epsilon)
            mean, error = float(numbers.mean()), float(numbers.std(ddof=1)) / math.sqrt(numbers.size)
            off = (mean - bound) / error if error > 0 else math.copysign(math.inf, mean - bound)
            is_rare = numbers.size * min(bound, 1 - bound) < EXPECTED_MIN
            if is_rare and chernoff_p(mean, bound, numbers.size) > P_MIN:
                off = min(off, 0.0)
            cases.append((off, f"standard errors above delta({epsilon:g}) = {bound:.4g} {direction}: {mean:.4g}"))
    off, words = max(cases)
    return _at_most("delta", off, ERRORS_MAX, words)


def bound_check(losses: Doubles, is_in: Booleans) -> Check:
    """A lower bound of mu that guesses from the losses betray, by Clopper and Pearson, is within the promised mu.

    The threshold of the guess is chosen on one half of the victims; the other half bounds both of its errors. The words
    have what the same errors say of epsilon alone, which from some thousand guesses is far below any large promise.
    """
    chosen = np.arange(losses.size) % 4 < 2
    thresholds = np.quantile(losses[chosen], np.linspace(0.02, 0.98, 49)).tolist()
    best = max(
        thresholds,
        key=lambda threshold: _mu_of(
            *((hits + 1) / (of + 2) for hits, of in _errors(losses, is_in, chosen, threshold))
        ),
    )
    rate_false, rate_missed = (
        proportion_upper(hits, of, BOUND_ERROR / 2) for hits, of in _errors(losses, is_in, ~chosen, best)
    )
    bound, left = _mu_of(rate_false, rate_missed), 1 - DELTA - rate_false
    epsilon = max(0.0, math.log(left / rate_missed)) if left > 0 else 0.0
    words = (
        f"mu is at least this, epsilon at delta {DELTA:g} at least {epsilon:.3g}; promised are {MU:.4g} and "
        f"{gaussian_epsilon(MU, DELTA):.4g}"
    )
    return _at_most("lower bound", bound, MU, words)


def _mu_of(rate_false: float, rate_missed: float) -> float:
    """The smallest mu at which a guess may have both errors: Phi^-1(1 - FPR) - Phi^-1(FNR), 0 where that is less."""
    if max(rate_false, rate_missed) >= 1:
        return 0.0
    normal = NormalDist()
    return max(0.0, -normal.inv_cdf(rate_false) - normal.inv_cdf(rate_missed))


def _errors(losses: Doubles, is_in: Booleans, among: Booleans, threshold: float) -> Iterator[tuple[int, int]]:
    """Errors of the guess that losses above the threshold are of victims in the data, with how many may err."""
    for side, is_wrong in ((among & ~is_in, losses > threshold), (among & is_in, losses <= threshold)):
        yield int(is_wrong[side].sum()), int(side.sum())


def canary_check(answers: Doubles, is_in: Booleans, length: float, sigma: float, *, name: str, mu: float) -> Check:
    """One query that adds `length` at each canary's coordinate, in the data or not: the distance between both is mu."""
    estimate = float(answers[is_in].mean() - answers[~is_in].mean()) / sigma
    words = f"standard errors of a mu of {estimate:.4f} from {mu:.4g}, with vectors of {length / sigma:.4g} sigmas"
    return _at_most(name, abs(estimate - mu) / (2 / math.sqrt(answers.size)), ERRORS_MAX, words)


def noise_checks(recorded: Sequence[Recorded], is_in: Booleans, rng: np.random.Generator) -> Iterator[Check]:
    """Without what was counted the answers are noise of the stated law and size, in whole steps."""
    yield _at_most("noise steps", max(each.grid_error for each in recorded), 0.0, "of a grid step that answers are off")
    for label in dict.fromkeys(each.law.label for each in recorded):
        mine = [each for each in recorded if each.law.label == label]
        statistics = [each.law.statistics(_rests(each, is_in), rng) for each in mine]
        sizes, evens = (np.concatenate(each) for each in zip(*statistics, strict=True))
        off = abs(float(sizes.mean()) - 1) / math.sqrt(mine[0].law.spread / sizes.size)
        words = f"standard errors of the size of {sizes.size} numbers of {label}, {sizes.mean():.5f} of the stated one"
        yield _at_most("noise size", off, ERRORS_MAX, words)
        yield _likely("noise law", even_p(evens), f"p of them against the law of {label}")


def reuse_check(recorded: Sequence[Recorded], is_in: Booleans) -> Check:
    """Noise has no pattern: of pairs of queries with as many numbers, or by their first numbers, and of neighbours."""
    rests = [_rests(each, is_in) / each.law.size for each in recorded]
    sizes = {rest.size for rest in rests}
    groups = [np.array([rest for rest in rests if rest.size == size]) for size in sizes]
    groups.append(np.array([rest[: min(sizes)] for rest in rests]))
    every = np.concatenate(rests)
    largest = abs(float(every[1:] @ every[:-1])) / float(every @ every) * math.sqrt(every.size)
    for group in groups:
        lengths = np.sqrt((group**2).sum(axis=1))
        pairs = np.abs(group @ group.T) / np.outer(lengths, lengths) * math.sqrt(group.shape[1])
        largest = max(largest, float(np.max(pairs - np.diag(np.diag(pairs)))))
    words = "standard errors of the largest correlation between queries, or between neighbouring numbers"
    return _at_most("noise reused", largest, EXTREME_MAX, words)


def _rests(each: Recorded, is_in: Booleans) -> Doubles:
    """The noise of an answer, in steps."""
    return each.values - each.counted * is_in[each.places]


_DIRECTIONS: Final[Mapping[str, tuple[Callable[[Recorded], Doubles], str]]] = {
    "counted": (lambda each: each.counted, "vectors that were counted"),
    "shortened": (
        lambda each: np.where(np.abs(each.counted) < np.abs(each.asked), each.counted, 0.0),
        "vectors that were counted in part",
    ),
    "left out": (lambda each: each.asked - each.counted, "what was left out, cut off or erased"),
}


def _direction_checks(game: Game) -> Iterator[Check]:
    """Each victim in the data adds what was counted, a blank one nothing, and nobody what was left out.

    Beyond that an answer is noise alone, along whatever vector. An adversary may stop when that noise was large, so
    that each sum is taken to a fixed total of squared vectors, the last one in part, and beyond the adversary's end
    with noise of the audit's own: then it is normal for every strategy.
    """
    total = 2.0 * RHO
    for name, (direction, words) in _DIRECTIONS.items():
        sums, squares = np.zeros(game.losses.size), np.zeros(game.losses.size)
        for each in game.recorded:
            along, places = direction(each) / each.law.size, each.places
            room = total - squares[places]
            part = along * np.sqrt(np.clip(room / np.maximum(along**2, 1e-300), 0.0, 1.0))
            noise = _rests(each, game.victims.is_in) / (each.law.size * math.sqrt(each.law.variance))
            sums[places] += noise * part
            squares[places] += part**2
        rest = np.sqrt(np.maximum(total - squares, 0.0)) * game.rng.standard_normal(sums.size)
        draws = ((sums + rest) / math.sqrt(total))[squares > 0]
        if draws.size > 0:  # nothing is shortened by the rules of datasets
            p = min(normal_p(draws), mean_p(draws))
            yield _likely(name, p, f"p of the answers along {words}, of {draws.size} victims")


def _along(game: Game) -> Iterator[Check]:
    """Each victim in the data adds what was counted, and nobody what was left out or is blank."""
    for name, adds in (("counted", 1), ("left out", 0), ("blank", 0)):
        total, variance, count = 0.0, 0.0, 0
        for each in game.recorded:
            is_in, is_counted = game.victims.is_in[each.places], each.counted != 0
            of = {"counted": is_in & is_counted, "left out": is_in & ~is_counted, "blank": ~is_in}[name]
            lengths = each.asked[of] / each.law.size
            total += float(((each.values - adds * each.asked)[of] / each.law.size * lengths).sum())
            variance += each.law.variance * float((lengths**2).sum())
            count += lengths.size
        if count > 0:
            words = f"standard errors of the answers along {count} numbers {name}"
            yield _at_most(name, abs(total) / math.sqrt(variance), ERRORS_MAX, words)


def promise_checks(
    accounting: Accounting, losses: Doubles, is_in: Booleans, *, adversary: str | None = None
) -> Iterator[Check]:
    """Losses (n,) of victims in the data or not hold what the budget of the accounting promises."""
    amount, directions = accounting.amount, _directions(losses, is_in)
    epsilons = [multiple * accounting.deviation for multiple in MULTIPLES]
    yield _stick_check(directions, epsilons, accounting.delta, adversary)
    match accounting.kind:
        case "zcdp":
            orders = [1 + tilt / accounting.deviation for tilt in TILTS]
            yield _divergence_check(directions, accounting, orders, adversary)
            yield _mean_check(directions, amount, adversary)
        case "rdp":
            yield _divergence_check(directions, accounting, [accounting.order], adversary)
        case "pure":
            words = f"the largest of {losses.size} losses, none of which is above {amount:g}"
            yield _at_most("certainty", float(np.abs(losses).max()), amount * (1 + SLACK), words, adversary)


def _directions(losses: Doubles, is_in: Booleans) -> dict[str, Doubles]:
    """Losses of both worlds, so that in each a loss that is too large is on the same side."""
    return {"in": losses[is_in], "out": -losses[~is_in]}


def _stick_check(
    directions: Mapping[str, Doubles], epsilons: Sequence[float], delta: Callable[[float], float], adversary: str | None
) -> Check:
    """The mean of [1 - e^(eps - L)]+ is within the delta that is promised at eps, by Chernoff's bound."""
    cases = []
    for epsilon in epsilons:
        bound = delta(epsilon)
        for direction, losses in directions.items():
            mean = float(shortfalls(losses, epsilon * (1 + SLACK)).mean())
            words = f"p of {mean:.4g} against delta({epsilon:.3g}) = {bound:.4g} {direction}"
            cases.append((chernoff_p(mean, bound, losses.size), words))
    return _likely("delta", *min(cases), adversary)


def _divergence_check(
    directions: Mapping[str, Doubles], accounting: Accounting, orders: Sequence[float], adversary: str | None
) -> Check:
    """The mean of e^((a - 1) L) is at most e^((a - 1) D), D being the divergence promised of order a.

    With losses cut off at a height that is fixed beforehand the mean is the smaller, and Chernoff's bound holds.
    """
    cases = []
    for order in orders:
        stated = accounting.divergence(order)
        height = (2 * order - 1) * accounting.amount + DEVIATIONS * accounting.deviation
        bound = min(math.exp((order - 1) * (stated - height)), 1.0)
        for direction, losses in directions.items():
            mean = float(np.exp((order - 1) * np.minimum(losses - height, 0.0)).mean())
            reads = math.log(mean) / (order - 1) + height
            words = f"p of a divergence of {reads:.4g} against {stated:.4g} at order {order:.4g} {direction}"
            cases.append((chernoff_p(mean, bound, losses.size), words))
    return _likely("divergence", *min(cases), adversary)


def _mean_check(directions: Mapping[str, Doubles], amount: float, adversary: str | None) -> Check:
    """The mean loss, the divergence of order 1, is at most the amount; of few losses a standard error says less."""
    cases = []
    for direction, losses in directions.items():
        error = float(losses.std(ddof=1)) / math.sqrt(losses.size)
        off = normal_of_student((float(losses.mean()) - amount) / error, losses.size - 1) if error > 0 else -math.inf
        cases.append((off, f"standard errors of a mean loss of {losses.mean():.4g} above {amount:g} {direction}"))
    off, words = max(cases)
    return _at_most("mean loss", off, ERRORS_MAX, words, adversary)
