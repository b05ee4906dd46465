"""Releases with their noise drawn, and their individuals as lists, whatever the form of the blocks."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from service.arrays import Integers
from service.core.charge import charge_units
from service.core.noise import Entropy, rounded_gaussian
from service.core.release import Block, QueryTerms, Release
from service.core.release import answer as answer_with
from service.core.renyi_filter import Accounts, Touched


def answer(
    contributions: Iterable[Block],
    accounts: Accounts,
    terms: QueryTerms,
    *,
    entropy: Entropy,
    dropped: Callable[[Touched], NDArray[np.uint8]] | None = None,
) -> Release:
    """The core's answer, with noise of this entropy."""
    noise = rounded_gaussian(terms.dimension, terms.law.size_steps, entropy)
    return answer_with(contributions, accounts, terms, noise=noise, dropped=dropped)


def touched_in(release: Release) -> Integers:
    """The slots touched, (k,) increasing."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(block.touched.slots() for block in release.blocks)])


def charged_in(release: Release) -> Integers:
    """The slots charged, (a,) increasing."""
    slots = [block.touched.slots(block.active) for block in release.blocks]
    return np.concatenate([np.empty(0, dtype=np.int64), *slots])


def left_out_in(release: Release) -> Integers:
    """The slots touched and not charged, increasing."""
    return np.setdiff1d(touched_in(release), charged_in(release))


def norms_squared_in(release: Release) -> Integers:
    """The squared norm of each slot touched, (k,) grid steps."""
    norms = [block.norms_squared[_marks(block.touched.marks, block.touched.size)] for block in release.blocks]
    return np.concatenate([np.empty(0, dtype=np.int64), *norms]).astype(np.int64)


def charges_in(release: Release, sigma_steps: float) -> Integers:
    """The charge of each slot charged, (a,) units."""
    norms = [block.norms_squared[block.active] for block in release.blocks]
    return charge_units(np.concatenate([np.empty(0, dtype=np.int64), *norms]).astype(np.int64), sigma_steps)


def _marks(marks: NDArray[np.bool_] | None, size: int) -> NDArray[np.bool_]:
    return np.ones(size, dtype=np.bool_) if marks is None else marks
