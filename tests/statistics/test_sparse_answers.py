"""Accuracy for those whom few queries concern: Feldman and Zrnic 2021, Theorem 1.2 and Corollary 4.7, clause 2.

Sessions under the drop rule are asked by an analyst that chooses its queries by the answers. The variance of the noise
is B / (2 kappa). An answer is farther from the sum over S_t than sqrt(B ln(d / delta) / kappa) with probability at most
delta, where S_t are those whose squared norms so far add up to B at most. S_t is found here from the vectors alone.
Proposition 2.9 of the first version is the same for queries that are fixed beforehand.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from service.core.charge import UNITS_PER_RHO
from service.core.laws import Gaussian
from service.core.noise import Entropy, rounded_gaussian
from service.core.release import Contributions, QueryTerms, answer
from service.core.renyi_filter import Accounts, Touched
from tests.core.injected import seeded
from tests.core.releases import left_out_in

PEOPLE, QUERIES, STEPS, SESSIONS = 48, 16, 8, 250
ANSWERS: Final = SESSIONS * STEPS
GRID: Final = 2**16
"""The steps of the grid in the unit of the queries: the rounding of the noise moves sigma by less than a millionth."""
KAPPA: Final = 1 / 8
P_MIN: Final = 1e-6
LOUDER: Final = 1.25
"""A wrong law: noise of a deviation so many times as large as it is said to be."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The queries of a statement, which has a budget of squared norms, and the choice of the next one."""

    dimension: int
    budget: int
    largest: int
    is_adaptive: bool

    @property
    def sigma(self) -> float:
        """A power of two, in the unit of the queries, so that charges are whole units and no equality is missed."""
        return sqrt(self.budget / (2 * KAPPA))

    @property
    def vectors(self) -> NDArray[np.int64]:
        """The values (queries, people, dimension) of all queries, from 0 to the largest number."""
        source = np.random.default_rng([self.dimension, self.budget])
        return source.integers(0, self.largest, (QUERIES, PEOPLE, self.dimension), endpoint=True)

    def bound(self, delta: float) -> float:
        """The error that is exceeded with probability delta at most."""
        return sqrt(self.budget * log(self.dimension / delta) / KAPPA)

    def exceeded(self, delta: float, *, louder: float = 1.0) -> float:
        """The exact probability that the noise alone exceeds the bound in some coordinate."""
        inside = 1 - 2 * stats.norm.sf(self.bound(delta) / (louder * self.sigma))
        return float(1 - inside**self.dimension)


STATEMENTS: Final = {
    "Theorem 1.2": Statement(dimension=1, budget=4, largest=1, is_adaptive=True),
    "Corollary 4.7": Statement(dimension=3, budget=16, largest=2, is_adaptive=True),
    "Proposition 2.9": Statement(dimension=1, budget=16, largest=3, is_adaptive=False),
}


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The largest error of each answer, in the unit of the queries, and whether S_t was no longer everybody."""

    within: NDArray[np.float64]  # (answers,) against the sum over S_t
    everybody: NDArray[np.float64]  # (answers,) against the sum over all
    is_partial: NDArray[np.bool_]  # (answers,)


def block_of(vectors: NDArray[np.int64]) -> Contributions:
    """The vectors (people, dimension) of those who have one that is not zero."""
    touched = np.flatnonzero(vectors.any(axis=1))
    own = vectors[touched]
    return Contributions(
        touched=Touched(touched),
        norms_squared=(own**2).sum(axis=1),
        dimension=vectors.shape[1],
        owners=np.repeat(np.arange(touched.size), vectors.shape[1]),
        coordinates=np.tile(np.arange(vectors.shape[1]), touched.size),
        values=own.reshape(-1),
    )


def asked(statement: Statement, *, louder: float = 1.0, seed: int = 7) -> Errors:
    """All sessions, one after another on one source of noise."""
    entropy, vectors = seeded(seed), statement.vectors
    found = [each for _ in range(SESSIONS) for each in session(statement, vectors, entropy, louder)]
    within, everybody, is_partial = (np.array(column) for column in zip(*found, strict=True))
    return Errors(within=within, everybody=everybody, is_partial=is_partial)


def session(
    statement: Statement, vectors: NDArray[np.int64], entropy: Entropy, louder: float
) -> list[tuple[float, float, bool]]:
    """The errors of the answers of one session."""
    sigma = statement.sigma * GRID
    terms = QueryTerms(dimension=statement.dimension, law=Gaussian(sigma), norm_squared_max=2**62)
    limits = np.full(PEOPLE, int(KAPPA * UNITS_PER_RHO))
    accounts = Accounts.of(spent=np.zeros_like(limits), limits=limits, paused=np.zeros(PEOPLE, dtype=np.bool_))
    gone, norms = np.zeros(PEOPLE, dtype=np.uint8), np.zeros(PEOPLE, dtype=np.int64)
    found, number = [], 0
    for step in range(STEPS):
        asked_for = vectors[number]
        noise = rounded_gaussian(statement.dimension, louder * sigma, entropy)
        release = answer(
            [block_of(asked_for * GRID)], accounts, terms, noise=noise, dropped=lambda touched: gone[touched.index]
        )
        gone[left_out_in(release)] = 1
        norms += (asked_for**2).sum(axis=1)
        kept = norms <= statement.budget
        errors = (np.abs(release.values / GRID - asked_for[who].sum(axis=0)).max() for who in (kept, slice(None)))
        found.append((*errors, not kept.all()))
        number = (number + 1 + int(release.values[0] > 0)) % QUERIES if statement.is_adaptive else step + 1
    return found


def p_value(errors: NDArray[np.float64], statement: Statement, delta: float) -> float:
    """The probability of so many errors beyond the bound, or more, if only the noise makes them."""
    beyond = np.count_nonzero(errors > statement.bound(delta))
    return float(stats.binom.sf(beyond - 1, errors.size, statement.exceeded(delta)))


@pytest.mark.parametrize("name", STATEMENTS)
def test_answers_are_near_the_sum_over_those_within_the_norm_budget(name: str) -> None:
    """At each step and in all, at two deltas; the sums over everybody, or louder noise, are seen to be farther off."""
    statement = STATEMENTS[name]
    errors, loud = asked(statement), asked(statement, louder=LOUDER)
    assert errors.is_partial.mean() > 1 / 3
    for delta in (0.5, 0.1):
        assert statement.exceeded(delta) <= delta
        assert p_value(errors.within, statement, delta) > P_MIN
        for step in range(STEPS):
            assert p_value(errors.within[step::STEPS], statement, delta) > P_MIN
        assert p_value(errors.everybody, statement, delta) < P_MIN
        assert p_value(loud.within, statement, delta) < P_MIN


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("delta", [0.5, 0.1])
def test_so_many_answers_tell_a_wrong_law(name: str, delta: float) -> None:
    """The noise that is a quarter louder is missed with probability P_MIN at most."""
    statement = STATEMENTS[name]
    most = stats.binom.isf(P_MIN, ANSWERS, statement.exceeded(delta))
    assert stats.binom.cdf(most, ANSWERS, statement.exceeded(delta, louder=LOUDER)) < P_MIN
