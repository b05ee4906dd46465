"""From JSON documents to models: one function that reads any model by the annotations of its dataclass.

Unknown members are ignored, so that an older client reads the replies of a newer service. A missing or malformed member
raises `APIReplyError`, which names the member.
"""

import dataclasses
import functools
import math
import re
import types
import typing
from array import array
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from sparing._errors import misread
from sparing._strict_json import is_shallow

Model = TypeVar("Model")
Kind = TypeVar("Kind")
Reader = Callable[[object, str], object]  # takes a JSON value and its name


def read(model: type[Model], body: object) -> Model:
    """The `model` (a dataclass) that `body` describes; the metadata of a field may give its name in JSON.

    Raises:
        APIReplyError: a member is missing or of another type.
    """
    with misread(f"the reply is not a {model.__name__}"):
        return typing.cast("Model", _instance(model, body))


def read_text(body: object) -> str:
    """The body as a text. Raises APIReplyError if it is none."""
    with misread("the reply is not a list of texts"):
        return _checked(str, body, "an item")


def read_object(body: object) -> Mapping[str, object]:
    """The body as an object with any members. Raises APIReplyError if it is none or is nested too deeply."""
    with misread("the reply is not an object"):
        return typing.cast("Mapping[str, object]", _any(_checked(dict, body, "it"), "it"))


def _instance(model: type, body: object) -> object:
    members = _checked(dict, body, model.__name__)
    found = {}
    for field, name, reader in _fields(model):
        if name in members:
            found[field.name] = reader(members[name], name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise LookupError(f"{name} is missing")
    return model(**found)


@functools.cache
def _fields(model: type) -> tuple[tuple[dataclasses.Field[Any], str, Reader], ...]:
    hints = typing.get_type_hints(model)
    fields = dataclasses.fields(model)
    return tuple((field, field.metadata.get("wire", field.name), _reader(hints[field.name])) for field in fields)


def _reader(kind: Any) -> Reader:  # noqa: ANN401 - an annotation has no narrower type
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in _LEAVES:
        return _LEAVES[kind]
    if dataclasses.is_dataclass(kind):
        return lambda value, _: _instance(typing.cast("type", kind), value)
    if origin is types.UnionType:
        return _union(args)
    item = _reader(args[1] if origin is Mapping else args[0])
    if origin is Mapping and item is _any:
        return _members
    if origin is Mapping:
        return lambda value, name: {key: item(each, name) for key, each in _checked(dict, value, name).items()}
    if item is _float:
        return _floats
    return lambda value, name: tuple([item(each, name) for each in _checked(list, value, name)])


def _union(kinds: tuple[Any, ...]) -> Reader:
    """The reader of a union: `X | None`, one value or several (`float | tuple[float, ...]`), or a word or an object."""
    readers = [_reader(kind) for kind in kinds if kind is not types.NoneType]

    def chosen(value: object, name: str) -> object:
        if value is None and types.NoneType in kinds:
            return None
        return readers[-1 if isinstance(value, list | dict) else 0](value, name)

    return chosen


def _checked(kind: type[Kind], value: object, name: str) -> Kind:
    # bool is an int to Python and not to JSON.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name} is a {type(value).__name__}")
    return value


def _any(value: object, name: str) -> object:
    if type(value) in _PLAIN:
        return value
    if not is_shallow(value):
        raise ValueError(f"{name} is too deep, or has a number that is not finite")
    return value


def _members(value: object, name: str) -> dict[str, object]:
    """The value as an object with any members, fast enough for ten thousand labels."""
    members: dict[str, object] = _checked(dict, value, name)
    if not _PLAIN.issuperset(map(type, members.values())):
        _any(members, name)
    return members


def _float(value: object, name: str) -> float:
    number = value if isinstance(value, float) else float(_checked(int, value, name))
    if not math.isfinite(number):
        raise ValueError(f"{name} is not finite")
    return number


def _floats(value: object, name: str) -> tuple[float, ...]:
    """The value as finite numbers, checked together for speed: a finite sum has only finite terms."""
    numbers = value if isinstance(value, array) else _checked(list, value, name)
    kinds = {float} if isinstance(numbers, array) else set(map(type, numbers))
    if kinds <= {float, int}:
        found = tuple(map(float, numbers) if int in kinds else numbers)
        if math.isfinite(sum(found)):
            return found
    return tuple([_float(each, name) for each in numbers])


def _decimal(value: object, name: str) -> Decimal:
    text = value if isinstance(value, str) else str(_float(value, name))
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(f"{name} is not a number")
    return Decimal(text)


def _datetime(value: object, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_checked(str, value, name))
    except ValueError:
        raise ValueError(f"{name} is not a time") from None


_DECIMAL: Final = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][-+]?[0-9]{1,3})?")
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_LEAVES: Mapping[object, Reader] = {
    object: _any,
    bool: functools.partial(_checked, bool),
    str: functools.partial(_checked, str),
    int: functools.partial(_checked, int),
    float: _float,
    Decimal: _decimal,
    datetime: _datetime,
}
