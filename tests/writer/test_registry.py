"""The registry of a replica: one writer for each dataset, opened on first use, closed together."""

import pytest

from service.ledger.model.errors import NotFound
from tests.factories import open_replica, register
from tests.memory.store import MemoryStore


def test_a_writer_is_opened_on_first_use_and_once() -> None:
    """Reading a registration opens no writer."""
    with open_replica(MemoryStore()) as replica:
        register(replica)
        record = replica.registry.record("survey")
        assert not replica.registry.is_open_for("survey")
        assert replica.registry.opened() == []
        writer = replica.registry.writer(record)
        assert replica.registry.writer(record) is writer
        assert replica.registry.opened() == [writer]
        assert replica.registry.is_open_for("survey")
        assert writer.guard is replica.registry.guard(record)


def test_an_unregistered_dataset_has_no_writer() -> None:
    """A name refused once may be registered later."""
    with open_replica(MemoryStore()) as replica:
        with pytest.raises(NotFound):
            replica.registry.record("survey")
        assert not replica.registry.is_open_for("survey")
        register(replica)
        assert replica.registry.record("survey").name == "survey"
