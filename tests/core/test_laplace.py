"""Rounded Laplace noise is a function of its bits, and its charges are integers that bound the prices of a table."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.accounting.laplace_prices import ChordPrices, LinearPrices
from service.core.charge import CHARGE_UNITS_MAX, UNITS_PER_RHO, worst_case_units
from service.core.laplace import LaplacePrices, laplace_charge_units, laplace_worst_case_units, rounded_laplace
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN, EntropyFailure
from tests.core.injected import Counting, extended_by, seeded, written
from tests.core.laplace_numbers import drawn, words_of
from tests.core.laplace_prices import CHORDS, TABLES, by_the_segments, chords

SCALES = [SIGMA_STEPS_MIN, 0.75, 3.0, 1000.0, math.pi * 2.0**12, 2.0**24, SIGMA_STEPS_MAX]
PLAIN = 0x2545F4914F6CDD1D
ROOT_MAX = math.isqrt(2**63 - 1)
WORDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([2**k + d for k in range(1, 64) for d in (-1, 0, 1)]),
    st.integers(0, 63).map(lambda k: 2**64 - 2**k),
    st.integers(0, 2**45),
)
NAMES = st.sampled_from(sorted(TABLES))
STEPS = st.integers(0, 62).flatmap(lambda bits: st.integers(0, math.isqrt(2**bits))) | st.just(ROOT_MAX)
SCALE = st.one_of(st.floats(SIGMA_STEPS_MIN, SIGMA_STEPS_MAX), st.sampled_from(SCALES), st.floats(0.3, 100.0))


@given(WORDS, st.tuples(*[st.integers(1, 2**64 - 1)] * 2), st.sampled_from(SCALES))
def test_a_draw_is_the_rounded_logarithm_of_its_string(first: int, more: tuple[int, int], scale: float) -> None:
    """Any first word, words at the ends of the range included, with any words after it."""
    words = [first, *more]

    assert rounded_laplace(1, scale, written(words)).tolist() == [drawn(words, scale)]


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [0.1, 1.7, 12.0])
@pytest.mark.parametrize(("bits", "refinements"), [(100, 1), (150, 2)])
def test_a_number_next_to_a_half_is_decided_by_the_words_that_follow(
    scale: float, size: float, bits: int, refinements: int, negative: bool
) -> None:
    """U changed by its 2^-100th takes a second word, by its 2^-150th a third; either side comes out right."""
    steps = math.floor(scale * size)
    for shift, magnitude in ((bits, steps), (-bits, steps + 1)):
        words = words_of(steps + 0.5, scale, shift=shift, negative=negative)
        entropy = Counting(written([PLAIN, words[0], PLAIN, *words[1:]]))

        found = rounded_laplace(3, scale, entropy)

        assert found[1] == (-magnitude if negative else magnitude) == drawn(words, scale)
        assert entropy.asked == [3] + [1] * refinements


def test_words_are_asked_for_by_chunks_and_draws_are_in_their_order() -> None:
    """2^16 draws at a time, one word for each."""
    entropy = Counting(seeded(1))

    found = rounded_laplace(2**16 + 3, 50.0, entropy)

    assert found.shape == (2**16 + 3,)
    assert entropy.asked == [2**16, 3]
    words = seeded(1)(2**16 + 3).tolist()
    assert found[:9].tolist() == [drawn([word], 50.0) for word in words[:9]]
    assert found[-3:].tolist() == [drawn([word], 50.0) for word in words[-3:]]


@pytest.mark.parametrize("negative", [False, True])
def test_a_string_that_begins_with_zeros_is_a_large_draw(negative: bool) -> None:
    """U of about 2^-127: 88 b; where U may be zero still, the words that follow decide."""
    words = [negative << 63, 1, PLAIN]
    found = rounded_laplace(1, 1000.0, written(words))[0]

    assert found == drawn(words, 1000.0)
    assert (found < 0) == negative
    assert abs(abs(found) - 127_000 * math.log(2)) < 1000


@pytest.mark.parametrize("extension", [0, 2**64 - 1])
def test_a_source_that_stands_still_is_an_error_and_not_an_endless_loop(extension: int) -> None:
    """Zeros for ever are the one string on which ln U is infinite; others are decided."""
    entropy = extended_by(np.array([0], dtype=np.uint64), extension)
    if extension == 0:
        with pytest.raises(EntropyFailure, match="repeats itself"):
            rounded_laplace(1, 1.0, entropy)
    else:
        assert rounded_laplace(1, 1.0, entropy).tolist() == [drawn([0, extension, extension], 1.0)]


@pytest.mark.parametrize("scale", [math.nan, 0.0, -1.0, 0.29, math.inf, math.nextafter(SIGMA_STEPS_MAX, math.inf)])
def test_a_scale_outside_the_certified_range_is_refused(scale: float) -> None:
    """By the noise, and by both charges."""
    prices = TABLES["zcdp"][0]()
    with pytest.raises(ValueError, match="scale_steps"):
        rounded_laplace(1, scale, seeded(1))
    with pytest.raises(ValueError, match="scale_steps"):
        laplace_charge_units(np.empty(0, dtype=np.int64), scale, prices, norm_squared_max=1)
    with pytest.raises(ValueError, match="scale_steps"):
        laplace_worst_case_units(1, scale, prices)


def test_rounding_keeps_the_divergence_of_the_mechanism_and_discrete_noise_does_not() -> None:
    """One step at b = 1: at most .3679 at each order over the order, where discrete noise has .4621 at order 1."""

    def divergence(probability: list[float], order: float) -> float:
        pairs = [(p, q) for p, q in zip(probability[1:], probability, strict=False) if p > 0 < q]
        if order == 1:
            return sum(p * math.log(p / q) for p, q in pairs)
        return math.log(sum(p**order * q ** (1 - order) for p, q in pairs)) / (order - 1) / order

    places = range(-60, 61)
    rounded = [math.exp(-abs(k)) * math.sinh(0.5) if k else 1 - math.exp(-0.5) for k in places]
    discrete = [math.exp(-abs(k)) * math.tanh(0.5) for k in places]

    assert sum(rounded) == pytest.approx(1)
    assert sum(discrete) == pytest.approx(1)
    assert divergence(discrete, 1) == pytest.approx(0.46211715726)
    for order in (1.0, 1.5, 2.0, 8.0):
        assert divergence(rounded, order) < 0.367879441171
    assert divergence(discrete, 1.5) > 0.367879441171


def interpolated(prices: ChordPrices | LinearPrices, steps: int, scale: float) -> Fraction:
    """The table's bound in units, as the text of the class says, by fractions."""
    t = Fraction(steps) / Fraction(scale)
    if isinstance(prices, LinearPrices):
        return t * UNITS_PER_RHO
    knots = [Fraction(knot, 2**64) for knot in prices.knots]
    if t < knots[0]:
        return prices.quadratic * t**2 * UNITS_PER_RHO
    for low, high, price, dearer in zip(knots, knots[1:], prices.at, prices.at[1:], strict=False):
        if t < high:
            return Fraction(price, 2**64) + (t - low) / (high - low) * Fraction(dearer - price, 2**64)
    return Fraction(prices.at[-1], 2**64) + (t - knots[-1]) * prices.slope * UNITS_PER_RHO


def charged(steps: list[int] | NDArray[np.int64], scale: float, prices: LaplacePrices) -> NDArray[np.int64]:
    """The charges of numbers of so many steps."""
    roots = np.array(steps, dtype=np.int64)
    return laplace_charge_units(roots * roots, scale, prices, norm_squared_max=2**63 - 1)


@given(NAMES, st.lists(STEPS, min_size=1, max_size=4), SCALE)
@example("gdp", [ROOT_MAX], 0.3)
@example("pure", [0, 1, ROOT_MAX], 2.0**32)
def test_a_charge_is_the_bound_of_the_table_rounded_up(name: str, steps: list[int], scale: float) -> None:
    """To a 2^-27th of it, which is what slopes rounded up may add; the same in Python's integers."""
    prices = TABLES[name][0]()

    found = charged(steps, scale, prices).tolist()

    for number, units in zip(steps, found, strict=True):
        exact = interpolated(prices, number, scale)
        above = exact if name == "pure" else exact * (1 + Fraction(1, 2**27))
        low, high = (min(math.ceil(each), CHARGE_UNITS_MAX) for each in (exact, above))
        assert low <= units <= high or (units == CHARGE_UNITS_MAX and exact > CHARGE_UNITS_MAX - 2**37)
        assert laplace_worst_case_units(number**2, scale, prices) == units


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("scale", [0.3, 33.7, 5000.0, 2.0**30])
def test_many_small_numbers_cost_what_each_costs(name: str, scale: float) -> None:
    """They are priced once for all sizes where none can be large; the largest such size, and one beyond, included."""
    prices, rng = TABLES[name][0](), np.random.default_rng(4)
    for largest in (2**12 - 1, 2**12):
        steps = np.append(rng.integers(0, largest, 5_000), [0, 1, largest])
        many = laplace_charge_units(steps * steps, scale, prices, norm_squared_max=largest**2)
        few = [
            laplace_charge_units(part * part, scale, prices, norm_squared_max=2**62)
            for part in np.array_split(steps, 3)
        ]
        assert many.tolist() == np.concatenate(few).tolist()
    with pytest.raises(ValueError, match="square"):
        laplace_charge_units(np.full(5_000, 4095**2), scale, prices, norm_squared_max=4094**2)


@pytest.mark.parametrize("name", CHORDS)
def test_charges_beside_each_knot_are_bounds_and_rise(name: str) -> None:
    """The last number below a knot and the first above it: every segment, at scales at which each is wide."""
    prices = chords(name)
    for scale in (2.0**32, math.pi * 2.0**30, 2.0**20 + 1 / 3, 977.7):
        at = np.array([knot * scale / 2.0**64 for knot in prices.knots])
        near = np.ceil(at[at < ROOT_MAX - 2]).astype(np.int64)
        steps = np.unique(np.clip(np.concatenate([near + off for off in (-2, -1, 0, 1, 2)]), 0, ROOT_MAX))

        found = charged(steps, scale, prices)

        assert (np.diff(found) >= 0).all()
        assert by_the_segments(prices, steps.tolist(), scale) == found.tolist()
        for step, units in list(zip(steps.tolist(), found.tolist(), strict=True))[::97]:
            assert units >= interpolated(prices, step, scale)


@given(NAMES, STEPS, SCALE)
def test_a_step_more_is_charged_no_less(name: str, steps: int, scale: float) -> None:
    """Coverage and allowances rest on it: the worst case is that of the clip."""
    prices = TABLES[name][0]()
    found = charged([max(steps - 1, 0), steps, min(steps + 1, ROOT_MAX), ROOT_MAX], scale, prices)

    assert (np.diff(found) >= 0).all()
    steps = min(steps, ROOT_MAX - 1)
    worst = [laplace_worst_case_units(norm, scale, prices) for norm in (steps**2, steps**2 + 1, (steps + 1) ** 2)]
    assert worst[0] <= worst[1] == worst[2]


@pytest.mark.parametrize("name", ["gdp", "zcdp", "pure"])
@pytest.mark.parametrize("scale", [0.3, 1.0, math.pi * 100])
def test_charges_saturate_and_never_wrap(name: str, scale: float) -> None:
    """About 2^62 units, and far beyond."""
    prices = TABLES[name][0]()
    slope = 1.0 if name == "pure" else float(chords(name).slope)
    steps = np.array([min(int(scale * 2**22 / slope * factor), ROOT_MAX) for factor in (0.9, 0.999, 1.001, 2, 100)])

    found = charged(steps, scale, prices).tolist()

    assert 0 < found[0] < found[1] < CHARGE_UNITS_MAX
    assert found[3:] == [CHARGE_UNITS_MAX] * 2
    assert laplace_worst_case_units(2**62, 0.3, prices) <= CHARGE_UNITS_MAX
    with pytest.raises(OverflowError):
        laplace_worst_case_units(10**60, scale, prices)


def test_small_numbers_cost_what_they_cost_under_a_gaussian() -> None:
    """v^2 / (2 b^2) below t = 2^-13, to the unit; a number above zero is charged at least a unit, and zero nothing."""
    scale = 2.0**20
    steps = [0, 1, 2, 10, 99, 127]
    found = charged(steps, scale, TABLES["zcdp"][0]()).tolist()

    assert found == [worst_case_units(step**2, scale) for step in steps]
    for name in TABLES:
        assert charged([0, 1], SIGMA_STEPS_MAX, TABLES[name][0]()).tolist() == [0, 256 if name == "pure" else 1]


def test_every_square_has_its_root() -> None:
    """The largest there are, and those beside them are refused."""
    prices = TABLES["pure"][0]()
    steps = np.concatenate([ROOT_MAX - np.arange(10_000), 2 ** np.arange(31) + 1, 2 ** np.arange(1, 31) - 1])
    assert charged(steps, 2.0**32, prices).tolist() == [256 * step for step in steps.tolist()]
    for off in (-1, 1):
        with pytest.raises(ValueError, match="square of one number"):
            laplace_charge_units(np.array([ROOT_MAX**2 + off]), 1.0, prices, norm_squared_max=2**63 - 1)


def test_norms_that_are_none_are_refused() -> None:
    """No row of int64, negative, above the largest."""
    prices = TABLES["pure"][0]()
    for norms in (np.ones(2), np.ones((2, 2), dtype=np.int64)):
        with pytest.raises(TypeError, match="int64"):
            laplace_charge_units(norms, 1.0, prices, norm_squared_max=1)  # type: ignore[arg-type]
    for wrong in (-1, -4, 9):
        with pytest.raises(ValueError, match="above the largest"):
            laplace_charge_units(np.array([0, wrong]), 1.0, prices, norm_squared_max=8)
    with pytest.raises(ValueError, match="square of one number"):
        laplace_worst_case_units(-1, 1.0, prices)
    assert laplace_charge_units(np.empty(0, dtype=np.int64), 1.0, prices, norm_squared_max=1).tolist() == []


def test_norms_may_be_strided_and_are_left_alone() -> None:
    """A column of a larger array, and a view of one number."""
    norms = (np.arange(20, dtype=np.int64) ** 2).reshape(10, 2)
    prices = TABLES["gdp"][0]()
    expected = charged(list(range(1, 20, 2)), 3.0, prices).tolist()

    assert laplace_charge_units(norms[:, 1], 3.0, prices, norm_squared_max=400).tolist() == expected
    same = laplace_charge_units(np.broadcast_to(np.int64(9), 4), 3.0, prices, norm_squared_max=9)
    assert same.tolist() == [expected[1]] * 4
    np.testing.assert_array_equal(norms.reshape(-1), np.arange(20) ** 2)
