"""A sparse matrix of weights in whole steps, by the values that have weights, and the bounds that follow from it.

A row of the table adds the entries of one value, which are a vector over the functionals. What a row can cost follows
from the longest of these vectors. The largest weight times the root of the number of functionals would be a looser
bound.
"""

from dataclasses import dataclass
from math import frexp

import numpy as np

from service.arrays import Integers, Reals
from service.query.columns import REAL_BITS
from service.query.extents import STEPS_MIN, Extent, Vectors

WHOLE_MAX = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseMatrix:
    """Weights by value. The n-th value has the entries from `starts[n]` to `starts[n + 1]` - 1, at least one entry."""

    starts: tuple[int, ...]
    functionals: tuple[int, ...]  # of each entry; increasing within a value
    steps: tuple[int, ...]  # of each entry; never zero
    step_log2: int
    is_whole: bool
    most: int  # entries of one value
    least: int  # the largest absolute step of the functional where that is smallest, of those that are not zero

    @property
    def extent(self) -> Extent:
        """The vectors that one row may add."""
        return Extent(
            low=min(0, *self.steps),
            high=max(0, *self.steps),
            step_log2=self.step_log2,
            integral=self.is_whole,
            vectors=Vectors(starts=np.array(self.starts[:-1]), entries=np.array(self.steps)),
            least=self.least,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triples:
    """The entries of a matrix (n of them) in any order, no two in one place, with the weights as asked."""

    functionals: Integers  # (n,)
    codes: Integers  # (n,) of the values
    weights: Reals  # (n,)


def matrix_of(triples: Triples) -> tuple[tuple[int, ...], SparseMatrix]:
    """The codes of the values with weights, increasing, and the matrix by these values.

    Whole weights are exact. Others are rounded to steps of which the largest weight has more than 2^51. Raises
    ValueError if all weights are zero, and for a functional that this rounding would lose beside the others.
    """
    step_log2 = step_log2_of(triples.weights)
    steps = np.rint(np.ldexp(triples.weights, -step_log2)).astype(np.int64)
    largest = _largest(triples.functionals, steps)
    asked = np.unique(triples.functionals[triples.weights != 0])
    if asked.size == 0:
        raise ValueError("must not all be zero")
    if not is_whole(triples.weights) and (lost := asked[largest[asked] < STEPS_MIN]).size > 0:
        raise ValueError(f"of functional {lost[0]} would be lost in rounding beside the others")
    order = np.lexsort((triples.functionals, triples.codes))
    order = order[steps[order] != 0]
    codes, starts = np.unique(triples.codes[order], return_index=True)
    counts = np.diff(starts, append=order.size)
    return tuple(codes.tolist()), SparseMatrix(
        starts=(*starts.tolist(), order.size),
        functionals=tuple(triples.functionals[order].tolist()),
        steps=tuple(steps[order].tolist()),
        step_log2=step_log2,
        is_whole=is_whole(triples.weights),
        most=int(counts.max()),
        least=int(largest[asked].min()),
    )


def is_whole(weights: Reals) -> bool:
    """Tell whether all weights are whole numbers that a double holds exactly."""
    return bool(np.all((np.rint(weights) == weights) & (np.abs(weights) < WHOLE_MAX)))


def step_log2_of(weights: Reals) -> int:
    """The exponent of the step: 0 for whole numbers, or that of a real column with the largest weight as its bound."""
    if is_whole(weights):
        return 0
    mantissa, exponent = frexp(float(np.abs(weights).max()))
    return exponent - REAL_BITS - (mantissa == 0.5)


def _largest(functionals: Integers, steps: Integers) -> Integers:
    """The largest absolute step of each functional."""
    largest = np.zeros(int(functionals.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(largest, functionals, np.abs(steps))
    return largest
