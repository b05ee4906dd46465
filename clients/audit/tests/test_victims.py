"""The victims: half are blank, each has a coordinate of its own, and adds exactly the length that was picked."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from sparing_audit.adversaries import ADVERSARIES
from sparing_audit.victims import ROWS_MAX, VICTIMS_MIN, Victims, drawn_victims

COUNT = 3000


@pytest.fixture
def victims() -> Victims:
    """Three thousand."""
    return drawn_victims(COUNT, np.random.default_rng(2))


def added(victims: Victims, place: int, weights: Mapping[int, int]) -> int:
    """A victim adds to its coordinate, by its values as they are uploaded."""
    key = victims.keys[place]
    values = [value for name, value in [*victims.people([place]), *victims.all_rows()] if name == key]
    return sum(weights.get(value, 0) for value in values if value is not None)


def test_half_are_blank_and_adversaries_have_equal_shares(victims: Victims) -> None:
    """Half of each adversary's victims are blank, and shares are equal to one victim."""
    assert {int(victims.is_in[victims.of(name)].sum()) for name in ADVERSARIES} == {COUNT // len(ADVERSARIES) // 2}
    other = drawn_victims(COUNT, np.random.default_rng(3))
    assert (other.is_in != victims.is_in).sum() > COUNT / 3
    shares = [victims.of(name).size for name in ADVERSARIES]
    assert sum(shares) == COUNT
    assert max(shares) - min(shares) <= 1


def test_each_victim_adds_its_length_times_its_rows_or_nothing(victims: Victims) -> None:
    """Before and after its record was corrected, when another length would be added than is picked."""
    corrected = victims.of("corrected records")[:20]
    rows = victims.of("several rows")[:20]
    for _ in range(2):
        for place in (*range(40), *corrected.tolist(), *rows.tolist()):
            (weights,) = victims.weights(np.array([place]), np.array([7]))
            times = int(victims.rows[place]) * int(victims.is_in[place])
            assert added(victims, place, weights) == 7 * times
        before = [victims.weights(np.array([place]), np.array([7]))[0] for place in corrected.tolist()]
        victims.is_corrected[corrected] ^= True
        stale = [added(victims, place, each) for place, each in zip(corrected.tolist(), before, strict=True)]
        assert not set(stale) & {7}


def test_coordinates_are_disjoint(victims: Victims) -> None:
    """No value is weighed at two coordinates, and no weight is zero."""
    everybody = np.arange(COUNT)
    weights = victims.weights(everybody, np.full(COUNT, 5))
    assert max(Counter(value for each in weights for value in each).values()) == 1
    assert all(weight != 0 for each in weights for weight in each.values())
    assert victims.weights(everybody[:1], np.array([0])) == ({},)


def test_a_victim_is_in_one_table(victims: Victims) -> None:
    """With two rows or more where it is in the table of rows."""
    people, rows = victims.in_table("people"), victims.in_table("rows")
    assert sorted([*people.tolist(), *rows.tolist()]) == list(range(COUNT))
    assert set(victims.rows[rows].tolist()) == set(range(2, ROWS_MAX + 1))
    assert set(victims.adversary[rows]) == {"several rows"}


def test_too_few_victims_are_refused() -> None:
    """Each adversary needs one of each kind."""
    with pytest.raises(ValueError, match=str(VICTIMS_MIN)):
        drawn_victims(VICTIMS_MIN - 1, np.random.default_rng(1))
