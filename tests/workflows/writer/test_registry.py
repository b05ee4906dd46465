"""The lines of a house: one of each, opened late, closed together."""

import pytest

from service.testing.store import MemoryStore
from service.workflows.model.errors import NotFound, Unavailable
from tests.factories import open_replica, register


def test_a_line_is_opened_when_it_is_first_needed_and_once() -> None:
    """Whoever only looks at a registration opens nothing."""
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


def test_what_is_not_registered_has_none() -> None:
    """And a name that was refused once may be registered later."""
    with open_replica(MemoryStore()) as replica:
        with pytest.raises(NotFound):
            replica.registry.record("survey")
        assert not replica.registry.is_open_for("survey")
        register(replica)
        assert replica.registry.record("survey").name == "survey"


def test_none_is_opened_after_all_were_closed() -> None:
    """Its thread would outlive the house."""
    with open_replica(MemoryStore()) as replica:
        register(replica)
        record = replica.registry.record("survey")
    with pytest.raises(Unavailable):
        replica.registry.writer(record)
