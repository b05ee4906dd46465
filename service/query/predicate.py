"""Predicates over integer codes, in negation normal form.

A leaf is false for a NULL, but for the one that asks for it, and there is no negation: SQL's three-valued logic
selects a row if and only if its condition is TRUE, and with negations pushed down to the leaves "not true" and
"unknown" need not be told apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = [
    "All",
    "Among",
    "Conjunction",
    "Disjunction",
    "Nothing",
    "Null",
    "Predicate",
    "Within",
    "among",
    "conjunction",
    "disjunction",
    "within",
]

GAPS_MAX = 16  # up to so many ranges are cheaper to test than a list of codes
CODES_MAX = 2**16


@dataclass(frozen=True, slots=True)
class Within:
    """The column's code is at least `low` and at most `high`."""

    column: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Among:
    """The column's code is one of `codes`, which increase."""

    column: str
    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Null:
    """The column has no value."""

    column: str


@dataclass(frozen=True, slots=True)
class All:
    """Every row."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No row."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Every part holds; there are at least two, none of them `Conjunction`, `All` or `Nothing`."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """At least one part holds; there are at least two, none of them `Disjunction`, `All` or `Nothing`."""

    parts: tuple["Predicate", ...]


Predicate = Within | Among | Null | All | Nothing | Conjunction | Disjunction


def within(column: str, low: int, high: int, *, span: int) -> Predicate:
    """The rows whose code lies in a range, cut to the domain `0..span`; the whole domain still excludes NULL."""
    low, high = max(low, 0), min(high, span)
    return Within(column, low, high) if low <= high else Nothing()


def among(column: str, codes: Iterable[int], *, span: int, negated: bool = False) -> Predicate:
    """The rows whose code is one of `codes`, or with `negated` another code of the domain `0..span`."""
    chosen = sorted({code for code in codes if 0 <= code <= span})
    if negated:
        return _others(column, chosen, span)
    if not chosen:
        return Nothing()
    if chosen[-1] - chosen[0] + 1 == len(chosen):
        return Within(column, chosen[0], chosen[-1])
    return Among(column, tuple(chosen))


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """All of the parts: flat, without `All`, and `Nothing` as soon as one part is."""
    kept = tuple(_flat(parts, Conjunction, All()))
    if Nothing() in kept:
        return Nothing()
    return Conjunction(kept) if len(kept) > 1 else (kept[0] if kept else All())


def disjunction(parts: Iterable[Predicate]) -> Predicate:
    """At least one of the parts: flat, without `Nothing`, and `All` as soon as one part is."""
    kept = tuple(_flat(parts, Disjunction, Nothing()))
    if All() in kept:
        return All()
    return Disjunction(kept) if len(kept) > 1 else (kept[0] if kept else Nothing())


def _others(column: str, excluded: Sequence[int], span: int) -> Predicate:
    """The domain without some codes: few ranges, or the list of a small domain, or many ranges of a large one."""
    edges = (-1, *excluded, span + 1)
    gaps = [(low + 1, high - 1) for low, high in pairwise(edges) if high - low > 1]
    if len(gaps) > GAPS_MAX and span < CODES_MAX:
        return Among(column, tuple(code for low, high in gaps for code in range(low, high + 1)))
    return disjunction(Within(column, low, high) for low, high in gaps)


def _flat(
    parts: Iterable[Predicate], kind: type[Conjunction] | type[Disjunction], neutral: Predicate
) -> Iterator[Predicate]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        elif part != neutral:
            yield part
