"""Adversaries that choose between mechanisms: by the answers so far, a Gaussian or Laplace noise, small or large.

Each turn offers five queries. An adversary puts each of its victims into one of them, or into none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ASKERS", "OFFERS", "Chosen", "Offer", "TurnView", "rest_of"]

Chosen = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A query of a turn: the share of a budget that it charges, about, and whether its noise is Gaussian if it may."""

    share: float
    is_gaussian: bool


OFFERS: Final = (
    Offer(share=1 / 32, is_gaussian=True),
    Offer(share=1 / 4, is_gaussian=True),
    Offer(share=1 / 32, is_gaussian=False),
    Offer(share=1 / 8, is_gaussian=False),
    Offer(share=1 / 4, is_gaussian=False),
)
NOTHING: Final = -1
_SMALL, _LARGE, _SMALL_LAPLACE, _LAPLACE, _LARGE_LAPLACE = range(len(OFFERS))
_LONGEST_FIRST: Final = (_LARGE_LAPLACE, _LARGE, _LAPLACE, _SMALL_LAPLACE, _SMALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """An adversary's view of its victims (k of them) before a turn."""

    turn: int
    is_ahead: NDArray[np.bool_]  # (k,) the loss so far is large: the victim seems to be in the data
    fits: NDArray[np.bool_]  # (k, OFFERS) whether an offer is affordable

    def all(self, offer: int) -> Chosen:
        """The same offer for every victim."""
        return np.full(self.is_ahead.size, offer, dtype=np.int64)


def _small(view: TurnView) -> Chosen:
    return view.all(_SMALL_LAPLACE)


def _in_turn(view: TurnView) -> Chosen:
    return view.all(_LARGE if view.turn % 2 == 0 else _LAPLACE)


def _large_when_ahead(view: TurnView) -> Chosen:
    return np.where(view.is_ahead, _LARGE_LAPLACE if view.turn % 2 == 0 else _LARGE, _SMALL_LAPLACE)


def _stop_when_ahead(view: TurnView) -> Chosen:
    return np.where(view.is_ahead, NOTHING, _LAPLACE)


def _unaffordable_between(view: TurnView) -> Chosen:
    return view.all(_LARGE_LAPLACE if view.turn % 2 == 1 else _SMALL)


def _largest_that_fits(view: TurnView) -> Chosen:
    chosen = view.all(_LARGE_LAPLACE)
    for offer in reversed(_LONGEST_FIRST):
        chosen = np.where(view.fits[:, offer], offer, chosen)
    return chosen


def rest_of(name: str, view: TurnView) -> Chosen:
    """How the adversary of a name picks in the last turns."""
    return ASKERS[name](view) if name == "stop when ahead" else _largest_that_fits(view)


ASKERS: Final[Mapping[str, Callable[[TurnView], Chosen]]] = {
    "small Laplace": _small,
    "both mechanisms in turn": _in_turn,
    "large when ahead": _large_when_ahead,
    "stop when ahead": _stop_when_ahead,
    "unaffordable between affordable": _unaffordable_between,
    "the largest that fits": _largest_that_fits,
}
