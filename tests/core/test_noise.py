"""The sampler is a function of its bits: the rounded Box-Muller transform, whatever the floats make of it."""

import math
from collections.abc import Callable
from decimal import localcontext

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core import noise
from service.core.laplace import rounded_laplace
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN, Entropy, EntropyFailure, rounded_gaussian
from tests.core.box_muller import number, rounded, standard_pair, words_of_radius, words_of_sine
from tests.core.injected import Counting, extended_by, seeded, written

Sampler = Callable[[int, float, Entropy], NDArray[np.int64]]

SIGMAS = [SIGMA_STEPS_MIN, 0.75, 3.0, 1000.0, 2.0**24, SIGMA_STEPS_MAX]
ZEROS = [0, 0, 0]
ALONE = 8  # pairs up to here are drawn one by one
PLAIN = 0x2545F4914F6CDD1D
WORDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([2**k + d for k in range(1, 64) for d in (-1, 0, 1)]),
    st.integers(0, 63).map(lambda k: 2**64 - 2**k),
)


def interleaved(first: list[int], second: list[int]) -> list[int]:
    """The words of one pair's two strings in the order in which the sampler asks for them."""
    return [word for pair in zip(first, second, strict=True) for word in pair]


def in_company(first: list[int], second: list[int], company: int) -> list[int]:
    """The words of a pair as the first of `1 + company` pairs, none of the others in doubt."""
    words = [first[0], *[PLAIN] * company, second[0], *[PLAIN] * company]
    return [*words, *interleaved(first[1:], second[1:])]


@given(st.tuples(WORDS, WORDS), st.lists(st.integers(1, 2**64 - 1), min_size=4, max_size=4), st.sampled_from(SIGMAS))
def test_a_pair_is_the_rounded_transform_of_its_strings(words: tuple[int, int], more: list[int], sigma: float) -> None:
    """Any first words, words at the ends of the range included, with any words after them."""
    first, second = [words[0], *more[:2]], [words[1], *more[2:]]

    pair = rounded_gaussian(2, sigma, written(interleaved(first, second)))

    assert tuple(pair.tolist()) == rounded(standard_pair(first, second), sigma)


@given(
    st.lists(st.tuples(WORDS, WORDS), min_size=ALONE + 1, max_size=ALONE + 4),
    st.integers(1, 2**64 - 1),
    st.sampled_from(SIGMAS),
)
def test_pairs_side_by_side_are_each_what_it_is_alone(
    pairs: list[tuple[int, int]], extension: int, sigma: float
) -> None:
    """Few pairs are worked out by other floats than many; what is certain of the one is certain of the other."""
    firsts, seconds = zip(*pairs, strict=True)

    drawn = rounded_gaussian(2 * len(pairs), sigma, extended_by(np.array([*firsts, *seconds], np.uint64), extension))

    alone = [rounded_gaussian(2, sigma, extended_by(np.array(pair, np.uint64), extension)) for pair in pairs]
    assert drawn.reshape(2, -1).T.tolist() == [pair.tolist() for pair in alone]


@pytest.mark.parametrize("company", [0, ALONE])
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("radius", [0.6, 1.7, 4.0])
@pytest.mark.parametrize(("bits", "refinements"), [(100, 1), (140, 2)])
def test_a_number_next_to_a_half_is_decided_by_the_words_that_follow(
    sigma: float, radius: float, bits: int, refinements: int, company: int
) -> None:
    """2^-100 to one side of k + 1/2 takes a second word, 2^-140 a third; either side comes out right."""
    steps = int(sigma * radius)
    for side, expected in ((-1, steps), (1, steps + 1)):
        first = words_of_radius(number("0.5") + steps, sigma, shift=side * number(2) ** -bits)
        entropy = Counting(written(in_company(first, ZEROS, company)))

        pair = rounded_gaussian(2 + 2 * company, sigma, entropy)[:: 1 + company].tolist()

        assert pair == [expected, 0]
        assert tuple(pair) == rounded(standard_pair(first, ZEROS), sigma)
        assert entropy.asked == [2 + 2 * company] + [2] * refinements


def test_both_numbers_of_a_pair_share_the_refinement() -> None:
    """With cos = sin both are next to the same half at once, and the same words decide them, on the same side."""
    eighth = [2**61, 0, 0]
    for side, expected in ((-1, 7), (1, 8)):
        first = words_of_radius(number("7.5") * number(2) ** 0.5, 10.0, shift=side * number(2) ** -90)
        entropy = Counting(written(interleaved(first, eighth)))

        assert rounded_gaussian(2, 10.0, entropy).tolist() == [expected, expected]
        assert entropy.asked == [2, 2]


@pytest.mark.parametrize("company", [0, ALONE])
@pytest.mark.parametrize("sigma", [2.0**24, SIGMA_STEPS_MAX])
def test_an_angle_next_to_a_half_is_decided_by_the_words_that_follow(sigma: float, company: int) -> None:
    """So small an angle that its sine is half a step: the undrawn bits of U2 decide, those of U1 hardly matter."""
    first = [2**63, 0, 0]
    for side, expected in ((-1, 0), (1, 1)):
        second = words_of_sine(first, sigma, shift=side * number(2) ** -110)
        entropy = Counting(written(in_company(first, second, company)))

        drawn = rounded_gaussian(2 + 2 * company, sigma, entropy)[:: 1 + company].tolist()

        assert drawn[1] == expected
        assert tuple(drawn) == rounded(standard_pair(first, second), sigma)
        assert entropy.asked == [2 + 2 * company, 2, 2]


def test_words_are_asked_for_by_chunks_and_an_odd_draw_wastes_half_a_pair() -> None:
    """2^16 draws at a time keep the temporaries in cache; the number of draws is the number asked for."""
    entropy = Counting(seeded(1))

    assert rounded_gaussian(2**16 + 3, 3.0, entropy).shape == (2**16 + 3,)
    assert entropy.asked == [2**16, 4]


def test_draws_of_one_count_begin_those_of_no_other() -> None:
    """Cosines come first and sines after them, within a chunk."""
    words = seeded(5)(6).tolist()
    pairs = [
        rounded(standard_pair([one, 0], [other, 0]), 100.0) for one, other in zip(words[:3], words[3:], strict=True)
    ]

    cosines, sines = zip(*pairs, strict=True)

    assert rounded_gaussian(6, 100.0, written(words)).tolist() == [*cosines, *sines]
    assert rounded_gaussian(5, 100.0, written(words)).tolist() == [*cosines, *sines[:2]]


def test_a_stuck_source_is_an_error_and_not_an_endless_loop() -> None:
    """Zeros for ever are the one string on which ln U1 is infinite."""
    with pytest.raises(EntropyFailure, match="repeats itself"):
        rounded_gaussian(1, 1.0, lambda count: np.zeros(count, dtype=np.uint64))


SAMPLERS = pytest.mark.parametrize("sampler", [rounded_gaussian, rounded_laplace])


@SAMPLERS
@pytest.mark.parametrize("words", [np.zeros(1, dtype=np.uint64), np.zeros(2, dtype=np.int64), np.zeros(2)])
def test_words_that_are_not_those_asked_for_are_an_error(sampler: Sampler, words: NDArray[np.uint64]) -> None:
    """Too few words, or words of another kind, would be noise of another law."""
    with pytest.raises(EntropyFailure, match="asked for"):
        sampler(2, 1.0, lambda _count: words)


@pytest.mark.parametrize("sigma", [math.nan, 0.0, -1.0, 0.29, math.inf, math.nextafter(SIGMA_STEPS_MAX, math.inf)])
def test_a_sigma_outside_the_certified_range_is_refused(sigma: float) -> None:
    """The error bound is proved for the range alone."""
    with pytest.raises(ValueError, match="sigma_steps"):
        rounded_gaussian(1, sigma, seeded(1))


@SAMPLERS
def test_no_draws_are_no_request(sampler: Sampler) -> None:
    """A query has at least one coordinate."""
    with pytest.raises(ValueError, match="count"):
        sampler(0, 1.0, seeded(1))


def test_the_decimal_constants_are_those_of_mathematics() -> None:
    """Pi to every digit that is used, and the Taylor series over the whole circle."""
    reals = mpmath.MPContext()
    reals.dps = 130
    assert abs(reals.mpf(str(noise._PI)) - reals.pi) < reals.mpf(10) ** -105
    with localcontext(noise.DECIMAL):
        for place in range(9):
            angle = noise._PI * place / 4
            cosine, sine = noise._cos_sin(angle)
            assert abs(reals.mpf(str(cosine)) - reals.cos(reals.mpf(str(angle)))) < reals.mpf(10) ** -95
            assert abs(reals.mpf(str(sine)) - reals.sin(reals.mpf(str(angle)))) < reals.mpf(10) ** -95
