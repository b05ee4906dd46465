"""The audit's adversaries: what each picks next, in view of the answers about its own victims.

Each is one function over all its victims at once. What it may see is everything that an analyst who knows the victim
can know: the loss so far, worked out from the answers, and the room, worked out by the audit's own filter as if the
victim were in the data. The rule does not protect by hiding either. ADVERSARIES pick the lengths of vectors with
Gaussian noise. ASKERS choose between five queries, and their mechanisms; they put a victim into one of them or into
none. In the last turns all ask for whatever is left, but for the one that STOPS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from sparing_audit.laws import Booleans, Places

BATCHES: Final = "batches against singles"
STOPS: Final = "stop when ahead"
ROWS: Final = "several rows"
"""The adversary whose victims are in the table of rows."""


class Act(Enum):
    """An act on the accounts or records of victims that an adversary is ahead of, by the name of that adversary."""

    LOWER = "limits lowered when ahead"
    PAUSE = "pauses"
    ERASE = "erased and returned"
    CORRECT = "corrected records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An adversary's view of its victims (k of them) before a turn of offers."""

    turn: int  # of the queries about this adversary's table, from 0
    is_ahead: Booleans  # (k,) the loss so far is large: the victim seems to be in the data
    room: Places  # (k,) the largest offer that is affordable now, or the largest of all

    def all(self, pick: int) -> Places:
        """One pick for all victims."""
        return np.full(self.room.size, pick, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Choice):
    """An adversary's view before a query: `room` is the longest vector that is affordable, in the unit of weights."""

    full: int  # the longest vector that an untouched budget pays for at this sigma
    is_dyadic: bool  # whether charges at this sigma are whole without rounding
    rng: np.random.Generator

    def share(self, share: float) -> Places:
        """For each victim the vector that costs this share of a budget, rounded down."""
        return self.all(int(self.full * share**0.5))


def _unaffordable_between(view: View) -> Places:
    beyond = view.room + np.where(view.rng.random(view.room.size) < 0.5, 1, view.full)
    return beyond if view.turn % 2 == 1 else view.share(1 / 10)


def _equality(view: View) -> Places:
    """Four quarters, which use the whole budget up to the last unit, and then the smallest vector that there is."""
    if not view.is_dyadic:
        return view.share(0)
    return np.where(view.room >= view.full // 2, view.full // 2, 1)


def _twelfths(view: View) -> Places:
    return view.share(1 / 12)


ADVERSARIES: Final[Mapping[str, Callable[[View], Places]]] = {
    "fixed chunks": lambda view: view.share(1 / 8),
    "one huge": lambda view: view.share(1 if view.turn == 0 else 1 / 16),
    "many tiny": lambda view: view.share(1 / 40),
    "spend all when ahead": lambda view: np.where(view.is_ahead, np.maximum(view.room, 1), view.share(1 / 16)),
    STOPS: lambda view: np.where(view.is_ahead, 0, view.share(1 / 14)),
    "unaffordable between affordable": _unaffordable_between,
    "equality at the budget": _equality,
    Act.LOWER.value: _twelfths,
    Act.PAUSE.value: _twelfths,
    Act.ERASE.value: _twelfths,
    Act.CORRECT.value: _twelfths,
    ROWS: _twelfths,
    "two analysts in turn": lambda view: view.share(1 / 2 if view.turn % 2 == 0 else 1 / 20),
    BATCHES: _twelfths,
    "retries and reuse": lambda view: (view.full * np.sqrt(view.rng.uniform(0.01, 0.15, view.room.size))).astype(
        np.int64
    ),
}

OFFERS: Final = ((1 / 32, True), (1 / 4, True), (1 / 32, False), (1 / 8, False), (1 / 4, False))
"""The offers of a turn: about which share of a budget each charges, and whether with Gaussian noise if possible."""
_SMALL, _LARGE, _SMALL_LAPLACE, _LAPLACE, _LARGE_LAPLACE = range(len(OFFERS))
LARGEST_LAST: Final = (_SMALL, _SMALL_LAPLACE, _LAPLACE, _LARGE, _LARGE_LAPLACE)

ASKERS: Final[Mapping[str, Callable[[Choice], Places]]] = {
    "small Laplace": lambda view: view.all(_SMALL_LAPLACE),
    "both mechanisms in turn": lambda view: view.all(_LARGE if view.turn % 2 == 0 else _LAPLACE),
    "large when ahead": lambda view: np.where(
        view.is_ahead, _LARGE_LAPLACE if view.turn % 2 == 0 else _LARGE, _SMALL_LAPLACE
    ),
    STOPS: lambda view: np.where(view.is_ahead, -1, _LAPLACE),
    "unaffordable between affordable": lambda view: view.all(_LARGE_LAPLACE if view.turn % 2 == 1 else _SMALL),
    "the largest that fits": lambda view: view.room,
}
