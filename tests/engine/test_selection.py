"""Predicates on codes against the same predicates in Python, and the listings of the indexes that cover them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.arrays import Codes
from service.engine.inverted import Inverted, InvertedPages, Listing
from service.engine.selection import (
    CodeRange,
    Cover,
    candidates,
    columns_of,
    covers,
    listings_of,
    selection,
    selects_nulls,
    shortest,
)
from service.query.columns import Coding
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Predicate, Within
from service.query.working_memory import LISTED_MAX, RUNS_MAX, SCAN_WORTH, TABLE_SPAN_MAX
from tests.query.samples import holds

SPANS = (0, 1, 5, 253, 254, 255, 65_534, 2**20, 2**32, 2**52)
CODINGS = {f"c{span}": Coding(offset=0, span=span, step_log2=0) for span in SPANS}


def codes_of(name: str) -> st.SearchStrategy[int]:
    """Codes of a column, its ends more often than chance."""
    span = CODINGS[name].span
    return st.integers(0, span) | st.sampled_from(sorted({0, min(1, span), span // 2, span}))


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    """Ranges and lists of codes."""
    name = draw(st.sampled_from(sorted(CODINGS)))
    if draw(st.booleans()):
        low, high = sorted([draw(codes_of(name)), draw(codes_of(name))])
        return Within(name, low, high)
    return Among(name, tuple(sorted(draw(st.sets(codes_of(name), min_size=1, max_size=3 * RUNS_MAX)))))


PREDICATES = st.recursive(
    leaves() | st.just(All()) | st.just(Nothing()),
    lambda inner: (
        st.builds(Conjunction, st.tuples(inner, inner)) | st.builds(Disjunction, st.tuples(inner, inner, inner))
    ),
    max_leaves=5,
)
ROWS = st.fixed_dictionaries({name: codes_of(name) | st.just(CODINGS[name].null_code) for name in CODINGS})


def columns(rows: list[dict[str, int]]) -> dict[str, NDArray[np.unsignedinteger]]:
    """The rows as columns."""
    return {
        name: np.array([row[name] for row in rows], dtype=CODINGS[name].dtype).astype(CODINGS[name].dtype)
        for name in CODINGS
    }


@given(predicate=PREDICATES, rows=st.lists(ROWS, min_size=1, max_size=5))
def test_a_predicate_selects_what_python_selects(predicate: Predicate, rows: list[dict[str, int]]) -> None:
    """NULL is a code above the domain: no leaf selects it, in no dtype."""
    chosen = np.empty(len(rows), dtype=np.bool_)
    selection(predicate, CODINGS)(columns(rows), chosen)
    assert chosen.tolist() == [holds(predicate, row) for row in rows]


@pytest.mark.parametrize("name", ["c253", "c65534", "c4294967296"])
def test_many_codes_are_looked_up(name: str) -> None:
    """More separate codes than ranges are used for: a table, or a sorted list for a large domain."""
    listed = tuple(range(1, 8 * RUNS_MAX, 3))
    assert len([1 for low, high in pairwise(listed) if high - low > 1]) > RUNS_MAX
    coding = CODINGS[name]
    codes = np.array([0, 1, 2, 4, listed[-1], listed[-1] + 1, coding.span, coding.null_code], dtype=coding.dtype)
    chosen = np.empty(codes.size, dtype=np.bool_)
    selection(Among(name, listed), CODINGS)({name: codes}, chosen)
    assert chosen.tolist() == [code in listed for code in codes.tolist()]
    assert (coding.span <= TABLE_SPAN_MAX) == (name != "c4294967296")


@given(predicate=PREDICATES)
def test_whether_nulls_are_selected_is_known_without_a_row(predicate: Predicate) -> None:
    """An empty slot looks like a row of NULLs."""
    nothing_known = {name: coding.null_code for name, coding in CODINGS.items()}
    assert selects_nulls(predicate) == holds(predicate, nothing_known)


@given(predicate=PREDICATES)
def test_the_columns_that_are_read_are_all_that_is_read(predicate: Predicate) -> None:
    """A selection works on the columns it names."""
    rows = columns([{name: coding.null_code for name, coding in CODINGS.items()}])
    read = {name: codes for name, codes in rows.items() if name in columns_of(predicate)}
    of_all, of_read = np.empty(1, dtype=np.bool_), np.empty(1, dtype=np.bool_)
    selection(predicate, CODINGS)(rows, of_all)
    selection(predicate, CODINGS)(read, of_read)
    assert of_read.tolist() == of_all.tolist()


@pytest.mark.parametrize(
    "predicate", [Within("c5", 0, 6), Within("c5", -1, 2), Within("c5", 3, 2), Among("c5", ()), Among("c5", (2, 6))]
)
def test_codes_outside_the_domain_are_refused(predicate: Predicate) -> None:
    """A range that reached the null code would select NULLs."""
    with pytest.raises(ValueError, match="code"):
        selection(predicate, CODINGS)


A, B, X = Within("a", 3, 3), Within("b", 1, 2), Within("x", 0, 9)
OF_A, OF_B = CodeRange(("a",), 3, 3), CodeRange(("b",), 1, 2)
LISTED = {name: Coding(offset=0, span=span, step_log2=0) for name, span in {"a": 9, "b": 4, "c": 2, "x": 99}.items()}


def apart(listing: Listing) -> bool:
    """Every column is listed but x, and no two together."""
    return len(listing) == 1 and listing != ("x",)


def together(listing: Listing) -> bool:
    """Every column is listed but x, and every two of the others."""
    return "x" not in listing


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (A, [(OF_A,)]),
        (X, []),
        (All(), []),
        (Nothing(), [()]),
        (Among("a", (1, 5)), [(CodeRange(("a",), 1, 1), CodeRange(("a",), 5, 5))]),
        (Among("x", (1, 5)), []),
        (Conjunction((A, X)), [(OF_A,)]),
        (Conjunction((X, Disjunction((A, B)))), [(OF_A, OF_B)]),
        (Conjunction((A, B)), [(OF_A,), (OF_B,)]),
        (Conjunction((Within("a", 0, 4), Within("a", 3, 9))), [(CodeRange(("a",), 3, 4),)]),
        (Conjunction((Within("a", 0, 2), Within("a", 3, 9))), [()]),
        (Disjunction((A, B)), [(OF_A, OF_B)]),
        (Disjunction((A, X)), []),
        (Disjunction((Conjunction((A, B)), B)), [(OF_A, OF_B)]),
    ],
)
def test_a_cover_lists_every_row_of_its_predicate(predicate: Predicate, expected: list[Cover]) -> None:
    """Each part of a conjunction is a way, and all parts of a disjunction together are one; x has no index."""
    assert list(covers(predicate, LISTED, apart)) == expected


def pairs(first: int, low: int, high: int) -> CodeRange:
    """The range of one value of a and those of b from `low` to `high`; b has five."""
    return CodeRange(("a", "b"), 5 * first + low, 5 * first + high)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Conjunction((A, B)), [(pairs(3, 1, 2),)]),
        (Conjunction((B, A)), [(pairs(3, 1, 2),)]),
        (Conjunction((A, Within("b", 4, 4))), [(pairs(3, 4, 4),)]),
        (Conjunction((A, Among("b", (0, 4)))), [(pairs(3, 0, 0), pairs(3, 4, 4))]),
        (Conjunction((Within("a", 1, 2), Within("b", 3, 3))), [(CodeRange(("b", "a"), 31, 32),)]),
        (Conjunction((Within("a", 1, 2), B)), [(CodeRange(("a",), 1, 2),), (OF_B,)]),  # neither has one value
        (Conjunction((A, X)), [(OF_A,)]),
        (Conjunction((A, Disjunction((B, A)))), [(OF_A,), (OF_B, OF_A)]),
        (Conjunction((Within("c", 1, 1), A, B)), [(pairs(3, 1, 2),), (CodeRange(("c",), 1, 1),)]),
        (Disjunction((Conjunction((A, B)), B)), [(pairs(3, 1, 2), OF_B)]),
    ],
)
def test_two_conditions_are_listed_together_where_one_is_for_one_value(
    predicate: Predicate, expected: list[Cover]
) -> None:
    """The pair is taken whose columns have the most values; its parts are not looked at apart."""
    assert sorted(covers(predicate, LISTED, together), key=str) == sorted(expected, key=str)


def test_a_conjunction_of_very_many_conditions_is_not_searched_for_pairs() -> None:
    """Asking about every two of four thousand would take longer than the scan."""
    asked: list[Listing] = []

    def nothing_together(listing: Listing) -> bool:
        asked.append(listing)
        return len(listing) == 1

    codings = {f"c{n}": LISTED["a"] for n in range(4000)}
    assert len(covers(Conjunction(tuple(Within(name, 1, 1) for name in codings)), codings, nothing_together)) == len(
        codings
    )
    assert sum(len(listing) > 1 for listing in asked) <= 16


def test_the_listings_read_are_those_of_all_covers() -> None:
    """Their indexes are made before the shortest is known."""
    assert listings_of([(OF_A,), (OF_A, OF_B)]) == {("a",), ("b",)}


def test_the_shortest_cover_is_taken_if_it_is_short_enough() -> None:
    """A listed row costs what streaming past SCAN_WORTH rows costs."""
    size = 3 * SCAN_WORTH
    codes = np.zeros(size, dtype=np.uint8)
    codes[:3] = 1
    coding = Coding(offset=0, span=6, step_log2=0)
    listed: dict[Listing, Codes] = {("a",): codes, ("b",): 0 * codes}
    indexes = {listing: InvertedPages([Inverted.of(each, coding)]) for listing, each in listed.items()}
    rare: Cover = (CodeRange(("a",), 1, 1),)
    common: Cover = (CodeRange(("b",), 0, 0),)
    assert shortest([common, rare], indexes, rows=size) == rare
    assert candidates(rare, indexes, page_rows=size).tolist() == [0, 1, 2]
    assert shortest([common, rare], indexes, rows=size - 1) is None
    assert shortest([], indexes, rows=size) is None


def test_more_rows_than_are_looked_up_at_a_time_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers would take memory without a public bound."""
    size = LISTED_MAX
    codes = np.zeros(size, dtype=np.uint8)
    codes[:3] = 1
    indexes: dict[Listing, InvertedPages] = {
        ("a",): InvertedPages([Inverted.of(codes, Coding(offset=0, span=6, step_log2=0))])
    }
    rare: Cover = (CodeRange(("a",), 1, 1),)
    for listed_max, found in ((3, rare), (2, None)):
        monkeypatch.setattr("service.engine.selection.LISTED_MAX", listed_max)
        assert shortest([rare], indexes, rows=size) == found


def test_a_row_that_two_lists_name_comes_once_and_in_order() -> None:
    """Lists of two columns may share rows; the second page's rows come after the first's."""
    pages = [np.array(codes, dtype=np.uint8) for codes in ([1, 0, 1, 1], [0, 0, 0, 1])]
    coding = Coding(offset=0, span=1, step_log2=0)
    indexes: dict[Listing, InvertedPages] = {
        ("a",): InvertedPages([Inverted.of(codes, coding) for codes in pages]),
        ("b",): InvertedPages([Inverted.of(codes[::-1].copy(), coding) for codes in pages]),
    }
    cover = (CodeRange(("a",), 1, 1), CodeRange(("b",), 1, 1))
    assert candidates(cover, indexes, page_rows=4).tolist() == [0, 1, 2, 3, 4, 7]


def test_a_condition_without_matches_lists_no_row() -> None:
    """Its cover is empty."""
    assert shortest([()], {}, rows=8) == ()
    assert candidates((), {}, page_rows=4).tolist() == []
