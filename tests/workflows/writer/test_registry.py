"""The lines of a house: one of each, opened late, closed together."""

import pytest

from service.testing.store import MemoryStore
from service.workflows.model.errors import NotFound, Unavailable
from tests.factories import open_house, register


def test_a_line_is_opened_when_it_is_first_needed_and_once() -> None:
    """Whoever only looks at a registration opens nothing."""
    with open_house(MemoryStore()) as house:
        register(house)
        record = house.lines.record("survey")
        assert not house.lines.is_at_hand("survey")
        assert house.lines.opened() == []
        line = house.lines.line(record)
        assert house.lines.line(record) is line
        assert house.lines.opened() == [line]
        assert house.lines.is_at_hand("survey")
        assert line.guard is house.lines.guard(record)


def test_what_is_not_registered_has_none() -> None:
    """And a name that was refused once may be registered later."""
    with open_house(MemoryStore()) as house:
        with pytest.raises(NotFound):
            house.lines.record("survey")
        assert not house.lines.is_at_hand("survey")
        register(house)
        assert house.lines.record("survey").name == "survey"


def test_none_is_opened_after_all_were_closed() -> None:
    """Its thread would outlive the house."""
    with open_house(MemoryStore()) as house:
        register(house)
        record = house.lines.record("survey")
    with pytest.raises(Unavailable):
        house.lines.line(record)
