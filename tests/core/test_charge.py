"""A charge is the exact ceiling of ||v||^2 2^40 / (2 sigma^2), for whatever sigma a double can be."""

import math
import sys
from fractions import Fraction
from types import FrameType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core import charge
from service.core.charge import (
    CHARGE_UNITS_MAX,
    LIMIT_UNITS_MAX,
    UNITS_PER_RHO,
    charge_units,
    norm_within,
    price_of_step,
    wide_rounds,
    worst_case_units,
)

SIGMAS_OF_SMALL_DENOMINATOR = [0.25, 0.75, 1.0, 3.0, 20.0, 100.0, 1000.0, 25 * 2.0**27, 2.0**32, 23726565 * 2.0**-15]
# Neighbours of powers of two put every charge within a float's error of an integer.
SIGMAS_OF_LARGE_DENOMINATOR = [
    *(0.1, 0.3, 1 / 3, math.pi, 12345.678, 1e9 / 7, 2.0**32 - 2.0**-20, 3.1e9),
    *(math.nextafter(64.0, 0), math.nextafter(64.0, 65), math.nextafter(2.0**28, 0), 16777217.0, 2.0**49 - 1),
    *(23726567 * 2.0**-15, (2**29 - 1) * 2.0**-20),
]
SIGMAS = SIGMAS_OF_SMALL_DENOMINATOR + SIGMAS_OF_LARGE_DENOMINATOR


def price(sigma: float) -> Fraction:
    """Units for one squared step."""
    return Fraction(2**40) / (2 * Fraction(sigma) ** 2)


def by_fractions(norms_squared: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
    """The definition, in Python's integers: numerator and denominator of the Fraction, rounded up, saturated."""
    whole, part = price(sigma).as_integer_ratio()
    norms = norms_squared.astype(object)
    exact = np.minimum((norms * whole + (part - 1)) // part, CHARGE_UNITS_MAX)
    return np.array(exact, dtype=np.int64)


def random_norms(count: int, seed: int) -> NDArray[np.int64]:
    """Squared norms of all sizes, as many of 3 bits as of 60, a tenth of them perfect powers of two."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(1, 63, count)
    norms = rng.integers(0, 2**62, count) >> (62 - bits)
    norms[::10] = np.int64(1) << (bits[::10] - 1)
    return norms


@pytest.mark.parametrize("sigma", SIGMAS)
def test_every_charge_equals_the_ceiling_of_the_fraction(sigma: float) -> None:
    """A million charges in all, over sigmas of both kinds, none off by a unit either way."""
    norms = random_norms(-(-1_000_000 // len(SIGMAS)), seed=SIGMAS.index(sigma))

    charges = charge_units(norms, sigma)

    np.testing.assert_array_equal(charges, by_fractions(norms, sigma))
    some = slice(None, None, 997)
    exact = [math.ceil(Fraction(norm) * price(sigma)) for norm in norms[some].tolist()]
    assert charges[some].tolist() == [min(units, CHARGE_UNITS_MAX) for units in exact]


@given(st.lists(st.integers(0, 2**63 - 1), max_size=5), st.floats(2.0**-64, 2.0**64))
@example([2**62, 2**63 - 1], 2.0**-64)
@example([1, 2**63 - 1], 2.0**64)
def test_the_ceiling_is_exact_at_any_norm_and_any_sigma(norms: list[int], sigma: float) -> None:
    """The whole domain, the ends included."""
    exact = [min(math.ceil(norm * price(sigma)), CHARGE_UNITS_MAX) for norm in norms]

    assert charge_units(np.array(norms, dtype=np.int64), sigma).tolist() == exact
    assert [worst_case_units(norm, sigma) for norm in norms] == exact


@pytest.mark.parametrize("sigma", SIGMAS)
def test_charges_next_to_a_whole_number_fall_on_the_right_side(sigma: float) -> None:
    """Denominators of the price's continued fraction come as close to whole charges as norms can, from both sides.

    Their multiples stay as close and land where the float estimate is a rounding error to the other side.
    """
    norms, (before, current), rest = [1], (0, 1), price(sigma)
    while current < 2**62:
        norms.append(current)
        fraction = rest - math.floor(rest)
        if fraction == 0:
            break
        rest = 1 / fraction
        before, current = current, before + math.floor(rest) * current
    near = np.outer(norms, np.arange(1, 200, dtype=object)).reshape(-1)
    near = near[near < 2**62].astype(np.int64)
    near = np.concatenate([near - 1, near, near + 1])

    np.testing.assert_array_equal(charge_units(near, sigma), by_fractions(near, sigma))


@pytest.mark.parametrize("sigma", [*SIGMAS, 2.0**-30])
def test_saturation_begins_exactly_where_a_charge_reaches_2_to_the_62(sigma: float) -> None:
    """The last norm below it is priced exactly, the first beyond it saturates, and nothing ever wraps to negative.

    About it the float estimate is off by thousands of units, and may lie beyond 2^62 where the charge does not.
    """
    last = min(math.floor(CHARGE_UNITS_MAX / price(sigma)), 2**63 - 2**15)
    norms = np.append(last + np.arange(-3000, 3000, dtype=np.int64), 2**63 - 1)
    norms = norms[norms >= 0]

    np.testing.assert_array_equal(charge_units(norms, sigma), by_fractions(norms, sigma))
    assert charge_units(np.array([last]), sigma).tolist() == [math.ceil(last * price(sigma))]
    assert worst_case_units(10**60, sigma) == CHARGE_UNITS_MAX


# Mantissas whose squares, the prices' denominators, have 58 to 68 bits; an estimate is off by a half at 2^50 units.
MANTISSAS = st.integers(2**28, 2**33).map(lambda half: 2 * half + 1)
UNITS_BITS = st.integers(0, 2) | st.integers(46, 54)


@given(MANTISSAS, st.integers(-45, 5), UNITS_BITS, st.integers(-2, 2), st.integers(0, 2**32))
@example(2**30 + 1, -12, 49, 0, 0)  # a numerator of 2^63
def test_charges_are_exact_on_both_sides_of_every_bound(
    mantissa: int, power: int, bits: int, beyond: int, seed: int
) -> None:
    """Largest charges about one unit and about 2^50, denominators about 2^62: where the way of computing changes."""
    sigma = math.ldexp(mantissa, power)
    largest = min(max(math.floor(2**bits / price(sigma)) + beyond, 1), 2**63 - 1)
    rng = np.random.default_rng(seed)
    norms = np.concatenate([rng.integers(0, largest, 500, endpoint=True), [0, 1, largest]])

    charges = charge_units(norms, sigma, norm_squared_max=largest)

    assert charges.tolist() == by_fractions(norms, sigma).tolist()


@given(st.lists(st.integers(0, 2**62), max_size=5), st.integers(0, 2**63), st.sampled_from(SIGMAS))
def test_a_larger_bound_charges_no_unit_more(norms: list[int], beyond: int, sigma: float) -> None:
    """The bound says how a charge is worked out, not what it is."""
    row = np.array(norms, dtype=np.int64)

    bounded = charge_units(row, sigma, norm_squared_max=max(norms, default=0) + beyond)

    assert bounded.tolist() == charge_units(row, sigma).tolist()


def test_a_norm_above_the_bound_is_refused() -> None:
    """The way that the bound has chosen would charge it wrongly."""
    with pytest.raises(ValueError, match="above the largest"):
        charge_units(np.array([1, 256]), 3.0, norm_squared_max=255)


def steps_of(norms: list[int], sigma: float, largest: int) -> list[str]:
    """The functions of the module that one charge of these norms calls, in order."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == charge.__file__:
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        charge_units(np.array(norms, dtype=np.int64), sigma, norm_squared_max=largest)
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize(
    ("sigma", "largest", "rounds"),
    [
        (2.0**20, 2, 0),  # at most one unit
        (math.pi * 2**18, 2**50, 1),
        (2.0**20, 2**51 - 1, 0),
        (2.0**20, 2**51, 2),
        (math.ldexp(2**31 - 1, -12), 2**38, 0),  # a denominator just below 2^62, and one just above
        (math.ldexp(2**31 + 1, -12), 2**38, 1),
        (math.ldexp(2**31 + 1, -12), 0, 0),
        (0.3, 2**62, 2),
    ],
)
def test_the_bound_alone_chooses_the_way(sigma: float, largest: int, rounds: int) -> None:
    """No norm, small norms and the largest take the same steps, as often in 128 bits as the public cost says."""
    assert wide_rounds(largest, price_of_step(sigma)) == rounds  # keeps sigma's price, too

    fewest, *others = (steps_of(norms, sigma, largest) for norms in ([], [0], [min(largest, 1)], [0, 0, largest]))

    assert all(steps == fewest for steps in others)
    assert fewest.count("_excess") == rounds


@pytest.mark.parametrize(
    ("sigma", "norm_squared", "units"),
    [
        *((100.0, 1, 54975582), (100.0, 2, 109951163), (100.0, 10**6, 54975581388800), (1.0, 1, 2**39)),
        *((1000.0, 1, 549756), (1000.0, 2, 1099512), (1000.0, 10**6, 549755813888)),
        *((12345.678, 1, 3607), (12345.678, 2, 7214), (12345.678, 10**6, 3606948487)),
    ],
)
def test_charges_by_hand(sigma: float, norm_squared: int, units: int) -> None:
    """A missing factor 2 would miss them all, a floor those that are not whole, a safety factor those that are."""
    assert charge_units(np.array([norm_squared]), sigma).tolist() == [units]
    assert worst_case_units(norm_squared, sigma) == units


def test_norms_may_be_strided_and_are_left_alone() -> None:
    """A column of a larger array is priced in place."""
    norms = np.arange(20, dtype=np.int64).reshape(10, 2)

    for sigma in (3.0, math.pi):
        np.testing.assert_array_equal(charge_units(norms[:, 1], sigma), by_fractions(norms[:, 1], sigma))
    np.testing.assert_array_equal(norms.reshape(-1), np.arange(20))


@given(st.integers(0, 2**70), st.integers(0, 2**70), st.floats(0.3, 2.0**32))
def test_the_worst_case_bounds_every_charge_below_it(one: int, other: int, sigma: float) -> None:
    """Coverage statements and analysts' allowances rest on this."""
    low, high = sorted((one, other))

    assert worst_case_units(low, sigma) <= worst_case_units(high, sigma)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, 2.0**-65, math.nextafter(2.0**64, math.inf)])
def test_a_sigma_that_is_no_sigma_is_refused(sigma: float) -> None:
    """Also without individuals: the refusal must not depend on the data."""
    with pytest.raises(ValueError, match="sigma_steps"):
        charge_units(np.empty(0, dtype=np.int64), sigma)
    with pytest.raises(ValueError, match="sigma_steps"):
        worst_case_units(1, sigma)


@pytest.mark.parametrize("sigma", [1.0, math.pi])
def test_an_empty_set_is_charged_nothing(sigma: float) -> None:
    """No individuals, no charges; and a zero vector costs nothing."""
    assert charge_units(np.empty(0, dtype=np.int64), sigma).tolist() == []
    assert charge_units(np.zeros(3, dtype=np.int64), sigma).tolist() == [0, 0, 0]


def test_a_negative_norm_is_refused_and_never_a_refund() -> None:
    """An overflow in the caller's squares would arrive as a negative number."""
    with pytest.raises(ValueError, match="negative"):
        charge_units(np.array([1, -1]), 1.0)
    with pytest.raises(ValueError, match="negative"):
        charge_units(np.broadcast_to(np.int64(-1), 3), 1.0)
    with pytest.raises(ValueError, match="negative"):
        worst_case_units(-1, 1.0)


@pytest.mark.parametrize("norms", [np.ones(2), np.ones(2, dtype=np.uint64), np.ones((2, 2), dtype=np.int64)])
def test_norms_that_are_not_a_row_of_int64_are_refused(norms: NDArray[np.int64]) -> None:
    """A float norm would have been rounded already."""
    with pytest.raises(TypeError, match="int64"):
        charge_units(norms, 1.0)


ROOMS = st.one_of(st.integers(0, 100), st.integers(0, LIMIT_UNITS_MAX))
SIGMAS_OF_ROOMS = st.one_of(
    st.sampled_from([0.3, 1.0, 20.0 * 2.0**22, 20.0, 2.0**-20, 2.0**32]),
    st.sampled_from([100_003.0, 300_007.5, 700_001.0, math.pi * 2.0**16]),  # the dearest that need 128 bits
    st.floats(2.0**-40, 2.0**40),
)


@given(
    st.lists(st.tuples(ROOMS, st.integers(0, 2**61), st.sampled_from([-1, 0, 1])), max_size=6),
    SIGMAS_OF_ROOMS,
    st.sampled_from([0, 1, 100, 2**40, 2**50 - 1, 2**50, 2**60 + 7, 2**61]),
)
def test_the_norm_within_a_room_is_the_floor_of_the_fraction(
    drawn: list[tuple[int, int, int]], sigma: float, largest: int
) -> None:
    """For rooms of any size, and for those at, just above and just below the charge of a norm."""
    price = Fraction(UNITS_PER_RHO) / (2 * Fraction(sigma) ** 2)
    rooms = [room for room, _, _ in drawn]
    rooms += [max(worst_case_units(norm % (largest + 1), sigma) + off, 0) for _, norm, off in drawn]
    rooms = [min(room, LIMIT_UNITS_MAX) for room in rooms]
    within = norm_within(np.array(rooms, dtype=np.int64), sigma, norm_squared_max=largest)
    assert within.tolist() == [min(math.floor(room / price), largest) for room in rooms]
    assert within.dtype == np.int64


def test_a_room_below_zero_is_refused() -> None:
    """Nothing fits it, not even the zero vector."""
    with pytest.raises(ValueError, match="room"):
        norm_within(np.array([3, -1], dtype=np.int64), 1.0, norm_squared_max=9)
