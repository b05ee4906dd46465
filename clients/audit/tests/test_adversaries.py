"""The adversaries: what each picks, and that it picks in view of what it has seen."""

import numpy as np
import pytest

from sparing_audit.adversaries import ADVERSARIES, ASKERS, OFFERS, STOPS, Choice, View

FULL = 16384


def view(*, turn: int = 0, room: tuple[int, ...] = (FULL, 100)) -> View:
    """Two victims, of the second of which the adversary is ahead, with little left."""
    rng, is_ahead = np.random.default_rng(1), np.array([False, True])
    return View(turn=turn, full=FULL, is_ahead=is_ahead, room=np.array(room), is_dyadic=True, rng=rng)


def offers(name: str, turn: int = 0) -> list[int]:
    """The offers to four victims, of which the audit is ahead of the first two, with less and less to spend."""
    choice = Choice(turn=turn, is_ahead=np.array([True, True, False, False]), room=np.array([4, 1, 2, 4]))
    return [int(offer) for offer in ASKERS[name](choice)]


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("turn", range(6))
def test_lengths_are_whole_and_not_negative(name: str, turn: int) -> None:
    """One for each victim, in every turn, of each of the fifteen that issue 27 names."""
    assert len(ADVERSARIES) == 15
    lengths = ADVERSARIES[name](view(turn=turn))
    assert lengths.dtype == np.int64
    assert lengths.shape == (2,)
    assert (lengths >= 0).all()


def test_what_is_seen_decides() -> None:
    """Two adversaries go by the loss so far."""
    assert ADVERSARIES["spend all when ahead"](view()).tolist() == [FULL // 4, 100]
    assert ADVERSARIES[STOPS](view()).tolist()[1] == 0


def test_equality_is_four_halves_of_the_longest_and_then_the_shortest() -> None:
    """4 (full / 2)^2 = full^2."""
    picks = ADVERSARIES["equality at the budget"]
    assert picks(view(room=(FULL, FULL // 2))).tolist() == [FULL // 2, FULL // 2]
    assert picks(view(room=(0, 5))).tolist() == [1, 1]


def test_every_other_vector_is_too_long_where_it_is_meant_to_be() -> None:
    """By one, or by a whole budget."""
    picks = ADVERSARIES["unaffordable between affordable"]
    assert (picks(view(turn=1)) > np.array([FULL, 100])).all()
    assert (picks(view(turn=2)) < FULL).all()


def test_what_each_asker_picks() -> None:
    """Small queries behind and large ones ahead, nothing ahead, and what fits."""
    assert offers("small Laplace") == [2] * 4
    assert [offers("both mechanisms in turn", turn)[0] for turn in range(3)] == [1, 3, 1]
    assert [offers("large when ahead", turn) for turn in (0, 1)] == [[4, 4, 2, 2], [1, 1, 2, 2]]
    assert offers(STOPS) == [-1, -1, 3, 3]
    assert [offers("unaffordable between affordable", turn)[0] for turn in (0, 1)] == [0, 4]
    assert offers("the largest that fits") == [4, 1, 2, 4]
    assert {offer for name in ASKERS for turn in range(4) for offer in offers(name, turn)} <= set(
        range(-1, len(OFFERS))
    )
