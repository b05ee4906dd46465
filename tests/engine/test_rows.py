"""Rows: columns looked up by value, and chosen rows in runs that hold each row once and no individual in two."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine import rows
from service.engine.rows import ChosenRows, RowView, TableRows, code_tables, cuts, runs
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
        found = RowView(rows, slice(0, len(codes)))["made"]
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


ROWS_MAX = st.integers(1, 9)
PEOPLE = st.lists(st.integers(0, 12), max_size=12)
"""How many rows each of some individuals has, one after the other."""


def owners_of(people: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The slot of each row."""
    return np.repeat(np.arange(len(people)) * 3, people)


def pieces_of(people: list[int], sizes: list[int]) -> Iterator[ChosenRows]:
    """The rows of these people in pieces of so many people each, the rest in one more; each has a column of its own."""
    for start, stop in zip([0, *np.cumsum(sizes)], [*np.cumsum(sizes), len(people)], strict=True):
        before = sum(people[:start])
        slots = owners_of(people)[before : sum(people[:stop])]
        rows = np.arange(slots.size)
        yield ChosenRows(
            table=TableRows(stored={"place": np.uint64(before) + rows.astype(np.uint64)}, columns={}),
            rows=rows,
            slots=slots,
        )


@given(people=PEOPLE, rows_max=ROWS_MAX)
def test_a_cut_falls_between_two_individuals(people: list[int], rows_max: int) -> None:
    """All rows once; as many as allowed, or one individual's if these are more; one more individual would not fit."""
    owners = owners_of(people)
    found = list(cuts(owners, rows_max))

    assert [found[0].start, *(each.stop for each in found)] == [*(each.start for each in found), owners.size]
    for part, after in zip(found, [*found[1:], None], strict=True):
        own = set(owners[part].tolist())
        assert part.stop - part.start <= rows_max or len(own) == 1
        if after is not None:
            assert own.isdisjoint(owners[after].tolist())
            next_one = int((owners == owners[after.start]).sum())
            assert part.stop - part.start + next_one > rows_max


@given(people=PEOPLE, rows_max=ROWS_MAX, data=st.data())
def test_runs_hold_every_row_once_and_no_individual_twice(
    people: list[int], rows_max: int, data: st.DataObject
) -> None:
    """For every division into pieces; small ones share a run, and only one individual's rows exceed the bound."""
    sizes = data.draw(st.lists(st.integers(0, 3), max_size=len(people)).filter(lambda s: sum(s) <= len(people)))
    found = list(runs(pieces_of(people, sizes), rows_max))

    assert [place for run in found for place in run.codes(["place"])["place"].tolist()] == list(range(sum(people)))
    assert [slot for run in found for slot in run.slots.tolist()] == owners_of(people).tolist()
    assert all(run.rows == run.slots.size for run in found)
    own = [set(run.slots.tolist()) for run in found]
    assert sum(map(len, own)) == len(set().union(*own))
    for run, slots in zip(found, own, strict=True):
        assert run.rows <= rows_max or len(slots) == len(run.pieces) == 1
        assert run.rows > 0 or len(found) == 1


def test_of_no_rows_there_is_one_run() -> None:
    """Which knows the columns that it has no rows of."""
    (run,) = runs(pieces_of([0, 0], [1]), 5)

    assert (run.rows, run.slots.tolist()) == (0, [])
    assert run.codes(["place"])["place"].dtype == np.uint64


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_are_one_run_wherever_they_are(rows: int) -> None:
    """One individual's row does not make another run, in whichever piece it is found."""
    people = [0] * 20
    for place in range(rows):
        people[place * 11] = 1

    assert len(list(runs(pieces_of(people, [2] * 10), 2))) == 1


@given(people=st.integers(1, 40), rows_max=ROWS_MAX)
def test_slices_are_cut_anywhere(people: int, rows_max: int) -> None:
    """One individual's rows, in parts that are full but for the last."""
    (piece,) = pieces_of([people], [])
    parts = list(piece.slices(rows_max))

    assert [row for part in parts for row in part.rows.tolist()] == list(range(people))
    assert all(part.rows.size == rows_max for part in parts[:-1])
