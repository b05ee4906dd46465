"""The parameters of a linear model, as the JSON on the wire reads them: lists of numbers, or the hash of numbers."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, PrivateAttr, Strict, Tag

from service.query.literals_ast import NOT_EMPTY, Closed
from service.query.schema import REAL_MAX, doc, optional

PARAMETERS_MAX = 2**20
HASHES_MAX: Final = 8
"""The most arrays of parameters that one query may name by their hashes."""
MIXED_MAX: Final = 32
"""The longest list of a query in which literals and other parts may be mixed; a longer list has parts of one kind."""


def _rows_kind(node: object) -> str:
    rows = isinstance(node, list | tuple) and len(node) > 0 and isinstance(node[0], list | tuple)
    return "(classes)" if rows else "(one)"


Parameter = Annotated[float, Field(ge=-REAL_MAX, le=REAL_MAX, allow_inf_nan=False)]
_Numbers = Annotated[
    tuple[Parameter, ...], Strict(strict=False), Field(fail_fast=True, max_length=PARAMETERS_MAX), NOT_EMPTY
]
ListedParameters = Annotated[
    Annotated[_Numbers, Tag("(one)")]
    | Annotated[
        tuple[_Numbers, ...],
        Strict(strict=False),
        Field(fail_fast=True, max_length=PARAMETERS_MAX),
        NOT_EMPTY,
        Tag("(classes)"),
    ],
    Discriminator(_rows_kind),
    doc("One parameter for each feature; of `softmax` one such list for each value of the target."),
]


@dataclass(frozen=True, slots=True)
class SentNumbers:
    """Numbers that came with the query, in their shape: doubles, little-endian, row by row."""

    shape: tuple[int, ...]
    numbers: bytes


@dataclass(frozen=True, slots=True)
class KnownNumbers:
    """Numbers that the service has kept from an earlier query of the same analyst."""

    numbers: bytes


@dataclass(frozen=True, slots=True)
class UnknownNumbers:
    """The lack of numbers: the query has their hash alone."""

    numbers: ClassVar[bytes] = b""


class HashedParameters(Closed):
    """Parameters by the hash of their numbers, which came in the body or are kept of an earlier query.

    The hash is of the numbers as doubles in little-endian order, row by row, and of nothing else.
    """

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$"), doc("The SHA-256 of the numbers, in hexadecimal.")]
    shape: (
        Annotated[
            tuple[Annotated[int, Field(ge=1, le=PARAMETERS_MAX)], ...],
            Strict(strict=False),
            Field(fail_fast=True, min_length=1, max_length=2),
        ]
        | None
    ) = optional("(features,), or of `softmax` (classes, features); left out, as it was when the numbers were sent.")
    _source: SentNumbers | KnownNumbers | UnknownNumbers = PrivateAttr(UnknownNumbers())

    @classmethod
    def of(cls, numbers: NDArray[np.floating]) -> Self:
        """The parameters with the numbers of this array."""
        packed = np.asarray(numbers, dtype="<f8", order="C").tobytes()
        made = cls(sha256=hashlib.sha256(packed).hexdigest(), shape=numbers.shape)
        return made.given(SentNumbers(numbers.shape, packed))

    def kept_as(self, shape: tuple[int, ...], numbers: bytes) -> Self:
        """These parameters with the kept numbers, in the shape that the query states or else in the kept shape."""
        return self.model_copy(update={"shape": self.shape or shape}).given(KnownNumbers(numbers))

    def given(self, source: SentNumbers | KnownNumbers) -> Self:
        """Set the source of the numbers and return this object. Only the code that makes the object calls this."""
        self._source = source
        return self

    @property
    def source(self) -> SentNumbers | KnownNumbers | UnknownNumbers:
        """The source of the numbers, with the numbers."""
        return self._source

    @property
    def numbers(self) -> bytes:
        """The doubles, little-endian, row by row; empty where only the hash is known."""
        return self._source.numbers

    @property
    def array(self) -> NDArray[np.float64] | None:
        """The numbers in their shape; None where they are not known, or do not fill the shape."""
        if self.shape is None or 8 * prod(self.shape) != len(self.numbers):
            return None
        return np.frombuffer(self.numbers, dtype="<f8").reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        """Compare the hash and the shape, whatever the source of the numbers."""
        return isinstance(other, HashedParameters) and (self.sha256, self.shape) == (other.sha256, other.shape)

    def __hash__(self) -> int:
        """A hash that agrees with `__eq__`."""
        return hash((self.sha256, self.shape))


def is_unknown(given: HashedParameters) -> bool:
    """Tell whether only the hash of these parameters is known."""
    return isinstance(given.source, UnknownNumbers)


def _parameters_kind(node: object) -> str:
    return "(hash)" if isinstance(node, dict | HashedParameters) else "(numbers)"


Parameters = Annotated[
    Annotated[ListedParameters, Tag("(numbers)")] | Annotated[HashedParameters, Tag("(hash)")],
    Discriminator(_parameters_kind),
    doc(
        "One parameter for each feature; of `softmax` one such list for each value of the target."
        " Or the hash of numbers that this analyst has sent before."
    ),
]


def with_kept(part: Any, kept: Mapping[str, tuple[tuple[int, ...], bytes]]) -> Any:  # noqa: ANN401 - the same type
    """A part of a query with the kept shapes and numbers for its hashes; the same object if it needs none of them."""
    if isinstance(part, HashedParameters):
        return part.kept_as(*kept[part.sha256]) if is_unknown(part) and part.sha256 in kept else part
    changed = {place: new for place, old in _members(part) if (new := with_kept(old, kept)) is not old}
    if not changed:
        return part
    if isinstance(part, Closed):
        return part.model_copy(update=changed)
    return tuple(changed.get(place, old) for place, old in enumerate(part))


def _members(part: object) -> Iterator[tuple[Any, object]]:
    """The members of a part, each with its name or place; none for a list of literals."""
    if isinstance(part, Closed):
        yield from ((name, getattr(part, name)) for name in type(part).model_fields)
    elif isinstance(part, tuple) and (len(part) <= MIXED_MAX or isinstance(part[0], Closed)):
        yield from enumerate(part)
