"""The gate takes a part of the costly repetitions: every case has its turn, and a turn can be repeated."""

import pytest

from tests import rotation
from tests.rotation import fresh, one_of, some_of, times


@pytest.fixture(autouse=True)
def _part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "IS_WHOLE", False)


def test_every_case_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn for each case takes every case once, at every place."""
    cases = ["a", "b", "c"]
    for place in range(4):
        taken = []
        for turn in range(3):
            monkeypatch.setattr(rotation, "TURN", turn)
            taken += one_of(cases, place)
        assert sorted(taken) == cases


def test_a_part_of_the_cases_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two turns take each of five cases once, in their order, and a soak all of them."""
    taken = []
    for turn in range(2):
        monkeypatch.setattr(rotation, "TURN", turn)
        taken.append(some_of("abcde", 2))
    assert [len(each) for each in taken] == [3, 2]
    assert sorted([*taken[0], *taken[1]]) == list("abcde")
    assert all(each == sorted(each) for each in taken)
    monkeypatch.setattr(rotation, "IS_WHOLE", True)
    assert some_of("abcde", 2) == list("abcde")


def test_a_part_is_of_both_halves_of_a_list_of_pairs() -> None:
    """A regular stride would take one half."""
    pairs = [(number, half) for number in range(20) for half in ("before", "after")]
    assert {half for _, half in some_of(pairs, 4)} == {"before", "after"}


def test_turns_share_no_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn 0 begins at 0, and each turn where the one before it ends."""
    seeds: list[int] = []
    for turn in range(5):
        monkeypatch.setattr(rotation, "TURN", turn)
        seeds += fresh(50)
    assert seeds == list(range(250))


def test_a_soak_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cases, and the whole number."""
    assert times(3, 10) == 3
    monkeypatch.setattr(rotation, "IS_WHOLE", True)
    assert (times(3, 10), one_of(["a", "b"])) == (10, ["a", "b"])
