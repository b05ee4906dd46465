"""A change of records, built beside and set in place, against a memory made anew with the records it ends in."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.engine import events, inverted, people
from service.engine.memory import DatasetMemory
from service.query.division import PAGE_SLOTS
from tests.digests import with_digests
from tests.engine.blocks import ALWAYS, NEVER, answered
from tests.engine.worlds import BUDGET, PERSON, SCHEMA, Row, memory_of, of_visits, plan_of, query_of, rows, uploaded
from tests.rotation import times

SLOTS = [0, 1, 2, 65_535, 65_536, 65_537]
Event = tuple[int, Row]
IN_NORWAY = {"eq": [{"col": "country"}, "NO"]}
QUERIES: list[dict[str, Any]] = [
    query_of(),
    query_of(where=IN_NORWAY),
    query_of(where={"and": [IN_NORWAY, {"eq": [{"col": "level"}, 2]}]}),
    of_visits(where={"eq": [{"col": "item"}, 1]}),
]


def worlds() -> st.SearchStrategy[dict[int, Row]]:
    """Some people."""
    return st.dictionaries(st.sampled_from(SLOTS), rows("people"), max_size=5)


def events_of(slots: list[int]) -> st.SearchStrategy[list[Event]]:
    """At most one row for each."""
    if not slots:
        return st.just([])
    return st.lists(st.tuples(st.sampled_from(slots), rows("visits")), max_size=6, unique_by=lambda event: event[0])


def placed(table: str, records: list[Event]) -> tuple[NDArray[np.int64], dict[str, NDArray[np.unsignedinteger]]]:
    """Slots and codes."""
    slots = [slot for slot, _ in records]
    codes = uploaded(table, slots, [row for _, row in records]).codes
    return np.array(slots, dtype=np.int64), with_digests(codes, slots) if table == "people" else codes


def held(memory: DatasetMemory) -> list[Any]:
    """Records and events; the lengths of the columns do not matter."""
    size = int(np.flatnonzero(memory.people.present).max(initial=-1)) + 1
    return [
        np.flatnonzero(memory.people.present).tolist(),
        {name: codes[:size].tobytes() for name, codes in memory.people.columns.items()},
        [
            [] if rows is None else rows.tolist()
            for _, rows in memory.people.vectors["sketch"].view().parts(slice(0, size))
        ],
        [
            (number, page.owners.tolist(), {name: codes.tolist() for name, codes in page.columns.items()})
            for number, page in memory.events["visits"].pages()
            if page.owners.size
        ],
    ]


def released(memory: DatasetMemory) -> list[Any]:
    """Every block of every query, through the index and by scan, which agree."""
    found = []
    for query in QUERIES:
        plan = plan_of(query)
        both = [answered(plan, memory, scan_worth=worth) for worth in (ALWAYS, NEVER)]
        assert both[0] == both[1]
        found.append((both[0]["slots"], both[0]["values"]))
    return found


@settings(max_examples=times(30, 100), deadline=None)
@given(data=st.data(), before=worlds(), in_place=st.booleans(), inserted=st.booleans(), spliced=st.booleans())
def test_a_change_ends_in_the_records_that_a_new_memory_would_hold(
    data: st.DataObject, before: dict[int, Row], in_place: bool, inserted: bool, spliced: bool
) -> None:
    """Some slots emptied, some filled, events added, by whichever way; and building it changes nothing."""
    visits = data.draw(events_of(list(before)))
    gone = sorted(data.draw(st.sets(st.sampled_from(SLOTS))))
    stayed = {slot: row for slot, row in before.items() if slot not in gone}
    come = data.draw(st.dictionaries(st.sampled_from(SLOTS).filter(lambda slot: slot not in stayed), rows("people")))
    more = data.draw(events_of(list(stayed | come)))
    memory = memory_of(before, [visits])
    if data.draw(st.booleans()):
        memory.grow(SLOTS[-1] + 1)
    old = held(memory), released(memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "WRITTEN_MAX", 1024 if in_place else -1)
        patch.setattr(inverted, "INSERTED_MAX", 16 if inserted else -1)
        patch.setattr(events, "SPLICED_MAX", 256 if spliced else -1)
        change = memory.changed(
            emptied=np.array(gone, dtype=np.int64),
            added={"people": placed("people", list(come.items())), "visits": placed("visits", more)},
        )
    assert (held(memory), released(memory)) == old
    memory.put(change)
    wanted = memory_of(stayed | come, [[event for event in visits if event[0] not in gone], more])
    assert held(memory) == held(wanted)
    assert released(memory) == released(wanted)


@pytest.mark.parametrize("is_small", [True, False])
def test_a_list_first_used_while_a_change_is_built_misses_no_row(
    monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    """The change does not bring that list along: it is made anew where an individual has joined."""
    if not is_small:
        monkeypatch.setattr(people, "WRITTEN_MAX", -1)
    memory = memory_of({0: PERSON})
    change = memory.changed(added={"people": placed("people", [(1, PERSON)])})
    plan = plan_of(QUERIES[2])
    for expected in ([0], [0, 1]):
        block = answered(plan, memory, scan_worth=ALWAYS)
        assert block["slots"] == expected
        if expected == [0]:
            memory.put(change)


def test_a_change_of_other_records_than_these_is_refused() -> None:
    """Columns built before an erasure would bring the record back."""
    memory = memory_of({0: PERSON})
    change = memory.changed(added={"people": placed("people", [(1, PERSON)])})
    memory.erase(0)
    before = held(memory)
    with pytest.raises(ValueError, match="have changed"):
        memory.put(change)
    assert held(memory) == before


def test_spent_totals_stay_where_they_are_when_the_accounts_grow_in_their_room() -> None:
    """No account is copied: growing shows more of what was reserved."""
    memory = DatasetMemory(SCHEMA, slots_max=2 * PAGE_SLOTS)
    memory.add_individuals(np.array([0]), with_digests(memory.null_codes("people", 1), [0]), np.array([BUDGET]))
    accounts = memory.accounts
    memory.grow(PAGE_SLOTS + 1)
    accounts.set_spent(slice(0, 1), 7)
    assert memory.accounts.size == 2 * PAGE_SLOTS
    assert int(memory.accounts.spent[0]) == 7
    memory.grow(2 * PAGE_SLOTS + 1)
    assert memory.accounts.size == 3 * PAGE_SLOTS
    assert int(memory.accounts.spent[0]) == 7
