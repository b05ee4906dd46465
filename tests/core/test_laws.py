"""A law of noise is what the functions of the core say of its size, in one object."""

from collections.abc import Callable
from math import inf, sqrt

import numpy as np
import pytest

from service.accounting.laplace_prices import laplace_prices_of
from service.core.charge import UNITS_PER_RHO, charge_units, norm_within, price_of_step, wide_rounds, worst_case_units
from service.core.half_widths import half_width_steps, laplace_half_width_steps
from service.core.laplace import laplace_charge_units, laplace_worst_case_units, longest_steps, rounded_laplace
from service.core.laws import Gaussian, Laplace, Law, PrepaidGaussian
from service.core.noise import rounded_gaussian
from tests.core.injected import seeded

SIZE = 30.0
NORMS = np.array([0, 1, 49, 10_000])
ROOMS = np.array([0, 10**9, 2**40])
PRICES = laplace_prices_of("zcdp")
LAPLACE = Laplace.priced(SIZE, "zcdp", PRICES)


def test_a_gaussian_is_drawn_and_charged_by_its_sigma() -> None:
    """By the core's integers, whatever the largest norm may be."""
    law = Gaussian(SIZE)
    assert law.draw(9, seeded(1)).tolist() == rounded_gaussian(9, SIZE, seeded(1)).tolist()
    assert law.charges(NORMS).tolist() == charge_units(NORMS, SIZE).tolist()
    assert law.charges(NORMS, norm_squared_max=2**60).tolist() == law.charges(NORMS).tolist()
    assert law.charge(49) == worst_case_units(49, SIZE)
    within = law.norms_within(ROOMS, norm_squared_max=10_000)
    assert within.tolist() == norm_within(ROOMS, SIZE, norm_squared_max=10_000).tolist()
    assert law.rounds(2**60) == wide_rounds(2**60, price_of_step(SIZE))


def test_laplace_noise_is_drawn_by_its_scale_and_charged_by_the_prices_of_an_accounting() -> None:
    """By the core's integers, of no norms too."""
    assert LAPLACE.draw(9, seeded(1)).tolist() == rounded_laplace(9, SIZE, seeded(1)).tolist()
    expected = laplace_charge_units(NORMS, SIZE, PRICES, norm_squared_max=10_000)
    assert LAPLACE.charges(NORMS).tolist() == expected.tolist()
    assert LAPLACE.charges(NORMS, norm_squared_max=10**8).tolist() == expected.tolist()
    assert LAPLACE.charges(NORMS[:0]).tolist() == []
    assert LAPLACE.charge(49) == laplace_worst_case_units(49, SIZE, PRICES)
    assert LAPLACE.rounds(2**60) == 1
    with pytest.raises(TypeError, match="not shortened"):
        LAPLACE.norms_within(ROOMS, norm_squared_max=1)


def test_a_tick_charges_nobody() -> None:
    """It is a Gaussian otherwise, with a number."""
    law = PrepaidGaussian(SIZE).numbered(3)
    assert law == PrepaidGaussian(SIZE, tick=3)
    assert law.draw(9, seeded(1)).tolist() == Gaussian(SIZE).draw(9, seeded(1)).tolist()
    assert law.charges(NORMS, norm_squared_max=10**6).tolist() == [0, 0, 0, 0]
    assert law.charge(49) == 0
    assert law.norms_within(ROOMS, norm_squared_max=7).tolist() == [7, 7, 7]
    assert law.longest(1) == inf


@pytest.mark.parametrize(
    ("law", "name", "word", "size_word", "deviation", "is_free", "tick"),
    [
        (Gaussian(SIZE), "gaussian", "gaussian", "sigma", 1.0, False, 0),
        (PrepaidGaussian(SIZE, tick=3), "gaussian prepaid 3", "gaussian", "sigma", 1.0, True, 3),
        (LAPLACE, "laplace zcdp", "laplace", "scale", sqrt(2), False, 0),
    ],
)
def test_a_law_says_how_it_is_named(
    law: Law, name: str, word: str, size_word: str, deviation: float, *, is_free: bool, tick: int
) -> None:
    """By an entry, by a query and by its size; only a tick takes a number."""
    assert (law.name, law.word, law.size_word, law.deviation) == (name, word, size_word, deviation)
    assert (law.is_free, law.tick) == (is_free, tick)
    assert law.numbered(5).tick == (5 if is_free else 0)


@pytest.mark.parametrize(
    ("law", "half_width"), [(Gaussian(SIZE), half_width_steps), (LAPLACE, laplace_half_width_steps)]
)
def test_a_law_reaches_as_far_as_its_noise(law: Law, half_width: Callable[[float, float], int]) -> None:
    """At a confidence."""
    assert law.half_width(0.95) == half_width(SIZE, 0.95)


def test_a_law_says_how_long_a_vector_units_pay_for() -> None:
    """A Gaussian's charge is solved for the norm; the steps of Laplace noise are found by search."""
    assert Gaussian(SIZE).longest(UNITS_PER_RHO // 2) == SIZE
    assert LAPLACE.longest(10**9) == longest_steps(PRICES, 10**9, SIZE)


def test_two_laws_are_equal_by_their_words_and_size() -> None:
    """So what is kept by a law is found again, and a table is kept once."""
    again, other = Laplace.priced(SIZE, "zcdp", PRICES), Laplace.priced(SIZE, "pure", laplace_prices_of("pure"))
    assert (again, hash(again)) == (LAPLACE, hash(LAPLACE))
    assert len({LAPLACE, again, other, Gaussian(SIZE), PrepaidGaussian(SIZE, tick=1)}) == 4


@pytest.mark.parametrize("size", [0.29, 2.0**32 * 1.01])
def test_a_scale_that_cannot_be_drawn_has_no_prices(size: float) -> None:
    """The refusal is that of the accounting."""
    with pytest.raises(ValueError, match="scale_steps"):
        Laplace.priced(size, "zcdp", PRICES)
