"""The fixtures of a replica over an in-memory store with one dataset of three people.

Each room whose tests need them lists them in its `conftest.py`. A test module overrides a fixture where it needs
another store, other people or more.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.workflows.replica import Replica
from tests.contracts.stores import open_store
from tests.factories import THREE_PEOPLE, SeededEntropy, analyst
from tests.workflows.surveys import surveyed


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store in memory, or the one that `on_both_stores` asks for."""
    name = getattr(request, "param", "memory")
    with open_store(name, request.getfixturevalue("database_url") if name == "postgres" else None) as opened:
        yield opened


@pytest.fixture
def entropy() -> SeededEntropy:
    """Repeatable noise."""
    return SeededEntropy()


@pytest.fixture
def rows() -> list[tuple[Any, ...]]:
    """The people of the dataset."""
    return THREE_PEOPLE


@pytest.fixture
def replica(store: Store, entropy: SeededEntropy, rows: list[tuple[Any, ...]]) -> Iterator[Replica]:
    """A replica with the dataset `survey`, open during the test."""
    with surveyed(store, rows, entropy=entropy) as opened:
        yield opened


@pytest.fixture
def ana(replica: Replica) -> Principal:
    """An analyst without an allowance."""
    return analyst(replica)
