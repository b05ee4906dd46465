"""The adversaries: what each picks, and that it picks in view of what it has seen."""

import numpy as np
import pytest

from sparing_audit.adversaries import ADVERSARIES, AHEAD, View

FULL = 16384


def view(*, turn: int = 0, loss: tuple[float, ...] = (0.0, 9.0), room: tuple[int, ...] = (FULL, 100)) -> View:
    """Two victims, of the second of which the adversary is ahead, with little left."""
    return View(
        turn=turn,
        full=FULL,
        loss=np.array(loss),
        room=np.array(room, dtype=np.int64),
        is_dyadic=True,
        rng=np.random.default_rng(1),
    )


def test_there_are_fifteen() -> None:
    """Those that issue 27 names, and no two the same."""
    assert len(ADVERSARIES) == 15
    assert {adversary.table for adversary in ADVERSARIES.values()} == {"people", "rows"}


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("turn", range(6))
def test_lengths_are_whole_and_not_negative(name: str, turn: int) -> None:
    """One for each victim, in every turn."""
    lengths = ADVERSARIES[name].picks(view(turn=turn))
    assert lengths.dtype == np.int64
    assert lengths.shape == (2,)
    assert (lengths >= 0).all()


def test_what_is_seen_decides() -> None:
    """Two adversaries go by the loss so far."""
    assert view().loss.tolist()[1] > AHEAD
    assert ADVERSARIES["spend all when ahead"].picks(view()).tolist() == [FULL // 4, 100]
    assert ADVERSARIES["stop when ahead"].picks(view()).tolist()[1] == 0


def test_equality_is_four_halves_of_the_longest_and_then_the_shortest() -> None:
    """4 (full / 2)^2 = full^2."""
    picks = ADVERSARIES["equality at the budget"].picks
    assert picks(view(room=(FULL, FULL // 2))).tolist() == [FULL // 2, FULL // 2]
    assert picks(view(room=(0, 5))).tolist() == [1, 1]


def test_every_other_vector_is_too_long_where_it_is_meant_to_be() -> None:
    """By one, or by a whole budget."""
    picks = ADVERSARIES["unaffordable between affordable"].picks
    rooms = np.array([FULL, 100])
    assert (picks(view(turn=1)) > rooms).all()
    assert (picks(view(turn=2)) < FULL).all()


def test_batches_ask_for_more_than_there_is() -> None:
    """Four quarters of a budget, after singles: the last of them cannot be paid for."""
    together = ADVERSARIES["batches against singles"].picks_together
    assert together is not None
    assert together(view()).tolist() == [FULL // 2, FULL // 2]
