"""The audit's own filter: the laws of each rule, with prices that are numbers and prices that are ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing_audit.accountings import ACCOUNTINGS
from sparing_audit.noise import NOTHING, Gaussian, Laplace, Range
from sparing_audit.own_filter import Filter

LAW = Gaussian(100.0)
UNIT = LAW.charge(1).least


def counted(own: Filter, *lengths: int, shortens: bool = False) -> list[tuple[int, str]]:
    """The part of each length that is counted, one after the other, with the outcome in words."""
    outcomes = [own.decide(0, length, LAW, shortens=shortens) for length in lengths]
    return [(outcome.counted, outcome.words) for outcome in outcomes]


def test_equality_is_affordable_and_a_unit_more_is_not() -> None:
    """A limit of two charges pays for two vectors."""
    own = Filter(2 * UNIT, 1, is_dropping=False)
    assert counted(own, 1, -1, 1) == [(1, "charged"), (-1, "charged"), (0, "left_out")]
    assert (own.spent, own.charged, own.left_out) == ([Range(2 * UNIT, 2 * UNIT)], [2], [1])


@pytest.mark.parametrize(("is_dropping", "then"), [(False, (1, "charged")), (True, (0, "left_out"))])
def test_left_out_for_good_by_the_rule_drop_alone(is_dropping: bool, then: tuple[int, str]) -> None:
    """A vector that is too long, between two that are not."""
    own = Filter(3 * UNIT, 1, is_dropping=is_dropping)
    assert counted(own, 1, 2, 1) == [(1, "charged"), (0, "left_out"), then]


@pytest.mark.parametrize(("is_dropping", "words"), [(False, "left_out"), (True, "untouched")])
def test_a_pause_leaves_out_under_skip_and_touches_nothing_under_drop(is_dropping: bool, words: str) -> None:
    """Under drop a pause would be for ever otherwise."""
    own = Filter(2**40, 1, is_dropping=is_dropping)
    own.is_paused[0] = True
    assert own.room(0) == NOTHING
    assert counted(own, 1) == [(0, words)]
    own.is_paused[0] = False
    assert counted(own, 1) == [(1, "charged")]


def test_nothing_to_add_is_untouched() -> None:
    """Also by an individual that could not pay."""
    own = Filter(0, 1, is_dropping=True)
    assert counted(own, 0, shortens=True) == [(0, "untouched")]


@given(st.integers(1, 2**45), st.integers(-(2**30), 2**30))
def test_clip_counts_what_fits(limit: int, length: int) -> None:
    """The vector where it fits, else the longest one in its direction that does, else nothing."""
    own = Filter(limit, 1, is_dropping=False)
    outcome = own.decide(0, length, LAW, shortens=True)

    assert abs(outcome.counted) == min(abs(length), LAW.longest(limit))
    assert outcome.counted * length >= 0
    assert outcome.charge == LAW.charge(outcome.counted) == own.spent[0]
    assert outcome.charge.most <= limit
    assert (outcome.words == "shortened") == (outcome.counted not in (0, length))


@given(st.booleans(), st.lists(st.tuples(st.integers(-50, 50), st.booleans()), max_size=30), st.integers(0, 10**12))
def test_no_order_of_vectors_spends_more_than_the_limit(
    is_dropping: bool, vectors: list[tuple[int, bool]], limit: int
) -> None:
    """Under each rule, shortened or not; what was charged adds up."""
    own, law = Filter(limit, 1, is_dropping=is_dropping), Gaussian(7.0)
    units = [own.decide(0, length, law, shortens=shortens).charge.most for length, shortens in vectors]
    assert sum(units) == own.spent[0].most <= limit


def test_what_the_rounding_of_a_price_decides_is_open() -> None:
    """Surely affordable, surely not, and between; nothing of what is open is charged."""
    law = Laplace(40.0, ACCOUNTINGS["zcdp"])
    charge = law.charge(1)
    assert charge.least < charge.most
    for limit, words in ((charge.most, "charged"), (charge.least - 1, "left_out")):
        assert Filter(limit, 1, is_dropping=False).decide(0, 1, law).words == words
    own = Filter(charge.least, 1, is_dropping=False)
    with pytest.raises(ValueError, match="place 0"):
        own.decide(0, 1, law)
    assert (own.spent, own.charged, own.left_out) == ([NOTHING], [0], [0])
