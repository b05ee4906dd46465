"""Literals, names and the closed model on which the parts of the query language are based."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, TypeVar, Union, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError

INTEGER_MAX = 2**53 - 1  # the integers that every JSON reader agrees on (RFC 7493, section 2.2)
Part = TypeVar("Part")
_PIECE: Final = 20
Name = Annotated[str, Field(min_length=1, max_length=63)]


def _not_empty(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if not parts:
        raise PydanticCustomError("too_short", "must not be empty")
    return parts


# Not `min_length`, which counts only the parts that were valid and then complains about that as well.
NOT_EMPTY = AfterValidator(_not_empty)
SOME: JsonDict = {"minItems": 1}  # the same, said in the JSON schema


def not_longer(parts_max: int) -> BeforeValidator:
    """Refuses a list that is too long before reading any part of it. Other lists are read up to their first wrong part.

    `max_length` would not do, since it counts only the valid parts.
    """

    def check(parts: object) -> object:
        if isinstance(parts, list | tuple) and len(parts) > parts_max:
            lengths = {"max_length": parts_max, "actual_length": len(parts)}
            raise PydanticKnownError("too_long", {"field_type": "Tuple", **lengths})
        return parts

    return BeforeValidator(check)


def either(first: str, second: str) -> Any:  # noqa: ANN401 - as pydantic's
    """A validator of a model that has one of two members, and not the other."""

    def check(part: Part) -> Part:
        if (getattr(part, first) is None) == (getattr(part, second) is None):
            raise PydanticCustomError("either", f"must have either {first} or {second}")
        return part

    return model_validator(mode="after")(check)


def in_pieces(members_max: int) -> WrapValidator:
    """Reads an object of many similar members, twenty at a time, so that errors of one piece at most are reported."""

    def read(members: object, handler: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401 - as pydantic's
        if not isinstance(members, dict) or len(members) <= _PIECE:
            return handler(members)
        if len(members) > members_max:
            lengths = {"max_length": members_max, "actual_length": len(members)}
            raise PydanticKnownError("too_long", {"field_type": "Dictionary", **lengths})
        each: Iterator[tuple[Any, Any]] = iter(members.items())
        found: dict[Any, Any] = {}
        while piece := dict(islice(each, _PIECE)):
            found |= handler(piece)
        return found

    return WrapValidator(read)


class Closed(BaseModel):
    """A model that refuses what is not declared, and does not take `true` for 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Empty(Closed):
    """The empty object: `{}`."""


class Keyed(Closed):
    """A part that is told from others by the key of its first member."""

    KIND: ClassVar[str] = ""
    """That key in JSON; empty of a class without members."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: object) -> None:
        """Read the kind from the members."""
        cls.KIND = next((member.alias or name for name, member in cls.model_fields.items()), "")


def only_key(node: object) -> str | None:
    """The tag of a node: its one key in JSON, or the `KIND` of its class once it is read."""
    if isinstance(node, dict):
        return f"({next(iter(node))})" if len(node) == 1 else None
    return f"({getattr(node, 'KIND', None)})"


def first_key(kinds: Sequence[str]) -> Callable[[object], str | None]:
    """The tag of a node that may have further keys: the first of these kinds that is a key, its class's `KIND`."""

    def tag(node: object) -> str | None:
        if isinstance(node, dict):
            return next((f"({kind})" for kind in kinds if kind in node), None)
        return f"({getattr(node, 'KIND', None)})"

    return tag


@dataclass(frozen=True, slots=True)
class ByKey:
    """The annotation of a union of keyed parts, by which a node is read as the part whose key it has.

    A tag is that key in parentheses, so that in pydantic's error locations it is not taken for a key.
    """

    error_type: str
    parts: Sequence[type[Keyed]] = ()
    """The parts of a union that is not written out as the type."""
    error_message: str = ""
    """A refusal in words of its own, of nodes that may have further keys."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the union."""
        parts = self.parts or get_args(source)
        kinds = [part.KIND for part in parts]
        by_key = Discriminator(
            first_key(kinds) if self.error_message else only_key,
            custom_error_type=self.error_type,
            custom_error_message=self.error_message
            or f"must be an object with exactly one of the keys {', '.join(kinds)}",
        )
        tagged = tuple(Annotated[part, Tag(f"({part.KIND})")] for part in parts)
        return handler.generate_schema(Annotated[Union[tagged], by_key])  # noqa: UP007 - a computed union


def operand_kind(node: object) -> str:
    """The tag of an operand: a value of the row, or a literal."""
    return "(row)" if isinstance(node, dict | Closed) else "(literal)"


Number = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)] | Annotated[float, Field(allow_inf_nan=False)]
Value = bool | Number | Annotated[str, Field(max_length=1000)]
ColumnName = Annotated[str, Field(min_length=1, max_length=127)]
"""A column of the table, or `people.town`: the column of the individual that the event is of."""


def count_kind(numbers: object) -> str:
    """The tag of one number or of a list of numbers."""
    return "(several)" if isinstance(numbers, list | tuple) else "(one)"
