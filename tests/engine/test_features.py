"""Features of rows: by a table of a column's codes as by calculation, missing values and fills."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service.engine.features import FeatureReader, vectors_read
from service.engine.rows import RowView, TableRows, code_tables
from service.query import features
from service.query.features import Number
from tests.engine.worlds import PRODUCTS, memory_of, plan_of, query_of

ROWS: dict[int, dict[str, Any]] = {
    slot: {
        "country": ["NO", "SE", "DK", None][slot % 4],
        "area": 1,
        "level": [-2, None, 3, 0, 1][slot % 5],
        "spend": [0, 13.5, 500, None, 77.25, 250][slot % 6],
        "balance": [-0.7, 0.1, None][slot % 3],
        "member": [True, False, None][slot // 5 % 3],
        "born": None,
    }
    for slot in range(60)
}


def read(item: dict[str, Any]) -> tuple[FeatureReader, list[list[float]], list[bool]]:
    """The features of the rows, and which rows have all that they need."""
    plan = plan_of(query_of(item))
    assert plan.layout.items[0].product is not None
    tables = code_tables(plan.rows.columns)
    reader = FeatureReader(plan.layout.items[0].product.features, plan.rows.columns, tables)
    table = TableRows(stored=memory_of(ROWS).people.columns, columns=plan.rows.columns, tables=tables)
    every = slice(0, len(ROWS))
    matrix, known = reader.read(RowView(table, every), every)
    return reader, matrix.tolist(), known.tolist()


@pytest.mark.parametrize("item", [PRODUCTS[0], PRODUCTS[2]], ids=["all", "some"])
def test_a_table_gives_what_a_calculation_gives(item: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit, for every row that is known; where no column is small enough there is no table."""
    with_tables, found, known = read(item)
    monkeypatch.setattr(features, "TABLE_MAX", 0)
    without, calculated, known_there = read(item)
    assert with_tables.lookups
    assert not without.lookups
    assert (found, known) == (calculated, known_there)
    assert set(known) == {False, True}


def test_a_feature_of_several_columns_is_calculated() -> None:
    """It is not looked up: a table of two small columns would hold every pair."""
    both = {"of": {"mul": [{"col": "level"}, {"abs": {"sub": [{"col": "spend"}, {"col": "level"}]}}]}, "fill": 0}
    reader, _, known = read({"moments": {"features": [both]}})
    assert not reader.lookups
    assert all(known)


def test_a_lookup_is_of_a_number() -> None:
    """By the code of its column, NULL last; a fill stands for it."""
    item = {"moments": {"features": [{"of": {"col": "level"}, "fill": 1}, {"of": {"col": "member"}, "fill": 1}]}}
    reader, _, _ = read(item)
    ((part, lookup), _) = reader.lookups.items()
    assert isinstance(part, Number)
    assert lookup.values.tolist() == [-1024, -512, 0, 512, 1024, 1536, 512]
    assert lookup.line == (512.0, -1024.0)


@pytest.mark.parametrize(
    ("value", "is_line"),
    [
        ({"col": "level"}, True),
        ({"mul": [{"col": "level"}, 0.3]}, True),  # rounded half up
        ({"mul": [{"col": "level"}, -0.3]}, True),
        ({"abs": {"col": "level"}}, False),
    ],
)
def test_a_line_gives_what_a_calculation_gives(
    value: dict[str, Any], is_line: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a fill and without; what is no line is looked up."""
    item = {
        "moments": {
            "features": [{"of": value}, {"of": value, "fill": 0.5}, {"one_hot": "country"}, {"of": {"col": "member"}}]
        }
    }
    reader, matrix, known = read(item)
    assert [lookup.line is not None for lookup in reader.lookups.values()] == [is_line, is_line, True]
    monkeypatch.setattr(features, "TABLE_MAX", 0)
    _, calculated, known_there = read(item)
    assert (matrix, known) == (calculated, known_there)
    assert set(known) == {False, True}


@pytest.mark.parametrize("span_max", [2**16, -1], ids=["by a table", "by calculation"])
def test_a_missing_value_leaves_a_row_out_unless_a_fill_stands_for_it(
    span_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fifth level is missing, every third member."""
    monkeypatch.setattr(features, "TABLE_MAX", span_max)
    level, member = {"of": {"col": "level"}}, {"of": {"col": "member"}, "fill": 0}
    _, _, known = read({"moments": {"features": [level, member]}})
    assert known == [row["level"] is not None for row in ROWS.values()]
    _, _, known = read({"moments": {"features": [level | {"fill": 1}, member]}})
    assert all(known)


SKETCHES: dict[int, dict[str, Any]] = {
    slot: {"sketch": None if slot % 3 == 0 else [slot % 250, -(slot % 5), 7], "level": slot % 4}
    for slot in (*range(10), 4095, 4096, 4100)
}


def sketched(item: dict[str, Any], slots: slice | NDArray[np.int64]) -> tuple[list[list[float]], list[bool]]:
    """The features of some slots, one individual in a row, and which are known."""
    plan, memory = plan_of(query_of(item)), memory_of(SKETCHES)
    assert plan.layout.items[0].product is not None
    tables = code_tables(plan.rows.columns)
    vectors = vectors_read(plan.layout.items[0].product.features, memory)
    reader = FeatureReader(plan.layout.items[0].product.features, plan.rows.columns, tables, vectors)
    table = TableRows(stored=memory.people.columns, columns=plan.rows.columns, tables=tables)
    matrix, known = reader.read(RowView(table, slots), slots)
    return matrix.T.tolist(), known.tolist()


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (3, 7), (4090, 4101), (5000, 5003)])
def test_vectors_are_read_from_any_stretch_of_slots(start: int, stop: int) -> None:
    """Across the end of a block, and where a block has no vector; rows without one are left out."""
    found, known = sketched({"moments": {"features": [{"vector": "sketch"}], "intercept": True}}, slice(start, stop))
    assert len(found) == len(known) == stop - start
    for slot, (numbers, is_known) in enumerate(zip(found, known, strict=True), start=start):
        row = SKETCHES.get(slot, {}).get("sketch")
        assert is_known == (row is not None)
        if row is not None:
            assert numbers == [*(8 * max(number, -4) for number in row), 512]


def test_vectors_of_listed_slots_are_those_of_the_stretch() -> None:
    """In any blocks, some without a vector, and of no slots."""
    item = {"moments": {"features": [{"of": {"col": "level"}, "fill": 0}, {"vector": "sketch"}]}}
    whole, known = sketched(item, slice(0, 4101))
    for listed in ([1, 2, 3, 8], [0, 4, 4095, 4096, 4100], [4097, 4100], []):
        found = sketched(item, np.array(listed, dtype=np.int64))
        assert found == ([whole[slot] for slot in listed], [known[slot] for slot in listed])


def test_vectors_stand_beside_other_features_in_their_order() -> None:
    """A number needs finer steps than the vector has, which is shifted to them."""
    level = {"of": {"mul": [{"col": "level"}, 0.5]}, "fill": 0}
    found, known = sketched({"moments": {"features": [level, {"vector": "sketch"}]}}, slice(0, 10))
    assert known == [slot % 3 != 0 for slot in range(10)]
    for slot in (1, 2, 4, 5, 7, 8):
        assert found[slot] == [256 * (slot % 4), *(8 * max(each, -4) for each in SKETCHES[slot]["sketch"])]
