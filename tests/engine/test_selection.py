"""Predicates on codes against the same predicates in Python, over every dtype and every way to look a code up."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.engine.selection import columns_of, conjuncts, selection, selects_nulls
from service.query.columns import Coding
from service.query.conditions import All, Among, Conjunction, Disjunction, Nothing, Predicate, Within
from service.query.working_memory import RUNS_MAX, TABLE_SPAN_MAX

SPANS = (0, 1, 5, 253, 254, 255, 65_534, 2**20, 2**32, 2**52)
CODINGS = {f"c{span}": Coding(offset=0, span=span, step_log2=0) for span in SPANS}


def holds(predicate: Predicate, row: dict[str, int]) -> bool:
    """The predicate of one row of codes."""
    match predicate:
        case Within(column, low, high):
            return low <= row[column] <= high
        case Among(column, codes):
            return row[column] in codes
        case Conjunction(parts):
            return all(holds(part, row) for part in parts)
        case Disjunction(parts):
            return any(holds(part, row) for part in parts)
        case _:
            return isinstance(predicate, All)


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


def test_every_part_of_a_conjunction_has_to_hold_and_anything_else_is_its_own_part() -> None:
    """So that rows can be sifted by one part after the other."""
    first, second = Within("a", 0, 1), Within("b", 2, 2)
    assert conjuncts(Conjunction((first, second))) == (first, second)
    assert conjuncts(first) == (first,)
    assert conjuncts(Disjunction((first, second))) == (Disjunction((first, second)),)
