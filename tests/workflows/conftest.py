"""The default world of workflow tests: a replica over an in-memory store with one dataset of three people.

A test module overrides a fixture where it needs another store, other people or more.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from service.workflows.replica import Replica
from tests.factories import THREE_PEOPLE, SeededEntropy
from tests.memory.store import MemoryStore
from tests.workflows.surveys import surveyed


@pytest.fixture
def store() -> MemoryStore:
    """An empty store."""
    return MemoryStore()


@pytest.fixture
def entropy() -> SeededEntropy:
    """Repeatable noise."""
    return SeededEntropy()


@pytest.fixture
def rows() -> list[tuple[Any, ...]]:
    """The people of the dataset."""
    return THREE_PEOPLE


@pytest.fixture
def replica(store: MemoryStore, entropy: SeededEntropy, rows: list[tuple[Any, ...]]) -> Iterator[Replica]:
    """A replica with the dataset `survey`, open during the test."""
    with surveyed(store, rows, entropy=entropy) as opened:
        yield opened
