"""Each store in turn, and a dataset in it."""

from collections.abc import Iterator

import pytest

from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import Store
from tests.contracts.stores import STORES, dataset, open_store


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each store in turn."""
    url = request.getfixturevalue("database_url") if request.param == "postgres" else None
    with open_store(request.param, url) as opened:
        yield opened


@pytest.fixture
def record(store: Store) -> DatasetRecord:
    """A registered dataset in the store."""
    return store.add_dataset(dataset())
