"""The strongest adaptive analyst, computed: no strategy is guessed, because all of them are searched.

A menu of finite mechanisms, a rule of admission and a number of steps make a finite game.
The analyst picks a mechanism, sees an outcome, and picks again. It wants an event that is much likelier in one world
than in the other: delta(epsilon) is the sum over the last outcomes of [p - e^epsilon q]+.
Backward induction finds the best pick at each step, so that its result bounds every strategy on that menu, adaptive or
not. A rule that is a filter is never above its promise; one number above refutes a rule, with the strategy in hand.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sparing_audit.mechanisms import Mechanism
from sparing_audit.rules import Rule

__all__ = ["Attack", "Move", "delta_of", "strongest_attack"]

GAIN = 1e-13
"""A pick has to gain this part of the value, so that rounding alone never makes a step."""

Path = tuple[tuple[int, int], ...]
"""Sorted pairs of a place in the menu and an outcome: neither the rule nor the ratio depends on the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A mechanism that is asked, and for each of its outcomes the next move; None is the end."""

    asks: Mechanism
    then: "tuple[Move | None, ...]"

    def __str__(self) -> str:
        return "\n".join(_lines_of(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """The largest delta that an adaptive analyst reaches, in which direction, and by which strategy."""

    delta: float
    direction: str  # "in": the event is likelier with the individual in the data; "out": the other way round
    strategy: Move | None  # None: asking nothing is as good


def strongest_attack(menu: Sequence[Mechanism], rule: Rule, *, steps: int, epsilon: float) -> Attack:
    """The largest delta(epsilon) over all adaptive strategies of at most `steps` admitted mechanisms.

    Args:
        menu: the mechanisms, each of which may be asked again.
        rule: admits the next mechanism from those charged so far.
        steps: the most mechanisms on one path.
        epsilon: where delta is taken, at least 0.

    Raises:
        ValueError: the menu is empty, or `steps` or `epsilon` is negative.
    """
    if not menu or steps < 0 or epsilon < 0:
        raise ValueError("the adversary needs a menu, and steps and epsilon of at least 0")
    attacks = (_attack(tuple(menu), rule, steps, epsilon, direction) for direction in ("in", "out"))
    return max(attacks, key=lambda attack: attack.delta)


def delta_of(strategy: Move | None, *, epsilon: float, direction: str) -> float:
    """The delta(epsilon) of one strategy, by summing over all its paths; an own way to `strongest_attack`'s number."""

    def summed(move: Move | None, p: float, q: float) -> float:
        if move is None:
            return max(0.0, p - math.exp(epsilon) * q)
        laws = zip(*move.asks.laws(direction), move.then, strict=True)
        return math.fsum(summed(after, p * more_p, q * more_q) for more_p, more_q, after in laws)

    return summed(strategy, 1.0, 1.0)


def _attack(menu: tuple[Mechanism, ...], rule: Rule, steps: int, epsilon: float, direction: str) -> Attack:
    laws = [each.laws(direction) for each in menu]

    @cache
    def admits(charged: tuple[int, ...]) -> bool:
        return rule([menu[place] for place in charged])

    def ended(seen: Path) -> float:
        p = math.prod(laws[place][0][outcome] for place, outcome in seen)
        q = math.prod(laws[place][1][outcome] for place, outcome in seen)
        return max(0.0, p - math.exp(epsilon) * q)

    @cache
    def best(seen: Path, left: int) -> tuple[float, int | None]:
        """The value of a path and the place of the best pick; None is the end."""
        value, pick = ended(seen), None
        charged = tuple(place for place, _ in seen)
        for place in range(len(menu) if left > 0 else 0):
            if not admits(tuple(sorted((*charged, place)))):
                continue
            found = math.fsum(best(after, left - 1)[0] for after in _outcomes(seen, place, len(laws[place][0])))
            if found > value * (1 + GAIN):
                value, pick = found, place
        return value, pick

    def move(seen: Path, left: int) -> Move | None:
        place = best(seen, left)[1]
        if place is None:
            return None
        after = _outcomes(seen, place, len(laws[place][0]))
        return Move(asks=menu[place], then=tuple(move(each, left - 1) for each in after))

    return Attack(delta=best((), steps)[0], direction=direction, strategy=move((), steps))


def _outcomes(seen: Path, place: int, count: int) -> list[Path]:
    """The paths that one more mechanism leads to."""
    return [tuple(sorted((*seen, (place, outcome)))) for outcome in range(count)]


def _lines_of(move: Move | None) -> list[str]:
    if move is None:
        return ["stop"]
    lines = [move.asks.name]
    for outcome, after in enumerate(move.then):
        first, *rest = _lines_of(after)
        lines += [f"  after {outcome}: {first}", *(f"  {line}" for line in rest)]
    return lines
