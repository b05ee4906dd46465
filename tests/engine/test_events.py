"""Event rows by page: sorted by owner, rewritten page by page, the same for the same rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.engine.events import EventTable
from service.query.columns import Coding
from service.query.schema import EventsTable

CODINGS = {"item": Coding(offset=0, span=9, step_log2=0)}
ITEM = {"type": "category", "size": 10}
VISITS = EventsTable.model_validate(
    {"kind": "events", "key": "id", "rows_per_individual": 1000, "columns": {"item": ITEM}}
)
SLOTS = st.sampled_from([0, 1, 65_535, 65_536, 131_071, 2**31 - 1])
UPLOADS = st.lists(st.lists(st.tuples(SLOTS, st.integers(0, 10)), max_size=6), max_size=4)

Event = tuple[int, int]


def change(events: EventTable, *, added: list[Event] | None = None, erased: int | None = None) -> None:
    """Add some rows, or erase one individual's."""
    slots = np.array([slot for slot, _ in added or []], dtype=np.int64)
    items = np.array([item for _, item in added or []], dtype=np.uint8)
    gone = np.array([] if erased is None else [erased], dtype=np.int64)
    events.put(events.changed(gone, slots, {"item": items}))


def table(uploads: list[list[Event]]) -> EventTable:
    """A table that got these uploads."""
    events = EventTable(VISITS, CODINGS)
    for upload in uploads:
        change(events, added=upload)
    return events


def rows(events: EventTable) -> list[Event]:
    """All rows in the order of the table."""
    return [
        (number * 65_536 + owner, item)
        for number, page in events.pages()
        for owner, item in zip(page.owners.tolist(), page.columns["item"].tolist(), strict=True)
    ]


@given(uploads=UPLOADS)
def test_rows_are_kept_by_slot_in_order_of_arrival(uploads: list[list[Event]]) -> None:
    """Stable: two uploads or one, a slot's rows stand in the order they came."""
    whole = [event for upload in uploads for event in upload]
    wanted = sorted(whole, key=lambda event: event[0])
    assert rows(table(uploads)) == rows(table([whole])) == wanted
    assert table(uploads).rows == len(whole)


@given(uploads=UPLOADS, gone=SLOTS)
def test_erasing_leaves_all_other_rows(uploads: list[list[Event]], gone: int) -> None:
    """Also those in the same page, and also if there was nothing to erase."""
    events = table(uploads)
    before = rows(events)
    change(events, erased=gone)
    assert rows(events) == [event for event in before if event[0] != gone]


@given(uploads=UPLOADS, more=st.lists(SLOTS, max_size=6))
def test_counts_are_those_held_and_those_to_come(uploads: list[list[Event]], more: list[int]) -> None:
    """For each row of the next upload."""
    held = [slot for upload in uploads for slot, _ in upload] + more
    counts = table(uploads).counts_with(np.array(more, dtype=np.int64))
    assert counts.tolist() == [held.count(slot) for slot in more]


def test_a_page_that_nothing_happens_to_is_not_rewritten() -> None:
    """An append costs what its pages hold, not what the table holds."""
    events = table([[(1, 1), (65_536, 2)]])
    first = dict(events.pages())
    change(events, added=[(2, 3)])
    change(events, erased=1)
    second = dict(events.pages())
    assert second[1] is first[1]
    assert second[0] is not first[0]
    assert first[0].owners.tolist() == [1]
