"""Slots that never move, pages, and the checks before each change."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service.core.charge import LIMIT_UNITS_MAX
from service.engine.memory import DatasetMemory
from service.query.division import PAGE_SLOTS
from tests.digests import with_digests
from tests.engine.worlds import ROWS_MAX, SCHEMA

Codes = dict[str, NDArray[np.unsignedinteger]]


def slots(*numbers: int) -> NDArray[np.int64]:
    """A row of slots."""
    return np.array(numbers, dtype=np.int64)


def people(memory: DatasetMemory, *ages: int) -> Codes:
    """Records that differ in one column."""
    codes = memory.null_codes("people", len(ages)) | {"level": np.array(ages, dtype=np.uint8)}
    return with_digests(codes, range(len(ages)))


def visits(memory: DatasetMemory, *items: int) -> Codes:
    """Events that differ in one column."""
    return memory.null_codes("visits", len(items)) | {"item": np.array(items, dtype=np.uint16)}


def content(memory: DatasetMemory) -> list[Any]:
    """All that a memory holds, for comparison."""
    return [
        memory.people.present.tolist(),
        {name: codes.tolist() for name, codes in memory.people.columns.items()},
        memory.accounts.spent.tolist(),
        memory.accounts.limits.tolist(),
        [
            (number, page.owners.tolist(), {name: codes.tolist() for name, codes in page.columns.items()})
            for number, page in memory.events["visits"].pages()
        ],
    ]


def test_memory_grows_by_whole_pages_and_keeps_what_it_has() -> None:
    """New slots are empty: none present, null codes, nothing spent, no limit."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(1)
    memory.add_individuals(slots(0), people(memory, 3), np.array([7]))
    memory.accounts.set_spent(slice(0, 1), 5)
    memory.grow(PAGE_SLOTS + 1)
    assert memory.accounts.spent.size == memory.people.present.size == 2 * PAGE_SLOTS
    assert (memory.accounts.spent[0], memory.accounts.limits[0]) == (5, 7)
    assert memory.slots_used == PAGE_SLOTS + 1
    memory.grow(5)
    assert memory.slots_used == PAGE_SLOTS + 1
    codes = memory.people.columns["level"]
    assert codes[0] == 3
    assert set(codes[1:].tolist()) == {memory.codings["people"]["level"].null_code}
    assert memory.people.present.sum() == 1
    assert not memory.accounts.limits[1:].any()


def test_growth_is_by_an_eighth_so_that_pages_are_not_copied_for_every_page() -> None:
    """A large dataset that grows by one slot gets room for more."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(16 * PAGE_SLOTS)
    memory.grow(16 * PAGE_SLOTS + 1)
    assert memory.people.present.size == 18 * PAGE_SLOTS


def test_a_record_stands_in_the_slot_it_was_given() -> None:
    """Slots come in any order and with gaps; none is moved."""
    memory = DatasetMemory(SCHEMA)
    memory.add_individuals(slots(70_000, 3), people(memory, 1, 2), np.array([10, 20]))
    assert np.flatnonzero(memory.people.present).tolist() == [3, 70_000]
    assert memory.people.columns["level"][[3, 70_000]].tolist() == [2, 1]
    assert memory.accounts.limits[[3, 70_000]].tolist() == [20, 10]


def test_erasing_empties_one_slot_and_touches_no_other() -> None:
    """Record and events go; the account stays, and so does everybody else, bit by bit."""
    memory, other = DatasetMemory(SCHEMA), DatasetMemory(SCHEMA)
    for each in (memory, other):
        each.add_individuals(slots(1, 65_535, 65_536), people(each, 1, 2, 3), np.array([10, 20, 30]))
        each.add_events("visits", slots(65_536, 1, 65_535), visits(each, 7, 8, 9))
    memory.add_events("visits", slots(2, 65_535), visits(memory, 5, 6))
    memory.add_individuals(slots(2), people(memory, 4), np.array([40]))
    memory.accounts.set_spent(slice(2, 3), 11)
    memory.erase(2)
    memory.erase(65_535)
    other.erase(65_535)
    assert (memory.accounts.spent[2], memory.accounts.limits[2]) == (11, 40)
    memory.accounts.set_limits(2, 0)
    memory.accounts.set_spent(slice(2, 3), 0)
    assert content(memory) == content(other)
    assert memory.events["visits"].rows == 2


def test_an_erased_individual_may_return_to_its_slot_with_its_spent_total() -> None:
    """Delete and register again buys nothing."""
    memory = DatasetMemory(SCHEMA)
    memory.add_individuals(slots(2), people(memory, 4), np.array([40]))
    memory.accounts.set_spent(slice(2, 3), 11)
    memory.erase(2)
    memory.add_individuals(slots(2), people(memory, 0), np.array([30]))
    assert (memory.accounts.spent[2], memory.accounts.limits[2]) == (11, 30)


def test_more_rows_than_declared_are_refused_and_none_is_added() -> None:
    """The overflow bound of every query rests on rows_per_individual."""
    memory = DatasetMemory(SCHEMA)
    memory.add_events("visits", slots(*[5] * ROWS_MAX), visits(memory, *[1] * ROWS_MAX))
    before = content(memory)
    with pytest.raises(ValueError, match="rows_per_individual"):
        memory.add_events("visits", slots(6, 5), visits(memory, 1, 1))
    assert content(memory) == before


def test_an_upload_of_nothing_changes_nothing() -> None:
    """No rows are an upload too."""
    memory = DatasetMemory(SCHEMA)
    memory.add_individuals(slots(), memory.null_codes("people", 0), slots())
    memory.add_events("visits", slots(), memory.null_codes("visits", 0))
    assert content(memory) == content(DatasetMemory(SCHEMA))


@pytest.mark.parametrize(
    ("where", "change", "limit", "message"),
    [
        ([1, 1], {}, 5, "named twice"),
        ([0, 1], {}, 5, "taken"),
        ([-1, 1], {}, 5, "none negative"),
        ([1, 2], {}, -1, "between 0 and"),
        ([1, 2], {}, LIMIT_UNITS_MAX + 1, "between 0 and"),
        ([1, 2], {"level": np.array([0, 7], dtype=np.uint8)}, 5, "stands for nothing"),
        ([1, 2], {"level": np.array([0, 1], dtype=np.uint16)}, 5, "uint8"),
        ([1, 2], {"level": np.array([0], dtype=np.uint8)}, 5, "for each slot"),
        ([1, 2], {"more": np.array([0, 0], dtype=np.uint8)}, 5, "columns must be"),
    ],
)
def test_what_does_not_fit_is_refused_whole(where: list[int], change: Codes, limit: int, message: str) -> None:
    """Everything is checked before anything is written."""
    memory = DatasetMemory(SCHEMA)
    memory.add_individuals(slots(0), people(memory, 0), np.array([1]))
    before = content(memory)
    with pytest.raises(ValueError, match=message):
        memory.add_individuals(slots(*where), people(memory, 1, 1) | change, np.full(2, limit))
    assert content(memory) == before


def test_a_slot_beyond_the_pages_cannot_be_erased() -> None:
    """Nor a negative one, which numpy would take for another's."""
    memory = DatasetMemory(SCHEMA)
    memory.grow(1)
    for slot in (-1, PAGE_SLOTS):
        with pytest.raises(IndexError):
            memory.erase(slot)
