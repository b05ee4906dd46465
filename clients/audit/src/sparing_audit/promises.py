"""The promises of each accounting about losses, and all that a play on a dataset of it is rejected by.

| accounting | a total B promises | checks |
|---|---|---|
| gdp | the curve of sqrt(2 B)-GDP | the hockey stick at several epsilons |
| zcdp | a divergence of a B at every order a | moments at several orders, the mean loss, the hockey stick |
| rdp | a divergence of a B at its order a | the moment at the order, the hockey stick |
| pure | a loss of B at most, with certainty | the largest loss, the hockey stick |

Each holds for every adaptive strategy, whether it spends its budget or not, in both directions.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_audit.accountings import Accounting
from sparing_audit.askers import ASKERS
from sparing_audit.checks import ERRORS_MAX, P_MIN, Check
from sparing_audit.laplace import Integers, laplace_quantiles, size_of
from sparing_audit.laws import chernoff_p, even_p, normal_of_student, normal_p, shortfalls
from sparing_audit.mixed_game import MIXED_COMPARED, MixedGame, Told
from sparing_audit.service import Doubles

__all__ = ["loss_checks", "mixed_checks", "mixed_noise_checks"]

Booleans = NDArray[np.bool_]

TILTS: Final = (0.5, 1.0, 1.5)
"""The orders of zCDP whose moments are taken: 1 + tilt / sqrt(2 B), as far as some thousand losses show them."""
DEVIATIONS: Final = 2.0
"""A loss is cut off so many deviations above its mean under the tilt, so that its moment has a bound."""
MULTIPLES: Final = (0.0, 0.5, 1.0, 2.0, 3.0)
"""The epsilons of the hockey stick, in sqrt(2 B); of a pure budget in B."""
SLACK: Final = 1e-9
"""Of the rounding of some dozen doubles."""


def mixed_checks(game: MixedGame) -> list[Check]:
    """All checks of one play."""
    found = [_compared(game, name) for name in MIXED_COMPARED]
    found += [*mixed_noise_checks(game.told, game.is_in, game.rng), *_along(game)]
    found += loss_checks(game.accounting, game.amount, game.losses, game.is_in)
    for number, name in enumerate(ASKERS):
        mine = game.asker == number
        found += loss_checks(game.accounting, game.amount, game.losses[mine], game.is_in[mine], adversary=name)
    return found


def loss_checks(
    accounting: Accounting, amount: float, losses: Doubles, is_in: Booleans, *, adversary: str | None = None
) -> list[Check]:
    """Losses (n,) of victims in the data or not hold what a total of this amount promises."""
    directions = {"in": losses[is_in], "out": -losses[~is_in]}
    found = [_delta_check(accounting, amount, directions, adversary)]
    match accounting.kind:
        case "zcdp":
            orders = [1 + tilt / math.sqrt(2 * amount) for tilt in TILTS]
            found.append(_divergence_check(accounting, amount, directions, adversary, orders))
            found.append(_mean_check(amount, directions, adversary))
        case "rdp":
            orders = [accounting.order or math.nan]
            found.append(_divergence_check(accounting, amount, directions, adversary, orders))
        case "pure":
            largest = float(np.abs(losses).max())
            bound = amount * (1 + SLACK)
            words = f"the largest of {losses.size} losses, none of which is above {amount:g}"
            passed = largest <= bound
            found.append(_check("certainty", passed, largest, bound, words, adversary))
    return found


def _delta_check(accounting: Accounting, amount: float, directions: dict[str, Doubles], adversary: str | None) -> Check:
    """The mean of [1 - e^(eps - L)]+ is within the delta that is promised at eps, by Chernoff's bound."""
    deviation = math.sqrt(2 * amount) if accounting.has_gaussian else amount
    p, words = 1.0, "p of the means against delta"
    for epsilon in (multiple * deviation for multiple in MULTIPLES):
        bound = accounting.delta(epsilon, amount)
        for direction, losses in directions.items():
            mean = float(shortfalls(losses, epsilon * (1 + SLACK)).mean())
            found = chernoff_p(mean, bound, losses.size)
            if found < p:
                p, words = found, f"p of {mean:.4g} against delta({epsilon:.3g}) = {bound:.4g} {direction}"
    return _check("delta", p > P_MIN, p, P_MIN, words, adversary)


def _divergence_check(
    accounting: Accounting, amount: float, directions: dict[str, Doubles], adversary: str | None, orders: list[float]
) -> Check:
    """The mean of e^((a - 1) L) is at most e^((a - 1) D), D being the divergence promised of order a.

    With losses cut off at a height that is fixed beforehand the mean is the smaller, and Chernoff's bound holds.
    """
    p, words = 1.0, "p of the moments against divergences"
    for order in orders:
        height = (2 * order - 1) * amount + DEVIATIONS * math.sqrt(2 * amount)
        bound = math.exp((order - 1) * (accounting.divergence(order, amount) - height))
        for direction, losses in directions.items():
            mean = float(np.exp((order - 1) * np.minimum(losses - height, 0.0)).mean())
            found = chernoff_p(mean, min(bound, 1.0), losses.size)
            if found < p:
                reads = math.log(mean) / (order - 1) + height
                stated = accounting.divergence(order, amount)
                p, words = (
                    found,
                    f"p of a divergence of {reads:.4g}, not {stated:.4g}, at order {order:.4g} {direction}",
                )
    return _check("divergence", p > P_MIN, p, P_MIN, words, adversary)


def _mean_check(amount: float, directions: dict[str, Doubles], adversary: str | None) -> Check:
    """The mean loss, the divergence of order 1, is at most the amount; of few losses a standard error says less."""
    off, words = -math.inf, ""
    for direction, losses in directions.items():
        error = float(losses.std(ddof=1)) / math.sqrt(losses.size)
        found = normal_of_student((float(losses.mean()) - amount) / error, losses.size - 1) if error > 0 else -math.inf
        if found > off:
            off, words = found, f"standard errors of a mean loss of {losses.mean():.4g} above {amount:g} {direction}"
    return _check("mean loss", off <= ERRORS_MAX, off, ERRORS_MAX, words, adversary)


def mixed_noise_checks(told: list[Told], is_in: Booleans, rng: np.random.Generator) -> Iterator[Check]:
    """Without what was counted the answers are noise of the stated law and size, in whole steps."""
    steps = max(each.grid_error for each in told)
    yield _check("noise steps", steps == 0, steps, 0.0, "of a grid step that answers are off")
    groups: dict[tuple[bool, float], list[Integers]] = {}
    for each in told:
        counted = each.asked * (each.is_counted & is_in[each.places])
        groups.setdefault((each.is_laplace, each.scale_steps), []).append(each.steps - counted)
    for (is_laplace, scale_steps), noises in groups.items():
        noise, law = np.concatenate(noises), "Laplace" if is_laplace else "Gaussian"
        off, p = _laplace_off(noise, scale_steps, rng) if is_laplace else _gaussian_off(noise, scale_steps)
        words = f"standard errors of the size of {noise.size} numbers of {law} noise of {scale_steps:.5g}"
        yield _check("noise size", off <= ERRORS_MAX, off, ERRORS_MAX, words)
        yield _check("noise law", p > P_MIN, p, P_MIN, f"p of them against the {law} law")


def _laplace_off(noise: Integers, scale_steps: float, rng: np.random.Generator) -> tuple[float, float]:
    """How many standard errors the mean size is off, and the p-value of the law."""
    mean, relative = size_of(scale_steps)
    off = abs(float(np.abs(noise).mean()) / mean - 1) / math.sqrt(relative / noise.size)
    return off, even_p(laplace_quantiles(noise, scale_steps, rng))


def _gaussian_off(noise: Integers, sigma_steps: float) -> tuple[float, float]:
    draws = noise / math.sqrt(sigma_steps**2 + 1 / 12)
    return abs(float(np.mean(draws**2)) - 1) / math.sqrt(2 / noise.size), normal_p(draws)


def _along(game: MixedGame) -> Iterator[Check]:
    """Each victim in the data adds what was counted, and nobody what was left out or is blank."""
    for name, adds in (("counted", 1), ("left out", 0), ("blank", 0)):
        total, variance, count = 0.0, 0.0, 0
        for each in game.told:
            is_in = game.is_in[each.places]
            of = {"counted": is_in & each.is_counted, "left out": is_in & ~each.is_counted, "blank": ~is_in}[name]
            rests = (each.steps - adds * each.asked)[of] / each.scale_steps
            lengths = each.asked[of] / each.scale_steps
            total, count = total + float((rests * lengths).sum()), count + rests.size
            variance += _variance(each) * float((lengths**2).sum())
        if count > 0:
            off, words = (
                abs(total) / math.sqrt(variance),
                f"standard errors of the answers along {count} numbers {name}",
            )
            yield _check(name, off <= ERRORS_MAX, off, ERRORS_MAX, words)


def _variance(each: Told) -> float:
    """Of the noise, in squares of its sigma or scale."""
    if not each.is_laplace:
        return 1 + 1 / (12 * each.scale_steps**2)
    mean, relative = size_of(each.scale_steps)
    return (relative + 1) * (mean / each.scale_steps) ** 2


def _check(
    name: str,
    passed: bool,  # noqa: FBT001 - as the fields of a check follow each other
    measured: float,
    bound: float,
    words: str,
    adversary: str | None = None,
) -> Check:
    return Check(name=name, passed=passed, measured=measured, bound=bound, words=words, adversary=adversary)


def _compared(game: MixedGame, name: str) -> Check:
    mismatches = game.mismatches
    count = mismatches.counts[name]
    words = "; ".join(mismatches.first.get(name, [])) or f"differences in {mismatches.compared[name]:,} comparisons"
    return _check(name, count == 0 and mismatches.compared[name] > 0, count, 0, words)
