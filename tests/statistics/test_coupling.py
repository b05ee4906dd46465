"""Bit for bit, each sampler is the transform that mpmath computes from the same strings: no mismatch at any scale."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from service.core.laplace import rounded_laplace
from service.core.noise import SIGMA_STEPS_MAX, SIGMA_STEPS_MIN, rounded_gaussian
from tests.core.box_muller import Pair, elementary, rounded, standard_pair
from tests.core.injected import extended_by, seeded
from tests.core.laplace_numbers import drawn
from tests.rotation import times

SIGMAS = [SIGMA_STEPS_MIN, 0.75, 20.0, 1000.0, 2.0**24, SIGMA_STEPS_MAX]
RANDOM_PAIRS = times(4_000, 10_000)
RANDOM_WORDS = times(1_000, 3_000)
# Ends of the range, ends of the certified range, octants of the circle, and where a double begins to round.
STRUCTURED = sorted(
    {0, 1, 2**20, 2**64 - 1, 2**64 - 2, 2**64 - 2**10, 2**64 - 2**11, 2**64 - 2**12, 0xAAAAAAAAAAAAAAAA}
    | {edge + step for edge in (2**44, 2**64 - 2**47, 2**53, 2**54) for step in (-1, 0, 1)}
    | {eighth * 2**61 + step for eighth in range(1, 8) for step in (-1, 0, 1)}
)


def mismatches(words: NDArray[np.uint64], extension: int, expected: list[Pair], *, scale: float = 1.0) -> list[int]:
    """How many pairs differ from mpmath's at each sigma, were the sampler's sigma off by a factor of scale."""
    found = []
    for sigma in SIGMAS:
        draws = rounded_gaussian(words.size, sigma, extended_by(words.reshape(-1), extension)).reshape(2, -1)
        drawn = zip(*draws.tolist(), strict=True)
        found.append(sum(rounded(pair, sigma / scale) != here for pair, here in zip(expected, drawn, strict=True)))
    return found


def transformed(words: NDArray[np.uint64], extension: int) -> list[Pair]:
    """The pairs of these first words, each string going on with one word as far as the sampler reads."""
    more = [extension, extension]
    return [standard_pair([one, *more], [other, *more]) for one, other in words.T.tolist()]


def test_random_words_give_what_mpmath_gives() -> None:
    """At six sigmas; a sigma off by one per cent, in the same comparison of half the pairs, differs at every one."""
    words = seeded(31)(2 * RANDOM_PAIRS).reshape(2, -1)
    extension = 0x9E3779B97F4A7C15
    expected = transformed(words, extension)

    assert mismatches(words, extension, expected) == [0] * len(SIGMAS)
    half = RANDOM_PAIRS // 2
    assert min(mismatches(words[:, :half].copy(), extension, expected[:half], scale=1.01)) > 0


@pytest.mark.parametrize("extension", [1, 2**63, 2**64 - 1])
def test_structured_words_give_what_mpmath_gives(extension: int) -> None:
    """Every pair of words where floats, logarithms or angles are at an edge, going on near 0, near 1/2 and near 1."""
    words = np.array(list(product(STRUCTURED, STRUCTURED)), dtype=np.uint64).T.copy()

    assert mismatches(words, extension, transformed(words, extension)) == [0] * len(SIGMAS)


@pytest.mark.parametrize("name", ["log", "cos", "sin"])
def test_the_elementary_functions_err_by_a_sixteenth_of_what_the_sampler_allows(name: str) -> None:
    """The certificate allows 64 units in the last place; on the machine that runs this, 4 are not exceeded."""
    words = np.concatenate([seeded(32)(RANDOM_PAIRS), np.array(STRUCTURED, dtype=np.uint64)])
    uniforms = (words.astype(np.float64) + 0.5) * 2.0**-64
    arguments = uniforms if name == "log" else words.view(np.int64) * (np.pi * 2.0**-63)

    found = getattr(np, name)(arguments)

    for argument, number in zip(arguments.tolist(), found.tolist(), strict=True):
        error = abs(elementary(name, argument) - number)
        assert error <= 4 * np.spacing(abs(number))


@pytest.mark.parametrize("extension", [1, 0x9E3779B97F4A7C15, 2**64 - 1])
def test_laplace_draws_are_what_mpmath_gives(extension: int) -> None:
    """Random words and those at an edge, with either sign; a scale off by one per cent differs."""
    structured = np.array([word >> 1 | sign << 63 for word in STRUCTURED for sign in (0, 1)], dtype=np.uint64)
    words = np.concatenate([seeded(33)(RANDOM_WORDS), structured])
    for scale in SIGMAS:
        found = rounded_laplace(words.size, scale, extended_by(words, extension)).tolist()
        expected = [drawn([word, extension, extension], scale) for word in words.tolist()]
        assert found == expected
        off = min(1.01 * scale, SIGMA_STEPS_MAX) if scale < SIGMA_STEPS_MAX else 0.99 * scale
        assert rounded_laplace(words.size, off, extended_by(words, extension)).tolist() != expected
