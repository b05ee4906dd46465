"""The audit's own filter: the figures of the theory note, and the laws of each rule."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing_audit.own_filter import Filter, charge_units, longest_within, price_of

SIGMAS = st.one_of(st.integers(1, 5000).map(float), st.floats(0.3, 1e6))


@pytest.mark.parametrize(
    ("sigma", "length", "units"),
    [(100, 1, 54975582), (100, 1000, 54975581388800), (1000, 1, 549756), (12345.678, 1, 3607)],
)
def test_charges_are_those_of_the_theory_note(sigma: float, length: int, units: int) -> None:
    """Section 4."""
    assert charge_units(length, price_of(sigma)) == units


@given(SIGMAS, st.integers(1, 2**40))
def test_a_charge_is_rounded_up_by_less_than_a_unit(sigma: float, length: int) -> None:
    """2^40 length^2 / (2 sigma^2), for the double that sigma is."""
    exact = Fraction(length**2 * 2**40) / (2 * Fraction(sigma) ** 2)
    assert 0 <= charge_units(length, price_of(sigma)) - exact < 1


@given(SIGMAS, st.integers(0, 2**50))
def test_the_longest_vector_fits_and_the_next_does_not(sigma: float, room: int) -> None:
    """The inverse of the charge."""
    price = price_of(sigma)
    longest = longest_within(room, price)
    assert charge_units(longest, price) <= room < charge_units(longest + 1, price)


def test_nothing_fits_into_no_room() -> None:
    """Nor into less, as after a limit was lowered."""
    assert longest_within(0, price_of(1.0)) == 0
    assert longest_within(-5, price_of(1.0)) == 0


def test_equality_is_affordable_and_a_unit_more_is_not() -> None:
    """A limit of two charges pays for two vectors."""
    price = price_of(100.0)
    own = Filter([2 * charge_units(1, price)], is_dropping=False)
    outcomes = [own.decide(0, length, price, shortens=False) for length in (1, -1, 1)]

    assert [outcome.counted for outcome in outcomes] == [1, -1, 0]
    assert [outcome.is_left_out for outcome in outcomes] == [False, False, True]
    assert (own.spent, own.charged, own.left_out) == (own.limits, [2], [1])


def test_skip_lets_an_individual_return_and_drop_does_not() -> None:
    """A vector that is too long, between two that are not."""
    price = price_of(100.0)
    limit = 3 * charge_units(1, price)
    counted = {
        rule: [own.decide(0, length, price, shortens=False).counted for length in (1, 2, 1, 1)]
        for rule, own in (("skip", Filter([limit], is_dropping=False)), ("drop", Filter([limit], is_dropping=True)))
    }
    assert counted == {"skip": [1, 0, 1, 1], "drop": [1, 0, 0, 0]}


def test_a_pause_leaves_out_under_skip_and_touches_nothing_under_drop() -> None:
    """Under drop a pause would be for ever otherwise."""
    price = price_of(100.0)
    for is_dropping, left_out in ((False, [1]), (True, [0])):
        own = Filter([2**40], is_dropping=is_dropping)
        own.is_paused[0] = True
        assert own.room(0) == 0
        assert own.decide(0, 1, price, shortens=False).units == 0
        assert own.left_out == left_out
        own.is_paused[0] = False
        assert own.decide(0, 1, price, shortens=False).counted == 1


def test_nothing_to_add_is_untouched() -> None:
    """Also by an individual that could not pay."""
    own = Filter([0], is_dropping=True)
    assert not own.decide(0, 0, price_of(1.0), shortens=True).is_left_out
    assert own.left_out == [0]


@given(SIGMAS, st.integers(1, 2**45), st.integers(-(2**30), 2**30))
def test_clip_counts_what_fits(sigma: float, limit: int, length: int) -> None:
    """The vector where it fits, else the longest one in its direction that does, else nothing."""
    price, own = price_of(sigma), Filter([limit], is_dropping=False)
    outcome = own.decide(0, length, price, shortens=True)

    assert abs(outcome.counted) == min(abs(length), longest_within(limit, price))
    assert outcome.counted * length >= 0
    assert outcome.units == charge_units(outcome.counted, price) == own.spent[0] <= limit
    assert outcome.is_left_out == (outcome.counted == 0 and length != 0)


@given(st.booleans(), st.lists(st.tuples(st.integers(-50, 50), st.booleans()), max_size=30), st.integers(0, 10**12))
def test_no_order_of_vectors_spends_more_than_the_limit(
    is_dropping: bool, vectors: list[tuple[int, bool]], limit: int
) -> None:
    """Under each rule, shortened or not; what was charged adds up."""
    own, price = Filter([limit], is_dropping=is_dropping), price_of(7.0)
    units = [own.decide(0, length, price, shortens=shortens).units for length, shortens in vectors]
    assert sum(units) == own.spent[0] <= limit
