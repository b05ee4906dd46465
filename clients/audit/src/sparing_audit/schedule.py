"""The order of an audit: which queries are asked, by which analyst, and which acts come between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sparing_audit.adversaries import Act
from sparing_audit.service import ANALYSTS, Table

__all__ = ["DYADIC", "Again", "Asks", "Begins", "Ends", "Step", "Together", "schedule"]

DYADIC: Final = 4096.0
"""A sigma at which a unit's charge is whole, so that budgets can be met exactly."""
SIGMAS: Final = (DYADIC, 4099.7, DYADIC, 5793.1)
TURNS: Final = 24
REST_FROM: Final = 20
"""From this turn on the adversaries ask for all that is left."""
ROWS_EVERY: Final = 3
TOGETHER: Final = 4
"""Queries in a batch."""

_BATCHED = frozenset({5, 9, 13})
_REPEATED = frozenset({3, 11, 21})
_BEGINS = {4: Act.PAUSE, 5: Act.CORRECT, 6: Act.LOWER, 7: Act.ERASE, 10: Act.CORRECT, 12: Act.LOWER, 13: Act.PAUSE}
_ENDS = {9: Act.PAUSE, 14: Act.ERASE, 17: Act.PAUSE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """One query about a table; with `is_rest`, for all that is left."""

    table: Table
    turn: int  # of the queries about this table
    sigma: float
    analyst: int
    is_rest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """A batch of queries by the adversaries that ask in batches; its turns go on from those of the singles."""

    turn: int
    sigma: float
    analyst: int
    count: int = TOGETHER


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The last query again: under its old key, under new keys with reuse, and another query under its old key."""


@dataclass(frozen=True, slots=True)
class Begins:
    """An act on those victims that its adversary is ahead of."""

    act: Act


@dataclass(frozen=True, slots=True)
class Ends:
    """The end of an act for all victims that it was begun for."""

    act: Act


Step = Asks | Together | Again | Begins | Ends


def schedule() -> Iterator[Step]:
    """The steps of one dataset's audit, in their order."""
    for turn in range(TURNS):
        is_rest, analyst = turn >= REST_FROM, turn // 2 % ANALYSTS
        sigma = DYADIC if is_rest else SIGMAS[turn % len(SIGMAS)]
        if turn in _ENDS:
            yield Ends(_ENDS[turn])
        if turn in _BEGINS:
            yield Begins(_BEGINS[turn])
        yield Asks(table="people", turn=turn, sigma=sigma, analyst=analyst, is_rest=is_rest)
        if turn in _REPEATED:
            yield Again()
        if turn in _BATCHED:
            yield Together(turn=turn, sigma=sigma, analyst=analyst)
        if turn % ROWS_EVERY == ROWS_EVERY - 1:
            yield Asks(table="rows", turn=turn // ROWS_EVERY, sigma=sigma, analyst=analyst, is_rest=is_rest)
