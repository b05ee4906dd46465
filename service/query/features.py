"""Features: the numbers of an individual that a linear model reads, as whole steps of one public size.

The step is a power of two. The largest bound of a feature has more than 2^(b-1) and at most 2^b steps, with b = 11, or
less for many features of `moments`. A feature that has few steps beside the others would be lost in rounding. It is
refused, and the refusal says what to do. All of this follows from declared bounds.

Vectors are read as stored. The step is never coarser than the vectors' own steps, which are whole numbers of it, so
that no number of a vector is rounded. Beside vectors an intercept or a one-hot feature is a whole number of steps too,
if the vectors' steps are finer than 1. It then need not have many steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import floor
from typing import Final

from service.query.columns import (
    CODE_TABLE_SPAN_MAX,
    QueryColumn,
    ReaderFormula,
    label_of,
    meant_by,
    rounded,
    with_sources,
)
from service.query.domains import domain_of
from service.query.expressions_ast import Feature, OneHotFeature, VectorFeature
from service.query.extents import exponent_above
from service.query.group_keys import Group, group_of
from service.query.problems import QueryProblem, quoted
from service.query.row_columns import RowColumns, text_of
from service.query.vector_columns import VectorCoding

BITS_MAX: Final = 11
BITS_MIN: Final = 7
STEPS_MIN: Final = 64
TABLE_MAX: Final = CODE_TABLE_SPAN_MAX + 2
TABLE_CODES_MAX: Final = 2**20
"""The most codes of all tables of features together, at eight bytes a code."""
VECTOR_PEAK_MAX: Final = 2**20
"""The most steps of the largest number of a vector, where another feature needs finer steps."""
SQUARES_MAX: Final = 2**52
"""The largest squared length of all features together, in steps: doubles hold it exactly."""
_HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The one stored column, of few values, from which a feature is calculated."""

    column: str
    codes: int  # NULL among them
    calculations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One feature: the column's value in steps, or `fill` for NULL. Without a fill, NULL leaves the row out."""

    column: str
    offset: int  # column steps; the place of code 0
    span: int  # the largest code of a value
    shift: int  # from column steps to feature steps: left, or if negative right with rounding half up
    fill: int | None
    largest: int  # feature steps
    name: str
    root: Root | None  # None: calculated row by row

    size = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHot:
    """A feature for each code of a column: `largest` steps at the row's own code, and zeros for NULL."""

    column: str
    span: int
    largest: int  # feature steps: one
    group: Group

    @property
    def size(self) -> int:
        """The number of features."""
        return self.span + 1

    @property
    def names(self) -> Iterator[str]:
        """The name of each feature."""
        return (f"{self.group.label} = {value}" for value in domain_of(self.group.domain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A feature for each number of a vector, as stored. Without a vector the row is left out."""

    column: str
    size: int
    offset: int  # column steps; the place of code 0
    shift: int  # from column steps to feature steps, left
    largest: int  # feature steps

    @property
    def names(self) -> Iterator[str]:
        """The name of each feature."""
        return (f"{self.column}[{place}]" for place in range(self.size))


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """The features of a query, in order, in steps of 2**step_log2."""

    parts: tuple[Number | OneHot | Vector, ...]
    one: int | None  # the intercept in steps, the last feature; None without
    step_log2: int

    @cached_property
    def size(self) -> int:
        """The number of features."""
        return sum(part.size for part in self.parts) + (self.one is not None)

    @cached_property
    def tables(self) -> dict[Number, Root]:
        """The number features that are looked up by the codes of their roots, while TABLE_CODES_MAX has room."""
        found: dict[Number, Root] = {}
        left = TABLE_CODES_MAX
        for part in self.parts:
            if isinstance(part, Number) and part.root is not None and part.root.codes <= left:
                found[part] = part.root
                left -= part.root.codes
        return found

    @property
    def columns_by_row(self) -> list[str]:
        """The columns that are read for each row. For a feature that is looked up, its root is read."""
        return [
            self.tables[part].column if isinstance(part, Number) and part in self.tables else part.column
            for part in self.parts
            if not isinstance(part, Vector)
        ]

    @cached_property
    def vectors(self) -> tuple[Vector, ...]:
        """The parts that are vectors."""
        return tuple(part for part in self.parts if isinstance(part, Vector))

    @property
    def peak(self) -> int:
        """The largest size of a feature, in steps."""
        return max(each for each, _ in self._largest)

    @property
    def sum_max(self) -> int:
        """The largest sum of the features' sizes, in steps."""
        return sum(count * each for each, count in self._largest)

    @property
    def squares_max(self) -> int:
        """The largest squared norm, in steps. Of a one-hot column's features only one is not zero."""
        return sum(count * each**2 for each, count in self._largest)

    @property
    def fourths_max(self) -> int:
        """The largest sum of fourth powers, in steps."""
        return sum(count * each**4 for each, count in self._largest)

    @property
    def _largest(self) -> list[tuple[int, int]]:
        """The largest sizes, in steps, each with the number of features that may have it at once."""
        own = [(part.largest, part.size if isinstance(part, Vector) else 1) for part in self.parts]
        return [*own, *([] if self.one is None else [(self.one, 1)])]

    @property
    def names(self) -> list[str]:
        """The name of each feature."""
        own = ([part.name] if isinstance(part, Number) else part.names for part in self.parts)
        return [*chain.from_iterable(own), *([] if self.one is None else ["intercept"])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A number feature as it was asked for."""

    column: QueryColumn
    fill: Fraction | None
    name: str
    root: Root | None
    field: str

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        coding = self.column.coding
        step = Fraction(2) ** coding.step_log2
        return coding.offset * step, (coding.offset + coding.span) * step


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadVector:
    """A column of vectors whose numbers were asked for."""

    column: str
    coding: VectorCoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFeatures:
    """The features of an item, found in the schema, before their steps are chosen."""

    parts: tuple[_Read | Group | _ReadVector, ...]
    has_intercept: bool
    field: str

    def in_steps(self, bits: int, *, as_stored: bool = False) -> FeatureMap:
        """The features with at most 2^bits steps. Raises QueryProblem for one that has too few steps beside the others.

        With `as_stored`, vectors without numbers beside them stay in their own steps, however few these are.
        """
        step_log2 = self._step_log2(bits, as_stored=as_stored)
        one = floor(Fraction(2) ** -step_log2 + _HALF)
        is_lost = one < STEPS_MIN and not (self._vectors and step_log2 <= 0)  # a whole number of steps is exact
        parts = tuple(self._in_steps(place, one, step_log2, is_lost=is_lost) for place in range(len(self.parts)))
        if self.has_intercept and is_lost:
            raise QueryProblem.of(f"{self.field}.intercept", "is small beside the other features; scale those")
        features = FeatureMap(parts=parts, one=one if self.has_intercept else None, step_log2=step_log2)
        if features.squares_max > SQUARES_MAX:
            raise QueryProblem.of(f"{self.field}.features", "are too many large numbers for exact sums; select fewer")
        return features

    def _in_steps(self, place: int, one: int, step_log2: int, *, is_lost: bool) -> Number | OneHot | Vector:
        part, field = self.parts[place], f"{self.field}.features[{place}]"
        if isinstance(part, _ReadVector):
            return _vector(part, step_log2, f"{field}.vector")
        return _one_hot(part, one, field, is_lost=is_lost) if isinstance(part, Group) else _number(part, step_log2)

    @property
    def _vectors(self) -> list[VectorCoding]:
        return [part.coding for part in self.parts if isinstance(part, _ReadVector)]

    @property
    def _has_ones(self) -> bool:
        return self.has_intercept or any(isinstance(part, Group) for part in self.parts)

    def _step_log2(self, bits: int, *, as_stored: bool) -> int:
        """The step at which the largest feature has 2^bits steps, and at most the vectors' own step."""
        steps = [coding.step_log2 for coding in self._vectors]
        if as_stored and steps and not any(isinstance(part, _Read) for part in self.parts):
            return min([*steps, 0] if self._has_ones else steps)
        return min([*steps, self._exponent() - bits])

    def _exponent(self) -> int:
        """The smallest e for which no feature exceeds 2^e."""
        bounds = [abs(bound) for part in self.parts if isinstance(part, _Read) for bound in part.bounds]
        bounds += [coding.largest * Fraction(2) ** coding.step_log2 for coding in self._vectors]
        if self._has_ones:
            bounds.append(Fraction(1))
        largest = max(bounds)
        if largest == 0:
            raise QueryProblem.of(f"{self.field}.features", "are always zero within the declared bounds")
        return exponent_above(largest**2)


def read_features(asked: Sequence[Feature], columns: RowColumns, field: str, *, intercept: bool) -> ReadFeatures:
    """The features of an item named `field`. Raises QueryProblem naming the feature."""
    parts = []
    seen: dict[Feature, int] = {}
    for place, feature in enumerate(asked):
        named = f"{field}.features[{place}]"
        if feature in seen:
            raise QueryProblem.of(named, f"repeats features[{seen[feature]}]")
        seen[feature] = place
        parts.append(_read(feature, columns, named))
    return ReadFeatures(parts=tuple(parts), has_intercept=intercept, field=field)


def _root(name: str, columns: Mapping[str, QueryColumn]) -> Root | None:
    """The one stored column of few values from which a column is calculated; None if there are several, or a reader."""
    made_of = with_sources([name], columns)
    roots = [each for each in made_of if (formula := columns[each].formula) is None or not formula.sources]
    is_read = any(isinstance(columns[each].formula, ReaderFormula) for each in made_of)
    if is_read or len(roots) > 1 or columns[roots[0]].formula is not None:
        return None
    codes = columns[roots[0]].coding.span + 2
    return Root(column=roots[0], codes=codes, calculations=len(made_of) - 1) if codes <= TABLE_MAX else None


def _read(feature: Feature, columns: RowColumns, field: str) -> _Read | Group | _ReadVector:
    if isinstance(feature, VectorFeature):
        return _ReadVector(column=feature.vector, coding=columns.vector(feature.vector, f"{field}.vector"))
    if isinstance(feature, OneHotFeature):
        return group_of(feature.one_hot, columns, f"{field}.one_hot")
    column = columns.value(feature.of, f"{field}.of")
    if column.kind == "category":
        raise QueryProblem.of(f"{field}.of", f"{quoted(column.name)} is a category; make it a one_hot")
    if not column.is_number:
        raise QueryProblem.of(f"{field}.of", f"{quoted(column.name)} is not a number; subtract one from it")
    read = _Read(
        column=column,
        fill=None if feature.fill is None else meant_by(feature.fill),
        name=label_of(text_of(feature.of)),
        root=_root(column.name, columns.used),
        field=field,
    )
    if read.fill is not None and abs(read.fill) > max(map(abs, read.bounds)):
        raise QueryProblem.of(f"{field}.fill", "must not be larger than the value can be")
    return read


def _number(read: _Read, step_log2: int) -> Number:
    coding = read.column.coding
    shift = coding.step_log2 - step_log2
    largest = max(abs(rounded(bound, shift)) for bound in (coding.offset, coding.offset + coding.span))
    if largest < STEPS_MIN:
        raise QueryProblem.of(f"{read.field}.of", "is small beside the other features; scale it")
    fill = None if read.fill is None else floor(read.fill / Fraction(2) ** step_log2 + _HALF)
    return Number(
        column=read.column.name,
        offset=coding.offset,
        span=coding.span,
        shift=shift,
        fill=fill,
        largest=max(largest, abs(fill or 0)),
        name=read.name,
        root=read.root,
    )


def _vector(read: _ReadVector, step_log2: int, field: str) -> Vector:
    shift = read.coding.step_log2 - step_log2
    largest = read.coding.largest << shift
    if largest > VECTOR_PEAK_MAX:
        raise QueryProblem.of(field, "has numbers that are large beside the other features; scale those, or leave it")
    return Vector(column=read.column, size=read.coding.length, offset=read.coding.offset, shift=shift, largest=largest)


def _one_hot(group: Group, one: int, field: str, *, is_lost: bool) -> OneHot:
    if is_lost:
        raise QueryProblem.of(f"{field}.one_hot", "is small beside the other features; scale those")
    return OneHot(column=group.column.name, span=group.column.coding.span, largest=one, group=group)
