"""Columns that are looked up by value: a table and a search give the same codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine import rows
from service.engine.rows import TableRows, code_tables
from service.query.columns import Coding, Formula, Intervals, Placed, QueryColumn, Weighted

SPAN = 40
NULL = SPAN + 1


def columns(formula: Formula, span: int) -> dict[str, QueryColumn]:
    """A stored column and one that is made of it."""
    of = QueryColumn(name="item", kind="category", coding=Coding(offset=0, span=SPAN, step_log2=0))
    made = QueryColumn(name="made", kind="integer", coding=Coding(offset=0, span=span, step_log2=0), formula=formula)
    return {"item": of, "made": made}


@given(listed=st.lists(st.integers(0, SPAN), min_size=1, unique=True), codes=st.lists(st.integers(0, NULL), min_size=1))
def test_the_place_of_a_value_is_that_in_the_list(listed: list[int], codes: list[int]) -> None:
    """In whatever order the list is; NULL and other values have none."""
    known = columns(Placed(column="item", codes=tuple(listed)), len(listed) - 1)
    stored = {"item": np.array(codes, dtype=np.uint8)}
    wanted = [listed.index(code) if code in listed else len(listed) for code in codes]
    tables = code_tables(known)
    assert list(tables) == ["made"]
    for table in (tables, {}):
        rows = TableRows(stored=stored, columns=known, tables=table)
        found = rows.at(slice(0, len(codes)))["made"]
        assert found.tolist() == wanted
        assert found.dtype == known["made"].coding.dtype


@pytest.mark.parametrize(
    "formula",
    [
        Placed(column="item", codes=(7, 3)),
        Weighted(column="item", codes=(3, 7), steps=(1, 1)),
        Intervals(column="item", thresholds=(3, 7, 9)),
    ],
)
def test_a_column_of_many_values_has_no_table(monkeypatch: pytest.MonkeyPatch, formula: Formula) -> None:
    """Beyond a size that is public."""
    known = columns(formula, 1)
    assert list(code_tables(known)) == ["made"]
    monkeypatch.setattr(rows, "TABLE_SPAN_MAX", SPAN - 1)
    monkeypatch.setattr(rows, "CODE_TABLE_SPAN_MAX", SPAN - 1)
    assert code_tables(known) == {}
