"""The audit's adversaries: how long a vector each picks next, in view of the answers about its own victims.

Each is one function over all its victims at once. What it may see is everything that an analyst who knows the victim
can know: the loss so far, worked out from the answers, and the room, worked out by the audit's own filter as if the
victim were in the data. The rule does not protect by hiding either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_audit.service import Doubles, Table

__all__ = ["ADVERSARIES", "Act", "Adversary", "View"]

Lengths = NDArray[np.int64]

AHEAD: Final = 1.0
"""The loss, in nats, from which an adversary takes itself to be ahead."""


class Act(Enum):
    """An act on the accounts or records of those victims that an adversary is ahead of."""

    LOWER = "lowers the limit"
    PAUSE = "pauses, and resumes later"
    ERASE = "is erased, and returns later"
    CORRECT = "has its record corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An adversary's view of its victims (k of them) before a query. Lengths are in the unit of the weights."""

    turn: int  # of the queries about this adversary's table, from 0
    full: int  # the longest vector that an untouched budget pays for at this sigma
    loss: Doubles  # (k,) so far, in nats: positive where the victim seems to be in the data
    room: Lengths  # (k,) the longest vector that is affordable now; 0 during a pause
    is_dyadic: bool  # whether charges at this sigma are whole without rounding
    rng: np.random.Generator

    def share(self, share: float) -> Lengths:
        """For each victim the vector that costs this share of a budget, rounded down."""
        return np.full(self.loss.size, int(self.full * share**0.5), dtype=np.int64)


Picks = Callable[[View], Lengths]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adversary:
    """One adversary: how it picks lengths, in which table its victims are, and what it does to them besides."""

    picks: Picks
    table: Table = "people"
    act: Act | None = None
    spends_rest: bool = True  # asks for all that is left in the last turns
    picks_together: Picks | None = None  # how it picks in a batch, without seeing the answers between


def _fixed_chunks(view: View) -> Lengths:
    return view.share(1 / 8)


def _one_huge(view: View) -> Lengths:
    return view.share(1) if view.turn == 0 else view.share(1 / 16)


def _many_tiny(view: View) -> Lengths:
    return view.share(1 / 40)


def _all_when_ahead(view: View) -> Lengths:
    return np.where(view.loss > AHEAD, np.maximum(view.room, 1), view.share(1 / 16))


def _stop_when_ahead(view: View) -> Lengths:
    return np.where(view.loss > AHEAD, 0, view.share(1 / 14))


def _unaffordable_between(view: View) -> Lengths:
    beyond = view.room + np.where(view.rng.random(view.room.size) < 0.5, 1, view.full)
    return beyond if view.turn % 2 == 1 else view.share(1 / 10)


def _equality(view: View) -> Lengths:
    """Four quarters, that are the whole budget to the last unit, and then the smallest vector there is."""
    if not view.is_dyadic:
        return view.share(0)
    return np.where(view.room >= view.full // 2, view.full // 2, 1)


def _random_shares(view: View) -> Lengths:
    shares: Doubles = view.rng.uniform(0.01, 0.15, view.loss.size)
    return (view.full * np.sqrt(shares)).astype(np.int64)


def _halves(view: View) -> Lengths:
    return view.share(1 / 2) if view.turn % 4 in (0, 2) else view.share(1 / 20)


def _twelfths(view: View) -> Lengths:
    return view.share(1 / 12)


def _quarters(view: View) -> Lengths:
    return view.share(1 / 4)


ADVERSARIES: Final[Mapping[str, Adversary]] = {
    "fixed chunks": Adversary(picks=_fixed_chunks),
    "one huge": Adversary(picks=_one_huge),
    "many tiny": Adversary(picks=_many_tiny),
    "spend all when ahead": Adversary(picks=_all_when_ahead),
    "stop when ahead": Adversary(picks=_stop_when_ahead, spends_rest=False),
    "unaffordable between affordable": Adversary(picks=_unaffordable_between),
    "equality at the budget": Adversary(picks=_equality),
    "limits lowered when ahead": Adversary(picks=_twelfths, act=Act.LOWER),
    "pauses": Adversary(picks=_twelfths, act=Act.PAUSE),
    "erased and returned": Adversary(picks=_twelfths, act=Act.ERASE),
    "corrected records": Adversary(picks=_twelfths, act=Act.CORRECT),
    "several rows": Adversary(picks=_twelfths, table="rows"),
    "two analysts in turn": Adversary(picks=_halves),
    "batches against singles": Adversary(picks=_twelfths, picks_together=_quarters),
    "retries and reuse": Adversary(picks=_random_shares),
}
