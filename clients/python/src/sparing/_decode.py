"""From JSON documents to models: one function that reads a dataclass's annotations, instead of a reader for each.

Unknown members are ignored, so that an older client reads a newer service. A missing or misshapen one is an
`APIReplyError` that names it.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from sparing._errors import APIReplyError

Model = TypeVar("Model")
Kind = TypeVar("Kind")
Reader = Callable[[object, str], object]  # takes a JSON value and its name


def read(model: type[Model], body: object) -> Model:
    """The `model` (a dataclass) that `body` describes; a field's metadata may give its name on the wire.

    Raises:
        APIReplyError: a member is missing or of another type.
    """
    try:
        return typing.cast("Model", _instance(model, body))
    except (LookupError, TypeError, ValueError) as error:
        raise APIReplyError(f"the reply is not a {model.__name__}: {error}") from error


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
    if origin is Mapping:
        return lambda value, name: {key: item(each, name) for key, each in _checked(dict, value, name).items()}
    if item is _float:
        return _floats
    return lambda value, name: tuple([item(each, name) for each in _checked(list, value, name)])


def _union(kinds: tuple[Any, ...]) -> Reader:
    """Of `X | None`; of one or several, such as `float | tuple[float, ...]`; and of a word or an object."""
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


def _float(value: object, name: str) -> float:
    return value if isinstance(value, float) else float(_checked(int, value, name))


def _floats(value: object, name: str) -> tuple[float, ...]:
    """Of a million numbers, their kinds are looked at together."""
    numbers = _checked(list, value, name)
    if set(map(type, numbers)) <= {float, int}:
        return tuple(map(float, numbers))
    return tuple([_float(each, name) for each in numbers])


def _decimal(value: object, name: str) -> Decimal:
    try:
        return Decimal(value if isinstance(value, str) else str(_float(value, name)))
    except InvalidOperation:
        raise ValueError(f"{name} is not a number") from None


def _datetime(value: object, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_checked(str, value, name))
    except ValueError:
        raise ValueError(f"{name} is not a time") from None


_LEAVES: Mapping[object, Reader] = {
    object: lambda value, _: value,
    bool: functools.partial(_checked, bool),
    str: functools.partial(_checked, str),
    int: functools.partial(_checked, int),
    float: _float,
    Decimal: _decimal,
    datetime: _datetime,
}
