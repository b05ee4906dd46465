"""The keys of an upload: a sequence of texts as they are compared, with the plain forms that differ from them."""

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.ingest import keys as module
from service.engine.ingest.keys import ArrowKeys
from service.engine.ingest.problems import RowsProblem
from service.engine.ingest.reader import CSV, read_rows
from service.query.keys import KeyComparison, plain
from tests.engine.ingest.uploads import PEOPLE, VISITS, csv

UUIDS = st.uuids().map(str)
BARE = st.uuids().map(lambda uuid: uuid.hex)
CHUNKS = st.lists(st.lists(st.sampled_from(["ann", "bob", "ärla", "x" * 256, '"\\']), max_size=6), max_size=4)


def keys_of(chunks: list[list[str]]) -> ArrowKeys:
    """The keys as the reader makes them, batch by batch."""
    return ArrowKeys(pa.chunked_array([pa.array(chunk, type=pa.string()) for chunk in chunks], type=pa.string()))


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


@given(
    keys=st.lists(
        st.one_of(st.text("aB07+.-e{\u00e9_@ ", max_size=4), st.uuids().map(str), st.uuids().map(lambda u: u.hex))
    )
)
def test_the_plain_forms_are_those_of_the_keys_that_have_another(keys: list[str]) -> None:
    """Arrow passes over no key that has one."""
    assert keys_of([keys]).plain_forms() == {place: plain(key) for place, key in enumerate(keys) if plain(key) != key}


@pytest.mark.parametrize(
    ("comparison", "written", "stored"),
    [
        ("exact", ["Ada", "ada", "7", "007"], ["Ada", "ada", "7", "007"]),
        ("caseless", ["Ada", "STRASSE", "7"], ["ada", "strasse", "7"]),
        ("number", ["+7", "1e+05", "8.0"], ["7", "100000", "8"]),
    ],
)
def test_keys_are_read_as_they_are_compared(comparison: KeyComparison, written: list[str], stored: list[str]) -> None:
    """In every table."""
    people, visits = (
        csv(*(f"{key},NO,1,1,1" for key in written)),
        csv(*(f"{key},1" for key in written), header="id,item"),
    )
    for table, body in ((PEOPLE, people), (VISITS, visits)):
        assert list(read_rows(io.BytesIO(body), CSV, table, budget_units=1, keys=comparison).keys) == stored


def test_two_forms_of_one_key_are_the_same_key() -> None:
    """In the table of individuals the second is refused, by the number of the first."""
    with pytest.raises(RowsProblem) as refused:
        read_rows(io.BytesIO(csv("007,NO,1,1,1", "7,NO,1,1,1")), CSV, PEOPLE, budget_units=1, keys="number")
    assert [error.message for error in refused.value.errors] == ["the same key as in row 1 (line 3 of the file)"]


def test_each_text_that_can_be_no_key_is_named_by_its_row() -> None:
    """With why it is none; a missing one is missing."""
    body = csv("7,NO,1,1,1", "x,NO,1,1,1", ",NO,1,1,1", "1e300,NO,1,1,1", "8.5,NO,1,1,1")
    with pytest.raises(RowsProblem) as refused:
        read_rows(io.BytesIO(body), CSV, PEOPLE, budget_units=1, keys="number")
    assert [(error.row, error.message.partition(" (line")[0]) for error in refused.value.errors] == [
        (2, "the key is not a whole number"),
        (3, "the key is empty"),
        (4, "the key, as it is compared, is longer than 256 characters"),
        (5, "the key is not a whole number"),
    ]
