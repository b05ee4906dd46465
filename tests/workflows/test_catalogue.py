"""What curators see of a dataset is counted when it has changed, and not each time somebody looks."""

from collections.abc import Iterator

import pytest

from service.testing.store import MemoryStore
from service.workflows.replica import House
from tests.factories import analyst, ask, open_house, register, upload

ROWS = [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5)]


class CountingStore(MemoryStore):
    """A store that tells how often it was made to count, and what was done while it did."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = 0

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        self.counted += 1
        return super().row_counts(dataset_id)


@pytest.fixture
def store() -> CountingStore:
    """A store to look into."""
    return CountingStore()


@pytest.fixture
def house(store: CountingStore) -> Iterator[House]:
    """Two people."""
    with open_house(store) as opened:
        register(opened)
        upload(opened, "people", ROWS)
        yield opened


def seen(house: House) -> tuple[int, int, int]:
    """Sequence, people and rows of people, as a curator reads them, alone and in the list."""
    counts = house.dataset("survey").counts
    assert house.datasets()[0].counts == counts
    return counts.sequence, counts.individuals, counts.rows["people"]


def test_it_is_counted_once_for_a_version_of_the_data(house: House, store: CountingStore) -> None:
    """A question changes the sequence and nobody's record."""
    assert seen(house) == (0, 2, 2)
    before = store.counted
    ask(house, analyst(house), "a", reuse=False)
    assert seen(house) == (1, 2, 2)
    assert store.counted == before


def test_whoever_comes_or_goes_is_counted(house: House, store: CountingStore) -> None:
    """An append and an erasure; also one that another replica has committed."""
    assert seen(house) == (0, 2, 2)
    upload(house, "people", [("eve", "NO", 71, 0)])
    assert seen(house) == (0, 3, 3)
    house.erase_individual("survey", "ann")
    assert seen(house) == (0, 2, 2)
    with open_house(store) as replica:
        upload(replica, "people", [("joe", "SE", 50, 1)])
    assert seen(house) == (0, 3, 3)
