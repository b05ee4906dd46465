"""Entropy that repeats: seeded words for the laws of large numbers, written words for single pairs."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from service.core.noise import Entropy


def seeded(seed: int) -> Entropy:
    """Words of a seeded generator: random enough for a statistical test, and the same in every run."""
    return np.random.PCG64(seed).random_raw


def written(words: Iterable[int]) -> Entropy:
    """The given words in order; running out of them raises StopIteration."""
    left = iter(words)

    def entropy(count: int) -> NDArray[np.uint64]:
        return np.array([next(left) for _ in range(count)], dtype=np.uint64)

    return entropy


def extended_by(first: NDArray[np.uint64], extension: int) -> Entropy:
    """The given words first, then one word for ever: whichever pair is refined, its strings go on in the same way."""
    calls = iter([first])

    def entropy(count: int) -> NDArray[np.uint64]:
        return next(calls, np.full(count, extension, dtype=np.uint64))

    return entropy


class Counting:
    """Entropy that remembers how many words each call asked for."""

    def __init__(self, entropy: Entropy) -> None:
        self.entropy = entropy
        self.asked: list[int] = []

    def __call__(self, count: int) -> NDArray[np.uint64]:
        """Draw `count` words of the source behind."""
        self.asked.append(count)
        return self.entropy(count)
