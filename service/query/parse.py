"""Bytes off the wire to a Query, refusing early whatever JSON leaves open.

The standard reader is used with a hook at each place where JSON readers disagree: duplicate keys, NaN, numbers beyond a
double, integers that a double does not hold. A hook cannot know where in the document it is, so it leaves a `_Refused`
in the value's place; no model accepts one, and only then is the document walked to name the field. Size and nesting are
checked on the bytes, before anything recurses.
"""

import json
import re
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from math import isinf
from typing import Any, TypeGuard

import rfc8785
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from service.query.language import Query
from service.query.literals_ast import INTEGER_MAX
from service.query.problems import FieldError, QueryProblem, quoted

BODY_BYTES_MAX = 256 * 1024
DEPTH_MAX = 16  # of objects and lists within each other
ERRORS_MAX = 20
KEPT_BODY_BYTES_MAX = 1024
KEPT_MAX = 256
"""How many queries of short texts are kept, the last ones asked."""

# The closing quote is optional so that an unterminated string is one match to the end, not a new search at every quote.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS_MAX = 22  # RFC 8785 writes a double of at most 21 digits without an exponent; and a sign
_LITERAL_TYPES = {"bool", "constrained-int", "float", "constrained-str"}  # a literal's union, as pydantic names it
_MESSAGES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of the query language",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "too_long": "must have at most {max_length} entries",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "string_unicode": "has half of a surrogate pair, which is not text",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
}
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def kept_query(body: bytes, asker: Hashable) -> Query:
    """As `parse_query`; the same text of the same asker is read once, and gives the same object, while it is kept.

    Nobody can tell by the time that a query takes what another has asked.
    """
    return _read_for(body, asker) if len(body) <= KEPT_BODY_BYTES_MAX else parse_query(body)


@lru_cache(maxsize=KEPT_MAX)
def _read_for(body: bytes, _asker: Hashable) -> Query:
    return parse_query(body)


def parse_query(body: bytes) -> Query:
    """The query in a request's body, UTF-8 JSON of at most 256 KiB nested at most 16 deep.

    Raises QueryProblem, and nothing else, for whatever is wrong with it. What it means for a dataset is checked by
    `compile_query`.
    """
    return query_of(document_of(body))


def document_of(body: bytes) -> object:
    """The JSON document in a body; what JSON leaves open is marked, and refused by `query_of`. Raises QueryProblem."""
    if len(body) > BODY_BYTES_MAX:
        raise QueryProblem.of("body", f"is larger than {BODY_BYTES_MAX} bytes")
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX:  # fewer cannot be nested deeper, wherever they stand
        _check_depth(body)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise QueryProblem.of("body", f"is not UTF-8 at byte {error.start}") from None
    try:
        return _READER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise QueryProblem.of("body", f"is not JSON at {place}: {error.msg}") from None


def query_of(document: object) -> Query:
    """The query that a document is. Raises QueryProblem."""
    try:
        return Query.model_validate(document)
    except ValidationError as error:
        if _is_tick_without_noise(document):
            return query_of({**document, "noise": {"prepaid": {}}})
        problem = QueryProblem(*_errors(error, document))
    raise problem  # outside of the handler: what pydantic said quotes the document and goes no further


def _is_tick_without_noise(document: object) -> TypeGuard[dict[str, Any]]:
    """Whether it asks for a tick alone and leaves the noise out, which is the monitor's."""
    match document:
        case {"noise": _}:
            return False
        case {"select": [{"exhausted": _}]}:
            return True
        case _:
            return False


def _check_depth(body: bytes) -> None:
    depth = 0
    for bracket in _STRING.sub(b"", body).translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            depth += 1
            if depth > DEPTH_MAX:
                raise QueryProblem.of("body", f"is nested more than {DEPTH_MAX} deep")
        else:
            depth -= 1


class _Refused:
    """Stands in a document for a value that is JSON to some readers and not to others."""

    def __init__(self, message: str) -> None:
        self.message = message


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Refused:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    keys = [key for key, _ in pairs]
    twice = next(key for place, key in enumerate(keys) if key in keys[:place])
    return _Refused(f"has the key {quoted(twice)} twice")


def _integer(digits: str) -> int | float | _Refused:
    if len(digits) > _DIGITS_MAX:
        return _Refused("is an integer too large to be exact; write it with an exponent if a double will do")
    value = int(digits)
    if -INTEGER_MAX <= value <= INTEGER_MAX:
        return value
    # RFC 8785 spells the doubles up to 1e21 without an exponent, and a canonical form is a query too.
    nearest = float(value)
    if nearest == value or rfc8785.dumps(nearest).decode() == digits:
        return nearest
    return _Refused("is an integer that a double does not hold; write it with an exponent if a double will do")


def _real(digits: str) -> int | float | _Refused:
    value = float(digits)
    if isinf(value):
        return _Refused("is a number too large for a double")
    # One value, one spelling: from here on 3.0 is 3.
    return int(value) if value.is_integer() and abs(value) <= INTEGER_MAX else value


def _constant(name: str) -> _Refused:
    return _Refused(f"is {name}, which is not JSON")


_READER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_real, parse_constant=_constant, strict=True
)


def _errors(error: ValidationError, document: object) -> list[FieldError]:
    """The problems of a query in the caller's own words: the first twenty, without repeats."""
    details = error.errors(include_url=False, include_input=False)
    return _first(_refusals(document, ())) or _first(
        FieldError(field=_field(detail["loc"], document, missing=detail["type"] == "missing"), message=_message(detail))
        for detail in details
    )


def _first(errors: Iterator[FieldError]) -> list[FieldError]:
    found: dict[FieldError, None] = {}
    for error in errors:
        found[error] = None
        if len(found) == ERRORS_MAX:
            break
    return list(found)


def _refusals(value: object, path: tuple[str | int, ...]) -> Iterator[FieldError]:
    """The refusals of the hooks, anywhere in the document; the nesting was checked before."""
    match value:
        case _Refused():
            yield FieldError(field=_written(path), message=value.message)
        case dict():
            for key, member in value.items():
                if isinstance(member, (dict, list, _Refused)):
                    yield from _refusals(member, (*path, key))
        case list():
            for place, member in enumerate(value):
                if isinstance(member, (dict, list, _Refused)):
                    yield from _refusals(member, (*path, place))


def _written(path: Iterable[str | int]) -> str:
    return "".join(_step(part) for part in path).removeprefix(".") or "body"


def _field(location: tuple[int | str, ...], document: object, *, missing: bool) -> str:
    """A location of pydantic's walked along the document: what is not in it is the name of a union's member."""
    path: list[int | str] = []
    for depth, part in enumerate(location):
        absent = missing and depth == len(location) - 1
        match document:
            case dict() if part in document or absent:
                path.append(part)
                document = document.get(part)
            case list() if isinstance(part, int) and (part < len(document) or absent):
                path.append(part)
                document = None if absent else document[part]
    return _written(path)


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _PLAIN_KEY.fullmatch(part) else f"[{quoted(part)}]"


def _message(detail: ErrorDetails) -> str:
    if detail["loc"] and detail["loc"][-1] in _LITERAL_TYPES:
        return "must be true or false, a number, or text of at most 1000 characters"
    if detail["loc"] == ("version",) and detail["type"] != "missing":
        return "must be 1, the only version there is"
    if detail["type"] in _MESSAGES:
        return _MESSAGES[detail["type"]].format(**detail.get("ctx", {}))
    return detail["msg"].replace("Input should", "must")
