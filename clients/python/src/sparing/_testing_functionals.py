"""Linear functionals of a column: a weight for each listed value, one by one or as a sparse matrix of many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import frexp

from sparing._testing_problems import invalid, quoted
from sparing._testing_scale import STEPS_MIN, Extent
from sparing._testing_schema import REAL_BITS
from sparing._testing_shapes import entries_of, members_of, number_of, whole_of
from sparing._testing_values import Number, Value, position_of

__all__ = ["WEIGHTS_MAX", "Functionals", "matrix_of", "positions_of", "refuse_repeated", "weights_of"]

WEIGHTS_MAX = 2**15
ENTRIES_MAX = 2**16
STARTS_MAX = 2**20 + 1
REAL_MAX = 1e30
WHOLE_MAX = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Functionals:
    """Functionals by value: the weight of each value in those that it weighs in, on steps."""

    size: int
    weights: Mapping[Number, Sequence[tuple[int, Number]]]
    extent: Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One weight, exact and on steps."""

    functional: int
    position: Number
    weight: Fraction
    rounded: Fraction


def weights_of(body: object, value: Value, field: str) -> Functionals:
    """One functional. Raises Refused naming the field."""
    asked = members_of(body, field, required=["indices", "values"])
    literals, numbers = _pairs(asked, field, most=WEIGHTS_MAX)
    positions = positions_of(literals, value, f"{field}.indices")
    refuse_repeated(positions, literals, f"{field}.indices")
    entries, step_log2 = _rounded([0] * len(numbers), positions, numbers)
    weights = {entry.position: [(0, entry.rounded)] for entry in entries}
    return Functionals(size=1, weights=weights, extent=_extent(entries, step_log2))


def matrix_of(body: object, value: Value, field: str) -> Functionals:
    """Many functionals: number n has the entries from starts[n] up to starts[n + 1]. Raises Refused."""
    asked = members_of(body, field, required=["starts", "indices", "values"])
    starts = [
        whole_of(each, f"{field}.starts[{place}]", least=0, most=ENTRIES_MAX)
        for place, each in enumerate(entries_of(asked["starts"], f"{field}.starts", most=STARTS_MAX))
    ]
    literals, numbers = _pairs(asked, field, most=ENTRIES_MAX)
    if starts[0] != 0 or starts[-1] != len(literals):
        raise invalid(field, "must have starts from 0 to the number of indices")
    if any(start > end for start, end in pairwise(starts)):
        raise invalid(field, "must have starts that never decrease")
    positions = positions_of(literals, value, f"{field}.indices")
    owners = [number for number, (start, end) in enumerate(pairwise(starts)) for _ in range(start, end)]
    refuse_repeated(list(zip(owners, positions, strict=True)), literals, f"{field}.indices")
    entries, step_log2 = _rounded(owners, positions, numbers)
    least = _least(entries, step_log2, f"{field}.values")
    weights: dict[Number, list[tuple[int, Number]]] = {}
    for entry in entries:
        if entry.rounded != 0:
            weights.setdefault(entry.position, []).append((entry.functional, entry.rounded))
    vectors = tuple(tuple(Fraction(weight) for _, weight in each) for each in weights.values())
    extent = _extent(entries, step_log2, vectors=vectors, least=least)
    return Functionals(size=len(starts) - 1, weights=weights, extent=extent)


def positions_of(literals: Sequence[object], value: Value, field: str) -> list[Number]:
    """Literals as values of a column. Raises Refused for one that is none."""
    positions = []
    for place, literal in enumerate(literals):
        position = position_of(literal, value, f"{field}[{place}]")
        if position != int(position) or not value.low <= position <= value.high:
            raise invalid(f"{field}[{place}]", f"is no value of the column: {quoted(literal)}")
        positions.append(position)
    return positions


def refuse_repeated(keys: Sequence[object], literals: Sequence[object], field: str) -> None:
    """Raises Refused for a literal that is listed again."""
    seen = set()
    for place, key in enumerate(keys):
        if key in seen:
            raise invalid(f"{field}[{place}]", f"is listed a second time: {quoted(literals[place])}")
        seen.add(key)


def _pairs(asked: Mapping[str, object], field: str, *, most: int) -> tuple[Sequence[object], list[Fraction]]:
    """The literals and their weights."""
    literals = entries_of(asked["indices"], f"{field}.indices", most=most)
    values = entries_of(asked["values"], f"{field}.values", most=most)
    if len(literals) != len(values):
        raise invalid(field, "must have as many values as indices")
    return literals, [
        Fraction(number_of(each, f"{field}.values[{place}]", least=-REAL_MAX, most=REAL_MAX))
        for place, each in enumerate(values)
    ]


def _rounded(
    owners: Sequence[int], positions: Sequence[Number], numbers: Sequence[Fraction]
) -> tuple[list[_Entry], int]:
    """Whole weights exactly; others in steps of which the largest has more than 2^51."""
    step_log2 = 0
    if any(number.denominator != 1 or abs(number) >= WHOLE_MAX for number in numbers):
        mantissa, exponent = frexp(max(abs(float(number)) for number in numbers))
        step_log2 = exponent - REAL_BITS - (mantissa == 0.5)
    step = Fraction(2) ** step_log2
    entries = [
        _Entry(functional=owner, position=position, weight=number, rounded=round(number / step) * step)
        for owner, position, number in zip(owners, positions, numbers, strict=True)
    ]
    return entries, step_log2


def _least(entries: Sequence[_Entry], step_log2: int, field: str) -> Fraction:
    """The largest weight of the functional where that is smallest. Raises Refused for one lost in rounding."""
    largest: dict[int, Fraction] = {}
    for entry in entries:
        if entry.weight != 0:
            before = largest.get(entry.functional, Fraction())
            largest[entry.functional] = max(before, abs(entry.rounded))
    if not largest:
        raise invalid(field, "must not all be zero")
    lost = [number for number in sorted(largest) if largest[number] < STEPS_MIN * Fraction(2) ** step_log2]
    if step_log2 != 0 and lost:
        raise invalid(field, f"of functional {lost[0]} would be lost in rounding beside the others")
    return min(largest.values())


def _extent(
    entries: Sequence[_Entry],
    step_log2: int,
    *,
    vectors: tuple[tuple[Fraction, ...], ...] = (),
    least: Fraction | None = None,
) -> Extent:
    numbers = [Fraction(), *(entry.rounded for entry in entries)]
    is_whole = all(entry.weight.denominator == 1 and abs(entry.weight) < WHOLE_MAX for entry in entries)
    return Extent(
        low=min(numbers), high=max(numbers), step_log2=step_log2, is_whole=is_whole, vectors=vectors, least=least
    )
