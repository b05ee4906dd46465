"""The adversaries that choose between mechanisms: each does what its name says."""

import numpy as np
import pytest

from sparing_audit.askers import ASKERS, OFFERS, TurnView, rest_of

FITS = np.array([[True] * 5, [True, True, True, True, False], [True, False, True, False, False], [False] * 5])


def picks(name: str, *, turn: int = 0) -> list[int]:
    """By four victims, of which the audit is ahead of the first two, with less and less to spend."""
    view = TurnView(turn=turn, is_ahead=np.array([True, True, False, False]), fits=FITS)
    return [int(offer) for offer in ASKERS[name](view)]


@pytest.mark.parametrize("name", ASKERS)
def test_each_victim_is_in_one_offer_or_none(name: str) -> None:
    """At every turn."""
    for turn in range(4):
        assert set(picks(name, turn=turn)) <= set(range(-1, len(OFFERS)))


def test_what_each_picks() -> None:
    """Small queries behind and large ones ahead, nothing ahead, and what fits."""
    assert picks("small Laplace") == [2] * 4
    assert [picks("both mechanisms in turn", turn=turn)[0] for turn in range(3)] == [1, 3, 1]
    assert [picks("large when ahead", turn=turn) for turn in (0, 1)] == [[4, 4, 2, 2], [1, 1, 2, 2]]
    assert picks("stop when ahead") == [-1, -1, 3, 3]
    assert [picks("unaffordable between affordable", turn=turn)[0] for turn in (0, 1)] == [0, 4]
    assert picks("the largest that fits") == [4, 1, 2, 4]


def test_in_the_end_all_ask_for_the_rest_but_those_that_stop() -> None:
    """Those would be led on."""
    view = TurnView(turn=9, is_ahead=np.array([True, True, False, False]), fits=FITS)
    rests = {name: rest_of(name, view).tolist() for name in ASKERS}
    assert rests.pop("stop when ahead") == [-1, -1, 3, 3]
    assert list(rests.values()) == [[4, 1, 2, 4]] * (len(ASKERS) - 1)
