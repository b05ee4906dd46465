"""Fixtures that the drills share in one worker: a nursery of replicas, and one database whose datasets are theirs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.killing import Servers
from tests.faults.replicas import Nursery


@pytest.fixture(scope="session")
def nursery(server_directory: Path) -> Iterator[Nursery]:
    """A process that forks replicas."""
    with Nursery(server_directory / "nursery") as opened:
        yield opened


@pytest.fixture
def servers(nursery: Nursery, database_url: str, valkey_url: str) -> Servers:
    """Replicas on a fresh database."""
    return Servers(nursery=nursery, database_url=database_url, redis_url=valkey_url)
