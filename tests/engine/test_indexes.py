"""Which indexes there are of individuals, and what those of two columns list."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.arrays import Codes
from service.engine.inverted import PAIRED_MAX, PAIRS_MAX, Indexes, Listing
from service.engine.memory import DatasetMemory
from service.engine.pages import PAGE_SLOTS
from service.query.columns import Coding
from service.query.schema import Schema


def spans(**columns: int) -> dict[str, Coding]:
    """Columns with codes from 0."""
    return {name: Coding(offset=0, span=span, step_log2=0) for name, span in columns.items()}


def filled(coding: Coding, codes: list[int]) -> Codes:
    """A page of NULLs but for the first slots."""
    page = np.full(PAGE_SLOTS, coding.null_code, dtype=coding.dtype)
    page[: len(codes)] = codes
    return page


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=30), st.integers(0, 2), st.integers(0, 5))
def test_a_pair_of_columns_lists_every_row_of_a_pair_of_values(
    rows: list[tuple[int, int]], first: int, second: int
) -> None:
    """3 and 6 are NULL here, and a pair with a NULL is in no list."""
    codings = spans(a=2, b=5)
    columns = {name: filled(codings[name], [row[place] for row in rows]) for place, name in enumerate("ab")}
    listing = ("a", "b")
    indexes = Indexes(codings, frozenset("ab"))
    assert not indexes.admit(listing)
    indexes.take(indexes.built(indexes.missing, lambda name, _page: columns[name], {}, count=1))
    assert indexes.admit(listing)
    index = indexes.of([listing])[listing]
    code = first * 6 + second
    assert index.rows(code, code)[0].tolist() == [row for row, pair in enumerate(rows) if pair == (first, second)]
    assert index.count(first * 6, first * 6 + 5) == sum(a == first and b < 6 for a, b in rows)


@pytest.mark.parametrize(("values", "expected"), [(128, True), (129, False)])
def test_only_few_pairs_of_values_are_listed(values: int, *, expected: bool) -> None:
    """With more, the edges of the lists would take more room than the lists; 128 times 128 is PAIRS_MAX."""
    assert PAIRS_MAX == 128 * 128
    indexes = Indexes(spans(a=127, b=values - 1), frozenset("ab"))
    assert not indexes.admit(("a", "b"))
    assert (indexes.missing == (("a", "b"),)) is expected


def test_the_first_pairs_that_are_asked_for_keep_their_place() -> None:
    """Queries about every two columns of a wide table do not fill the memory."""
    names = "abcdefg"
    indexes = Indexes(spans(**dict.fromkeys(names, 3)), frozenset(names) - {"g"})
    pairs: list[Listing] = list(combinations(names[:-1], 2))
    for listing in [*pairs, pairs[0], ("f",), ("g",), ("a", "g")]:
        assert not indexes.admit(listing)
    assert indexes.missing == (*pairs[:PAIRED_MAX], ("f",))


def test_events_are_listed_by_one_column() -> None:
    """A pair would be kept once more for every page of them."""
    columns: dict[str, Any] = {name: {"type": "category", "size": 3} for name in "ab"}
    people = {"kind": "individuals", "key": "id", "columns": columns}
    visits = {"kind": "events", "key": "id", "rows_per_individual": 2, "columns": columns}
    tables = {"people": people, "visits": visits}
    memory = DatasetMemory(Schema.model_validate(tables))
    memory.grow(1)
    memory.add_events("visits", np.array([0]), {name: np.array([1], dtype=np.uint8) for name in "ab"})
    asked: list[tuple[str, Listing]] = [("people", ("a", "b")), ("visits", ("a",)), ("visits", ("a", "b"))]
    assert [memory.admits(*each) for each in asked] == [False, False, False]
    memory.prepare()
    assert memory.take_prepared()
    assert [memory.admits(*each) for each in asked] == [True, True, False]
