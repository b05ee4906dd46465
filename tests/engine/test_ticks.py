"""One tick over the accounts in memory: the individuals counted first, their steps, and how these are taken back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.renyi_filter import Touched
from service.engine.memory import DatasetMemory
from service.engine.ticks import NO_TICKS, TickCounts
from service.query.division import PAGE_SLOTS
from service.query.schema import Schema
from tests.digests import with_digests

SCHEMA = Schema.model_validate({"people": {"kind": "individuals", "key": "k", "columns": {"b": {"type": "boolean"}}}})
STEPS = np.array([16, 8, 6, 5, 4], dtype=np.int64)
THRESHOLD = 10

Person = tuple[int, int, bool, bool]  # limit, spent, paused, present
PEOPLE = st.lists(st.tuples(st.sampled_from([0, 5, 20]), st.integers(0, 5), st.booleans(), st.booleans()), max_size=9)


def memory_of(people: list[Person]) -> DatasetMemory:
    """A dataset of these accounts."""
    memory = DatasetMemory(SCHEMA)
    slots = np.arange(len(people))
    limits = np.array([each[0] for each in people], dtype=np.int64)
    memory.add_individuals(slots, with_digests(memory.null_codes("people", len(people)), slots), limits)
    for slot, (limit, spent, paused, present) in enumerate(people):
        memory.accounts.set_spent(slice(slot, slot + 1), min(spent, limit))
        memory.accounts.paused[slot] = paused
        if not present:
            memory.erase(slot)
    return memory


def counts(memory: DatasetMemory) -> TickCounts:
    """No individual is counted yet."""
    made = TickCounts(STEPS, THRESHOLD)
    made.grow(memory.accounts.size)
    return made


def noise(value: int = 0) -> Any:
    """The noise of one tick."""
    return np.array([value], dtype=np.int64)


@given(people=PEOPLE, changes=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9), st.booleans()), max_size=4))
def test_ticks_as_the_rule_says_it(people: list[Person], changes: list[tuple[int, int, bool]]) -> None:
    """Person by person: present, not paused, with a limit, and below the share now or at a tick before."""
    memory = memory_of(people)
    found, first = counts(memory), dict.fromkeys(range(len(people)), 0)
    for number, (slot, spent, paused) in enumerate([(9, 0, False), *changes], start=1):
        if slot < len(people):
            memory.accounts.set_spent(slice(slot, slot + 1), min(spent, people[slot][0]))
            memory.accounts.paused[slot] = paused
        wanted = {}
        for each, (limit, _, _, present) in enumerate(people):
            takes_part = present and not memory.accounts.paused[each] and limit > 0
            if takes_part and first[each] == 0 and memory.accounts.room[each] < THRESHOLD:
                first[each] = number
            if takes_part and first[each] > 0:
                wanted[each] = int(STEPS[number - first[each]])
        release = found.release(memory, number, noise(1000))
        told: dict[int, int] = {}
        for block in release.blocks:
            slots = block.touched.slots().tolist()
            told |= dict(zip(slots, block.norms_squared[block.active].tolist(), strict=True))
        assert told == {slot: steps**2 for slot, steps in wanted.items()}
        assert release.values.tolist() == [1000 + sum(wanted.values())]
        assert (release.charged_count, release.left_out_count, release.charged_units) == (len(wanted), 0, 0)
        assert found.of(slice(0, len(people))).tolist() == [first[each] for each in range(len(people))]
    assert memory.accounts.spent.max(initial=0) <= 9


def test_a_block_for_each_page() -> None:
    """Pages without any of the counted are there too."""
    memory = memory_of([(20, 0, False, True)] * 3)
    memory.grow(PAGE_SLOTS + 5)
    codes = with_digests(memory.null_codes("people", 1), [4])
    memory.add_individuals(np.array([PAGE_SLOTS + 4]), codes, np.array([5]))
    found = counts(memory)
    release = found.release(memory, 1, noise())
    assert [(block.touched.index, block.count) for block in release.blocks] == [
        (slice(0, PAGE_SLOTS), 0),
        (slice(PAGE_SLOTS, PAGE_SLOTS + 5), 1),
    ]
    assert release.values.tolist() == [16]


def test_an_empty_dataset_has_ticks_too() -> None:
    """Noise alone."""
    memory = DatasetMemory(SCHEMA)
    assert counts(memory).release(memory, 1, noise(7)).values.tolist() == [7]


def test_a_replayed_tick_marks_the_first_alone() -> None:
    """The entry comes in either form; what stood before stays."""
    made = TickCounts(STEPS, THRESHOLD)
    made.grow(6)
    made.mark(Touched(np.array([1, 4])), np.array([True, True]), 2)
    made.mark(Touched(slice(0, 6), np.ones(6, dtype=np.bool_)), np.array([True, True, False, False, True, False]), 3)
    assert made.of(slice(0, 6)).tolist() == [3, 2, 0, 0, 2, 0]
    made.grow(8)
    made.take_back(Touched(np.array([0, 1])), 3)
    assert made.of(slice(0, 8)).tolist() == [0, 2, 0, 0, 2, 0, 0, 0]
    made.set(slice(4, 6), np.array([9, 8], dtype=np.uint16))
    assert made.of(slice(0, 8)).tolist() == [0, 2, 0, 0, 9, 8, 0, 0]
    made.set(slice(0, 2), NO_TICKS)
    assert made.of(slice(0, 8)).tolist() == [0, 0, 0, 0, 9, 8, 0, 0]
    made.reset()
    assert not made.of(slice(0, 8)).any()


def test_a_copy_is_one() -> None:
    """Later ticks do not change it."""
    made = TickCounts(STEPS, THRESHOLD)
    made.grow(2)
    copied = made.of(slice(0, 2))
    made.mark(Touched(np.array([0])), np.array([True]), 1)
    assert copied.tolist() == [0, 0]
    with pytest.raises(IndexError):
        made.mark(Touched(np.array([7])), np.array([True]), 1)
