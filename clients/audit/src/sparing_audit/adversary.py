"""The strongest adaptive analyst, computed: no strategy is guessed, because all of them are searched.

A menu of finite mechanisms, a rule of admission and a number of steps make a finite game. The analyst picks a
mechanism, sees an outcome, and picks again. It wants an event that is much likelier in one world than in the other:
delta(epsilon) is the sum over the last outcomes of [p - e^epsilon q]+.

Backward induction finds the best pick at each step. So its result bounds every strategy on that menu, adaptive or not.
A rule that is a filter never exceeds its promise. One number above the promise refutes a rule, and the strategy shows
how.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import indent

from sparing_audit.mechanisms import Mechanism
from sparing_audit.rules import Rule

GAIN = 1e-13
"""The relative gain that a pick must bring, so that rounding alone never makes a step."""

Path = tuple[tuple[int, int], ...]
"""Sorted pairs of a place in the menu and an outcome. Their order matters neither to the rule nor to the ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A mechanism to ask, and for each of its outcomes the next move; None is the end."""

    asks: Mechanism
    then: "tuple[Move | None, ...]"

    def __str__(self) -> str:
        after = (f"after {outcome}: {'stop' if move is None else move}" for outcome, move in enumerate(self.then))
        return "\n".join([self.asks.name, *(indent(lines, "  ") for lines in after)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """The largest delta that an adaptive analyst reaches, with its direction and the strategy that reaches it."""

    delta: float
    direction: str  # "in": the event is likelier with the individual in the data; "out": the other way round
    strategy: Move | None  # None: asking nothing is as good


def strongest_attack(menu: Sequence[Mechanism], rule: Rule, *, steps: int, epsilon: float) -> Attack:
    """The largest delta(epsilon) over all adaptive strategies of at most `steps` admitted mechanisms.

    Args:
        menu: the mechanisms, each of which may be asked again.
        rule: tells whether the mechanisms so far and the next one may be charged together.
        steps: the most mechanisms on one path.
        epsilon: the epsilon at which delta is taken, at least 0.

    Raises:
        ValueError: the menu is empty, or `steps` or `epsilon` is negative.
    """
    if not menu or steps < 0 or epsilon < 0:
        raise ValueError("the adversary needs a menu, and steps and epsilon of at least 0")
    attacks = (_attack(tuple(menu), rule, steps, epsilon, direction) for direction in ("in", "out"))
    return max(attacks, key=lambda attack: attack.delta)


def _attack(menu: tuple[Mechanism, ...], rule: Rule, steps: int, epsilon: float, direction: str) -> Attack:
    laws = [each.laws(direction) for each in menu]

    @cache
    def admits(charged: tuple[int, ...]) -> bool:
        return rule([menu[place] for place in charged])

    @cache
    def best(seen: Path, left: int) -> tuple[float, Move | None]:
        """The value of a path and the best move from there; None is the end."""
        p, q = (math.prod(laws[place][world][outcome] for place, outcome in seen) for world in (0, 1))
        value, move = max(0.0, p - math.exp(epsilon) * q), None
        for place, mechanism in enumerate(menu if left > 0 else ()):
            if not admits(tuple(sorted((*(charged for charged, _ in seen), place)))):
                continue
            paths = (tuple(sorted((*seen, (place, outcome)))) for outcome in range(len(mechanism.p_in)))
            values, moves = zip(*(best(path, left - 1) for path in paths), strict=True)
            if math.fsum(values) > value * (1 + GAIN):
                value, move = math.fsum(values), Move(asks=mechanism, then=moves)
        return value, move

    delta, strategy = best((), steps)
    return Attack(delta=delta, direction=direction, strategy=strategy)
