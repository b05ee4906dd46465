"""The common form of the parts of a query as JSON: they are closed, and most are told by their one key.

A tag of a union is that key in parentheses, so that in pydantic's error locations it is not taken for a key.
"""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

__all__ = ["INTEGER_MAX", "NOT_EMPTY", "SOME", "Closed", "Name", "only_key"]

INTEGER_MAX = 2**53 - 1  # the integers that every JSON reader agrees on (RFC 7493, section 2.2)

Part = TypeVar("Part")
Name = Annotated[str, Field(min_length=1, max_length=63)]


def _not_empty(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if not parts:
        raise PydanticCustomError("too_short", "must not be empty")
    return parts


# Not `min_length`, which counts only the parts that were valid and then complains about that as well.
NOT_EMPTY = AfterValidator(_not_empty)
SOME: JsonDict = {"minItems": 1}  # the same, said in the JSON schema


class Closed(BaseModel):
    """A model that refuses what is not declared, and does not take `true` for 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def only_key(node: object) -> str | None:
    """The tag of a node: its one key in JSON, its class's `KIND` once read."""
    if isinstance(node, dict):
        return f"({next(iter(node))})" if len(node) == 1 else None
    return f"({getattr(node, 'KIND', None)})"
