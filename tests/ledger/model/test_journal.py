"""Acts in the journal: the chain, and the slots named by an upload."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.model import journal
from service.ledger.model.journal import joined_slots, rows_slots, told_slots
from service.query.division import PAGE_SLOTS

SLOTS = st.sets(st.integers(0, 300) | st.integers(10**6, 10**6 + 300)).map(sorted)


@given(joined=SLOTS, rows=SLOTS)
def test_an_upload_names_the_touched_slots(joined: list[int], rows: list[int]) -> None:
    """New individuals apart from those with new rows; an empty list for no individuals."""
    detail = told_slots(joined=np.array(joined, dtype=np.int64), rows=np.array(rows, dtype=np.int64))
    for told, wanted in ((joined_slots(detail), joined), (rows_slots(detail), rows)):
        assert told.tolist() == wanted


def test_a_million_new_slots_and_ten_thousand_scattered_take_few_bytes() -> None:
    """Every replica reads the detail."""
    scattered = np.unique(np.random.default_rng(1).integers(0, 10**6, 10_000))
    everybody = told_slots(joined=np.arange(10**6), rows=np.arange(0))
    assert len(str(everybody)) < 400
    assert len(str(told_slots(joined=np.arange(0), rows=scattered))) < 22_000


@pytest.mark.parametrize("limit", ["TOUCHED_BYTES_MAX", "SPAN_MAX"])
def test_a_long_list_of_slots_becomes_a_list_of_pages(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """All slots of the pages that hold the touched ones."""
    monkeypatch.setattr(journal, limit, 20)
    slots = np.array([5, 700, 3 * PAGE_SLOTS + 1, 3 * PAGE_SLOTS + 9000, 7 * PAGE_SLOTS])
    told = rows_slots(told_slots(joined=slots[:0], rows=slots))
    assert told.tolist() == [page * PAGE_SLOTS + n for page in (0, 3, 7) for n in range(PAGE_SLOTS)]
