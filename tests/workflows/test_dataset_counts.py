"""The counts that curators see are computed once for each version of the data, not at each read."""

from typing import Any

import pytest

from service.workflows.replica import Replica
from tests.factories import TWO_PEOPLE, analyst, ask, open_replica, upload
from tests.memory.store import MemoryStore


class RowCountingStore(MemoryStore):
    """A store that records how often it counted, and can act during a count."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = 0

    def row_counts(self, dataset_id: int) -> tuple[int, dict[str, int]]:
        self.counted += 1
        return super().row_counts(dataset_id)


@pytest.fixture
def rows() -> list[tuple[Any, ...]]:
    """Rows of two individuals."""
    return TWO_PEOPLE


@pytest.fixture
def store() -> RowCountingStore:
    """A store that the test can inspect."""
    return RowCountingStore()


def seen(replica: Replica) -> tuple[int, int, int]:
    """Sequence, individuals and rows, as a curator reads them, alone and in the list."""
    counts = replica.curators.dataset("survey")
    (row,) = replica.curators.datasets(None, cursor=None, limit=10).items
    assert (row.sequence, row.individuals) == (counts.sequence, counts.individuals)
    return counts.sequence, counts.individuals, counts.rows["people"]


def test_counts_are_computed_once_for_a_version_of_the_data(replica: Replica, store: RowCountingStore) -> None:
    """A query changes the sequence and no record."""
    assert seen(replica) == (0, 2, 2)
    before = store.counted
    ask(replica, analyst(replica), "a", reuse=False)
    assert seen(replica) == (1, 2, 2)
    assert store.counted == before


def test_uploads_and_erasures_change_the_counts(replica: Replica, store: RowCountingStore) -> None:
    """An append and an erasure change the counts, also when another replica commits them."""
    assert seen(replica) == (0, 2, 2)
    upload(replica, "people", [("eve", "NO", 71, 0)])
    assert seen(replica) == (0, 3, 3)
    replica.curators.erase_individual("survey", "ann")
    assert seen(replica) == (0, 2, 2)
    with open_replica(store) as other:
        upload(other, "people", [("joe", "SE", 50, 1)])
    assert seen(replica) == (0, 3, 3)
