"""Predicates over codes: built small, meaning what they say."""

from hypothesis import given
from hypothesis import strategies as st

from service.query.conditions import (
    All,
    Among,
    Conjunction,
    Disjunction,
    Nothing,
    Predicate,
    Within,
    among,
    conjunction,
    disjunction,
    within,
)
from tests.query.samples import holds

SPAN = 9
leaves = st.one_of(
    st.just(All()),
    st.just(Nothing()),
    st.builds(lambda low, size: Within("a", low, low + size), st.integers(0, 5), st.integers(0, 4)),
    st.lists(st.integers(0, SPAN), min_size=1, unique=True).map(lambda codes: Among("b", tuple(sorted(codes)))),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda join, parts: join(parts), st.sampled_from([conjunction, disjunction]), st.lists(inner, max_size=3)
    ),
)
rows = st.fixed_dictionaries({"a": st.integers(0, SPAN + 1), "b": st.integers(0, SPAN + 1)})


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(0, SPAN + 1))
def test_a_range_is_cut_to_the_domain(low: int, high: int, code: int) -> None:
    """The codes of the domain that lie within it, never the code of NULL."""
    assert holds(within("a", low, high, span=SPAN), {"a": code}) == (low <= code <= high and code <= SPAN)


@given(st.lists(st.integers(-3, SPAN + 3)), st.booleans(), st.integers(0, SPAN + 1))
def test_a_list_of_codes_or_its_complement(codes: list[int], negated: bool, code: int) -> None:
    """The complement is taken within the domain: NULL is in neither."""
    selected = holds(among("a", codes, span=SPAN, negated=negated), {"a": code})

    assert selected == (code <= SPAN and (code in codes) != negated)


def test_lists_take_the_smallest_shape() -> None:
    """Neighbours are a range; a complement is a few ranges, or a list, but never of a large domain."""
    every_other = range(0, 100, 2)

    assert among("a", [3, 1, 2, 2], span=SPAN) == Within("a", 1, 3)
    assert among("a", [3, 1], span=SPAN) == Among("a", (1, 3))
    assert among("a", [], span=SPAN) == Nothing()
    assert among("a", [], span=SPAN, negated=True) == Within("a", 0, SPAN)
    assert among("a", [3], span=SPAN, negated=True) == Disjunction((Within("a", 0, 2), Within("a", 4, SPAN)))
    assert among("a", range(SPAN + 1), span=SPAN, negated=True) == Nothing()
    assert among("a", every_other, span=99, negated=True) == Among("a", tuple(range(1, 100, 2)))
    assert isinstance(among("a", every_other, span=2**31, negated=True), Disjunction)


@given(st.lists(predicates, max_size=4), rows)
def test_joining_means_what_it_says(parts: list[Predicate], row: dict[str, int]) -> None:
    """All of the parts, or any of them; of no parts, every row or none."""
    assert holds(conjunction(parts), row) == all(holds(part, row) for part in parts)
    assert holds(disjunction(parts), row) == any(holds(part, row) for part in parts)


@given(predicates)
def test_what_is_joined_is_flat(predicate: Predicate) -> None:
    """No part of an And is an And or a constant, and there are at least two; likewise Or."""

    def check(part: Predicate) -> None:
        if isinstance(part, (Conjunction, Disjunction)):
            assert len(part.parts) >= 2
            assert not any(isinstance(inner, (type(part), All, Nothing)) for inner in part.parts)
            for inner in part.parts:
                check(inner)

    check(predicate)
