"""Draws are independent of one another, within a pair, from pair to pair and from answer to answer."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from service.core.noise import rounded_gaussian
from service.store.entropy import system_entropy
from tests.core.injected import seeded
from tests.statistics.goodness import independence

COUNT = 2**20
SIGMA = 1000.0
CHUNK = 2**16

Sample = NDArray[np.int64]


def halves_of_chunks(draws: Sample) -> tuple[Sample, Sample]:
    """The cosines and the sines of the same pairs."""
    chunks = draws.reshape(-1, 2, CHUNK // 2)
    return chunks[:, 0].reshape(-1), chunks[:, 1].reshape(-1)


def neighbours(draws: Sample) -> tuple[Sample, Sample]:
    """Each draw and the one after it."""
    return draws[:-1:2], draws[1::2]


def chunks(draws: Sample) -> tuple[Sample, Sample]:
    """Draws at the same place of two chunks."""
    rows = draws.reshape(-1, 2, CHUNK)
    return rows[:, 0].reshape(-1), rows[:, 1].reshape(-1)


@pytest.mark.parametrize("split", [halves_of_chunks, neighbours, chunks])
def test_draws_of_one_answer_are_independent(split: Callable[[Sample], tuple[Sample, Sample]]) -> None:
    """A million seeded draws, two at a time."""
    assert independence(*split(rounded_gaussian(COUNT, SIGMA, seeded(21)))) > 1e-4


def test_answers_from_one_source_are_independent() -> None:
    """Asking again does not tell what the noise was the first time."""
    entropy = seeded(22)

    one, other = (rounded_gaussian(COUNT, SIGMA, entropy) for _ in range(2))

    assert independence(one, other) > 1e-4


def test_one_reused_draw_in_a_hundred_is_noticed() -> None:
    """The test rejects answers that share a hundredth of their noise, with either sign."""
    one, other = (rounded_gaussian(COUNT, SIGMA, seeded(seed)) for seed in (23, 24))
    for sign in (1, -1):
        other[::100] = sign * one[::100]
        assert independence(one, other) < 1e-12


def test_the_systems_words_give_independent_answers_too() -> None:
    """These cannot be seeded, so the level is one in a billion."""
    one, other = (rounded_gaussian(COUNT, SIGMA, system_entropy) for _ in range(2))

    assert independence(one, other) > 1e-9
