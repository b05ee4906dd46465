"""Blocks of vectors: built beside, replaced whole, and read as they were by views taken before."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.arrays import Codes
from service.engine.memory import DatasetMemory
from service.engine.vectors import BLOCK_SLOTS, VectorBlocks, VectorView, check_rows
from service.query.schema import Schema
from service.query.vector_columns import VectorCoding
from tests.digests import with_digests

CODING = VectorCoding(length=2, offset=0, span=255, step_log2=0)
SLOTS = [0, 1, BLOCK_SLOTS - 1, BLOCK_SLOTS, BLOCK_SLOTS + 5, 3 * BLOCK_SLOTS + 1]
END = 4 * BLOCK_SLOTS
Vectors = dict[int, tuple[int, int] | None]


def rows_of(vectors: list[tuple[int, int] | None]) -> Codes:
    """Rows of codes."""
    return np.array([(0, 0, 0) if each is None else (1, *each) for each in vectors], dtype=np.uint8).reshape(-1, 3)


def held(view: VectorView, start: int = 0, stop: int = END) -> dict[int, list[int]]:
    """The vectors that there are, by slot."""
    found: dict[int, list[int]] = {}
    at = start
    for count, rows in view.parts(slice(start, stop)):
        if rows is not None:
            assert rows.shape == (count, 3)
            found |= {at + place: rows[place, 1:].tolist() for place in np.flatnonzero(rows[:, 0]).tolist()}
        at += count
    assert at == stop
    return found


def slots_of(slots: list[int]) -> NDArray[np.int64]:
    """The slots as an array."""
    return np.array(slots, dtype=np.int64)


NUMBERS = st.none() | st.tuples(st.integers(0, 255), st.integers(0, 255))
WORLD = st.dictionaries(st.sampled_from(SLOTS), NUMBERS, max_size=5)


@settings(max_examples=150, deadline=None)
@given(before=WORLD, gone=st.sets(st.sampled_from(SLOTS)), came=WORLD, data=st.data())
def test_a_change_makes_what_a_fresh_column_would_be(
    before: Vectors, gone: set[int], came: Vectors, data: st.DataObject
) -> None:
    """In any order of slots; and a view taken before goes on reading what there was."""
    blocks = VectorBlocks(CODING)
    blocks.put(blocks.changed(slots_of([]), slots_of(list(before)), rows_of(list(before.values()))))
    old = blocks.view()
    was = held(old)
    assert was == {slot: list(each) for slot, each in before.items() if each is not None}
    order = data.draw(st.permutations(list(came)))
    changed = blocks.changed(slots_of(sorted(gone)), slots_of(order), rows_of([came[slot] for slot in order]))
    assert held(blocks.view()) == was
    blocks.put(changed)
    after = {slot: each for slot, each in before.items() if slot not in gone} | came
    assert held(blocks.view()) == {slot: list(each) for slot, each in after.items() if each is not None}
    assert held(old) == was


def test_only_touched_blocks_are_replaced() -> None:
    """The others are the same objects, and a block without a vector is not kept."""
    blocks = VectorBlocks(CODING)
    blocks.put(blocks.changed(slots_of([]), slots_of([0, BLOCK_SLOTS]), rows_of([(1, 2), (3, 4)])))
    assert blocks.kept_bytes == 2 * 3 * BLOCK_SLOTS
    first, second = (rows for _, rows in blocks.view().parts(slice(0, 2 * BLOCK_SLOTS)))
    blocks.put(blocks.changed(slots_of([BLOCK_SLOTS]), slots_of([]), rows_of([])))
    (_, kept), (_, emptied) = blocks.view().parts(slice(0, 2 * BLOCK_SLOTS))
    assert kept is not None
    assert first is not None
    assert kept.base is first.base
    assert emptied is None
    assert second is not None
    assert second[0].tolist() == [1, 3, 4]
    assert blocks.kept_bytes == 3 * BLOCK_SLOTS


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (5, 6), (BLOCK_SLOTS - 1, BLOCK_SLOTS + 1), (0, END)])
def test_a_stretch_is_read_block_by_block(start: int, stop: int) -> None:
    """Wherever it begins and ends."""
    blocks = VectorBlocks(CODING)
    blocks.put(blocks.changed(slots_of([]), slots_of(SLOTS), rows_of([(slot % 256, 7) for slot in SLOTS])))
    expected = {slot: [slot % 256, 7] for slot in SLOTS if start <= slot < stop}
    assert held(blocks.view(), start, stop) == expected


@pytest.mark.parametrize(
    "rows",
    [
        rows_of([(1, 2)]),
        rows_of([(1, 2), (3, 4)])[:, :2],
        rows_of([(1, 2), (3, 4)]).astype(np.uint16),
        rows_of([(1, 2), (3, 4)]) * 2,
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: Codes) -> None:
    """Another number of them, another width, another type, and a mark that is none."""
    with pytest.raises(ValueError, match="column pixels"):
        check_rows("pixels", rows, CODING, 2)


def test_codes_beyond_the_span_are_refused() -> None:
    """The type would hold more."""
    with pytest.raises(ValueError, match="stands for nothing"):
        check_rows("pixels", rows_of([(1, 2)]), VectorCoding(length=2, offset=0, span=1, step_log2=0), 1)


def memory() -> DatasetMemory:
    """A dataset with a vector beside another column."""
    columns: dict[str, Any] = {
        "age": {"type": "integer", "lower": 0, "upper": 9},
        "pixels": {"type": "vector", "length": 2, "lower": 0, "upper": 255},
    }
    return DatasetMemory(
        Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": columns}}), slots_max=100
    )


def test_a_dataset_holds_vectors_beside_its_columns() -> None:
    """They come, go with an erasure, and return; individuals without a record have none."""
    dataset = memory()
    codes: dict[str, Codes] = {"age": np.array([3, 10], dtype=np.uint8), "pixels": rows_of([(1, 2), None])}
    dataset.add_individuals(slots_of([4, 1]), with_digests(codes, "ab"), slots_of([9, 9]))
    assert held(dataset.people.vectors["pixels"].view()) == {4: [1, 2]}
    assert "pixels" not in dataset.people.columns
    dataset.erase(4)
    assert held(dataset.people.vectors["pixels"].view()) == {}
    assert dataset.people.vectors["pixels"].kept_bytes == 0
    again = with_digests({"age": codes["age"][:1], "pixels": rows_of([(5, 6)])}, "a")
    dataset.add_individuals(slots_of([4]), again, slots_of([9]))
    assert held(dataset.people.vectors["pixels"].view()) == {4: [5, 6]}
    unknown = dataset.null_codes("people", 2)
    assert (unknown["age"].tolist(), unknown["pixels"].tolist()) == ([10, 10], [[0] * 3] * 2)


def test_a_record_without_its_vector_is_refused_before_anything_changes() -> None:
    """It is refused like one without another column."""
    dataset = memory()
    with pytest.raises(ValueError, match="the columns must be age, _digest, pixels"):
        dataset.add_individuals(slots_of([0]), {"age": np.array([3], dtype=np.uint8)}, slots_of([9]))
    assert not dataset.people.present.any()
