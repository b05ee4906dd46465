"""Truncation of one individual's rows depends on nothing but that individual's own rows."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.workflows.uploads import rows_to_keep

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), max_size=40)
STORED = st.lists(st.integers(0, 3), min_size=6, max_size=6)
LIMIT = 3
Row = tuple[int, int, int]


def kept(rows: list[Row], stored: list[int]) -> Counter[Row]:
    """The kept of some rows (slot, day, item), when each slot holds so many rows already."""
    slots = np.array([slot for slot, _, _ in rows], dtype=np.int64)
    codes: dict[str, NDArray[np.unsignedinteger]] = {
        "day": np.array([day for _, day, _ in rows], dtype=np.uint16),
        "item": np.array([item for _, _, item in rows], dtype=np.uint8),
    }
    sent = Counter(slots.tolist())
    held = np.array([stored[slot] + sent[slot] for slot in slots.tolist()], dtype=np.int64)
    mask = rows_to_keep(slots, codes, held, LIMIT)
    return Counter(row for row, keep in zip(rows, mask.tolist(), strict=True) if keep)


@given(ROWS, STORED, st.integers(0, 5))
def test_without_one_individual_all_others_keep_the_same_rows(rows: list[Row], stored: list[int], left: int) -> None:
    """Neighbouring uploads stay neighbours: they differ in the rows of that individual alone."""
    without = kept([row for row in rows if row[0] != left], stored)
    assert {row: number for row, number in kept(rows, stored).items() if row[0] != left} == without


@given(st.data(), ROWS, STORED)
def test_the_order_of_the_upload_does_not_count(data: st.DataObject, rows: list[Row], stored: list[int]) -> None:
    """The same rows in any order leave the same rows."""
    assert kept(data.draw(st.permutations(rows)), stored) == kept(rows, stored)


@given(ROWS, STORED)
def test_each_keeps_as_many_as_fit_and_the_first_by_contents(rows: list[Row], stored: list[int]) -> None:
    """No individual exceeds the limit, and no row is dropped before a greater one of the same individual."""
    found = kept(rows, stored)
    for slot in range(6):
        own = sorted(row for row in rows if row[0] == slot)
        assert sorted(row for row in found.elements() if row[0] == slot) == own[: LIMIT - stored[slot]]
