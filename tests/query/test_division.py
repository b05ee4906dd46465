"""The division of slots over shards: each slot is on one shard, in order, and the public bounds hold of every shard."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.division import (
    PAGE_SLOTS,
    SHARD_CAPACITY_MIN,
    UNDIVIDED,
    ShardPlace,
    at_each_shard,
    people_at_fullest,
    rows_at_fullest,
    shards_for,
)
from service.query.schema import EventsTable, Schema

COUNTS = st.integers(1, 64)
SLOTS = st.lists(st.integers(0, 200 * PAGE_SLOTS), min_size=1, max_size=50, unique=True).map(sorted)


@given(slots=SLOTS, count=COUNTS)
def test_each_slot_is_on_one_shard_and_comes_back(slots: list[int], count: int) -> None:
    """Own numbers of a shard increase with the slots, stay within their page, and lead back to them."""
    listed = np.array(slots)
    places = [ShardPlace(number, count) for number in range(count)]
    assert np.sum([place.holds(listed) for place in places], axis=0).tolist() == [1] * len(slots)
    assert at_each_shard(listed, count).tolist() == [place.holds(listed).sum() for place in places]
    for place in places:
        here = listed[place.holds(listed)]
        own = place.own(here)
        assert np.all(np.diff(own) > 0)
        assert (own % PAGE_SLOTS).tolist() == (here % PAGE_SLOTS).tolist()
        assert place.of_dataset(own).tolist() == here.tolist()
        assert [place.page_of_dataset(page) for page in (own // PAGE_SLOTS).tolist()] == (here // PAGE_SLOTS).tolist()


@given(slots=st.integers(0, 70 * PAGE_SLOTS), count=COUNTS)
def test_the_parts_of_handed_out_slots_add_up(slots: int, count: int) -> None:
    """A shard's own slots are those below its number of them, and all shards have all slots."""
    parts = [ShardPlace(number, count).slots(slots) for number in range(count)]
    assert sum(parts) == slots
    assert max(parts) <= people_at_fullest(slots, count)
    if slots:
        last = np.array([slots - 1])
        (place,) = (each for number in range(count) if (each := ShardPlace(number, count)).holds(last)[0])
        assert place.own(last)[0] == place.slots(slots) - 1


def test_one_shard_is_the_dataset() -> None:
    """No number changes."""
    slots = np.array([0, 1, PAGE_SLOTS, 5 * PAGE_SLOTS + 3])
    assert UNDIVIDED.own(slots).tolist() == UNDIVIDED.of_dataset(slots).tolist() == slots.tolist()
    assert UNDIVIDED.holds(slots).all()
    assert UNDIVIDED.slots(12) == people_at_fullest(12, 1) == 12


@pytest.mark.parametrize(("number", "count"), [(1, 1), (-1, 2), (2, 2)])
def test_a_shard_that_is_none_of_them_is_refused(number: int, count: int) -> None:
    """Numbers begin at 0."""
    with pytest.raises(ValueError, match="there is no shard"):
        ShardPlace(number, count)


@pytest.mark.parametrize(
    ("capacity", "shards_max", "shards"),
    [(1, 8, 1), (SHARD_CAPACITY_MIN, 8, 1), (SHARD_CAPACITY_MIN + 1, 8, 2), (10**8, 8, 8), (10**8, 1, 1), (0, 4, 1)],
)
def test_a_dataset_has_a_shard_for_each_2_to_the_20_people_at_most(capacity: int, shards_max: int, shards: int) -> None:
    """Small datasets are not divided."""
    assert shards_for(capacity, shards_max=shards_max) == shards


def table(rows_per_individual: int, rows_capacity: int | None) -> EventsTable:
    """A table of events."""
    visits = {"kind": "events", "key": "id", "columns": {}, "rows_per_individual": rows_per_individual}
    people = {"kind": "individuals", "key": "id", "columns": {}}
    more = {} if rows_capacity is None else {"rows_capacity": rows_capacity}
    found = Schema.model_validate({"people": people, "visits": visits | more}).tables["visits"]
    assert isinstance(found, EventsTable)
    return found


def test_a_shard_has_at_most_five_quarters_of_its_part_of_the_rows() -> None:
    """And never more than its people may have; undivided, the table's own bound."""
    capacity = 8 * SHARD_CAPACITY_MIN
    assert rows_at_fullest(table(1000, 10**7), capacity, 1) == 10**7
    assert rows_at_fullest(table(1000, 10**7), capacity, 4) == 3_125_000
    assert rows_at_fullest(table(2, None), capacity, 4) == 2 * people_at_fullest(capacity, 4) == capacity // 2
