"""Keys as Arrow holds them, against a list of strings."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.ingest import reader as module
from service.engine.ingest.reader import ArrowKeys

CHUNKS = st.lists(st.lists(st.sampled_from(["ann", "bob", "ärla", "x" * 256, '"\\']), max_size=6), max_size=4)


def keys_of(chunks: list[list[str]]) -> ArrowKeys:
    """As the reader makes them, batch by batch."""
    return ArrowKeys(pa.chunked_array([pa.array(chunk, type=pa.string()) for chunk in chunks], type=pa.string()))


@pytest.mark.slow
@given(chunks=CHUNKS, data=st.data())
def test_they_are_a_sequence_of_strings(chunks: list[list[str]], data: st.DataObject) -> None:
    """One, a stretch, all of them, and those of some rows."""
    wanted = [key for chunk in chunks for key in chunk]
    keys = keys_of(chunks)
    assert len(keys) == len(wanted)
    start, stop = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 30))
    assert keys[start:stop] == wanted[start:stop]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEYS_AT_ONCE", 2)
        assert list(keys) == wanted
    rows = data.draw(st.lists(st.integers(0, len(wanted) - 1), max_size=8)) if wanted else []
    assert list(keys.taken(np.array(rows, dtype=np.int64))) == [wanted[row] for row in rows]
    assert [keys[row] for row in rows] == [wanted[row] for row in rows]


@given(chunks=CHUNKS)
def test_each_is_found_once_in_the_order_of_its_first_row(chunks: list[list[str]]) -> None:
    """With the number of every row's."""
    wanted = [key for chunk in chunks for key in chunk]
    distinct, whose = keys_of(chunks).distinct()
    assert list(distinct) == list(dict.fromkeys(wanted))
    assert [distinct[number] for number in whose.tolist()] == wanted
    assert whose.dtype == np.int64
