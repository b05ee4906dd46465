"""The parameters of a linear model as numbers: listed or known by their hash, of the right shape, in whole steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import frexp
from typing import Final

import numpy as np

from service.arrays import Integers, Reals
from service.query.features import FeatureMap
from service.query.parameters_ast import HASHES_MAX, PARAMETERS_MAX, HashedParameters, is_unknown
from service.query.problems import QueryProblem
from service.query.schema import REAL_MAX

UNKNOWN_HASH: Final = "are not known by this hash; send the numbers"
ARGUMENT_MAX: Final = 2**52
"""The most steps of a prediction's argument: a double holds every sum exactly, in any order."""

Given = Sequence[float] | Sequence[Sequence[float]] | HashedParameters
"""The parameters in the forms that a query may give them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedParameters:
    """The parameters of a model, one row for each class."""

    classes: int
    packed: bytes  # (classes, features) as int64, in steps

    @property
    def parameters(self) -> Integers:
        """The parameters (classes, features) in their steps."""
        return np.frombuffer(self.packed, dtype=np.int64).reshape(self.classes, -1)


def parameter_rows(given: Given, classes: int | None, size: int, *, field: str, of: str) -> Reals:
    """The parameters of `size` features: a row for each class, or one row without classes. Raises QueryProblem."""
    if isinstance(given, HashedParameters):
        return _known(given, (size,) if classes is None else (classes, size), field).reshape(-1, size)
    by_class = isinstance(given[0], tuple)
    rows = [row for row in given if isinstance(row, tuple)] if by_class else [_numbers(given)]
    if classes is not None and (len(rows) != classes or not by_class):
        raise QueryProblem.of(field, f"must be {classes} lists, one for each value of the target")
    if classes is None and by_class:
        raise QueryProblem.of(field, f"must be one list of numbers for {of}")
    for place, row in enumerate(rows):
        if len(row) != size:
            at = field if classes is None else f"{field}[{place}]"
            raise QueryProblem.of(at, f"must have {size} numbers, one for each feature, not {len(row)}")
    return np.array(rows, dtype=np.float64)


def parameter_steps(rows: Reals, features: FeatureMap) -> tuple[Integers, int]:
    """The parameters in steps of a power of two, and its exponent. Every argument is below 2^52 of these steps."""
    largest = float(np.abs(rows).max())
    bits = ARGUMENT_MAX.bit_length() - 1 - features.sum_max.bit_length()
    step_log2 = frexp(largest)[1] - bits if largest > 0 else 0
    return np.rint(np.ldexp(rows, -step_log2)).astype(np.int64), step_log2


def each_once(named: Iterable[HashedParameters]) -> tuple[HashedParameters, ...]:
    """The arrays that a query names by their hashes, each once. Raises QueryProblem for too many."""
    found: dict[str, HashedParameters] = {}
    for each in named:
        found.setdefault(each.sha256, each)
    if len(found) > HASHES_MAX:
        raise QueryProblem.of("body", f"names more than {HASHES_MAX} arrays of parameters by their hashes")
    if sum(len(each.numbers) for each in found.values()) > 8 * PARAMETERS_MAX:
        raise QueryProblem.of("body", f"names more than {PARAMETERS_MAX} parameters by their hashes")
    return tuple(found.values())


def _numbers(parameters: Sequence[float] | Sequence[Sequence[float]]) -> Sequence[float]:
    return [number for number in parameters if not isinstance(number, Sequence)]


def _known(given: HashedParameters, shape: tuple[int, ...], field: str) -> Reals:
    """The numbers that a hash stands for. Raises QueryProblem where they are unknown, or of another shape."""
    if is_unknown(given):
        raise QueryProblem.of(field, UNKNOWN_HASH)
    if given.shape != shape or given.array is None:
        has = f"{' x '.join(map(str, given.shape or ()))}, of {len(given.numbers) // 8} numbers"
        raise QueryProblem.of(field, f"must have the shape {' x '.join(map(str, shape))}, and has {has}")
    if not (np.abs(given.array) <= REAL_MAX).all():  # what is no number is not within it either
        raise QueryProblem.of(field, f"must be numbers from {-REAL_MAX:g} to {REAL_MAX:g}")
    return given.array
