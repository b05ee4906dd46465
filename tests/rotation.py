"""The part of the costly repetitions that a run takes: the same one always, and all of them in `make soak`.

Kills, cuts, races and simulated worlds are many, and the gate takes some of them. The choice is a constant of the tree:
a change is judged by the same tests with the same inputs as every other. `make soak` draws a turn of fresh seeds.
"""

import os
from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

T = TypeVar("T")

TURN_VARIABLE = "SPARING_TEST_TURN"
"""The number of a turn; each has seeds and cases of its own."""
WHOLE_VARIABLE = "SPARING_TEST_WHOLE"
"""1 takes everything."""

_SCATTERED: Final = 143
"""The seed of the places of `some_of`: with it the gate's worlds of a neighbour are of every kind."""
TURN = int(os.environ.get(TURN_VARIABLE) or 0)
IS_WHOLE = os.environ.get(WHOLE_VARIABLE) == "1"
REPEATED_BY = f"{TURN_VARIABLE}={TURN} {WHOLE_VARIABLE}={int(IS_WHOLE)}"
"""The assignments before a command that repeat the part of this run."""


def times(part: int, whole: int) -> int:
    """How often something is repeated."""
    return whole if IS_WHOLE else part


def one_of(cases: Sequence[T], place: int = 0) -> list[T]:
    """One of the cases, the next one for the next turn and for the next place; or all of them."""
    return list(cases) if IS_WHOLE else [cases[(TURN + place) % len(cases)]]


def some_of(cases: Sequence[T], every: int) -> list[T]:
    """One of `every` cases, others with the next turn; or all of them. In their order, and scattered.

    A regular stride over a list of pairs would leave out the same half of each, such as every second kind of world.
    """
    if IS_WHOLE:
        return list(cases)
    scattered = list(range(len(cases)))
    Random(_SCATTERED).shuffle(scattered)
    return [cases[place] for place in sorted(scattered[TURN % every :: every])]


def fresh(count: int) -> range:
    """Seeds of this turn that are of no other; of turn 0 the first ones."""
    return range(TURN * count, (TURN + 1) * count)
