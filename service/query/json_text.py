"""JSON text to a document: the one reader of every body, which refuses everything that JSON leaves open.

The standard reader is used with a hook at each place where JSON readers disagree: repeated members, NaN, numbers beyond
a double, integers that a double does not hold. A hook does not know its place in the document, so that it leaves a
`_Refused` in the value's place. Only if there is one is the document walked, to name the field. The same walk looks for
U+0000, which the database cannot hold, and for half of a surrogate pair, which is no text. Size, nesting and the number
of objects and lists are checked on the bytes, before any recursion. Objects with too many members are not made.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isinf
from typing import Any, Final, TypeVar

import rfc8785

from service.query.literals_ast import INTEGER_MAX
from service.query.problems import FieldError, QueryProblem, quoted

Found = TypeVar("Found")
DEPTH_MAX: Final = 16  # of objects and lists within each other
PARTS_MAX: Final = 2**14
"""The number of objects and lists that one document may have."""
MEMBERS_MAX: Final = 200
"""The number of members that one object may have: a table has no more columns."""
ERRORS_MAX: Final = 20  # enough to mend a request with, and no more than one screen

# The closing quote is optional so that an unterminated string is one match to the end, not a new search at every quote.
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ESCAPED: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
"""The escapes that may make U+0000 or half of a surrogate pair.

Nothing else can make them: UTF-8 has no form of a half pair, and JSON allows no raw U+0000.
"""
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_LONG_DIGITS: Final = re.compile(rb"[0-9]{16}")  # fewer are an integer that a double holds
_LOOKED_AT_BYTES_MAX: Final = 2**18  # in a longer text, to look for long digits takes longer than to expect them
_DIGITS_MAX: Final = 22  # RFC 8785 writes a double of at most 21 digits without an exponent; and a sign
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A document as it was read, and whether a value or a text in it may be refused."""

    document: Any
    is_suspect: bool

    def check(self, part: object) -> None:
        """Refuse the part if it contains a value to be refused. Raises QueryProblem that names the fields."""
        if self.is_suspect and (refused := first_distinct(_refusals(part, ()))):
            raise QueryProblem(*refused)


def document_of(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """The JSON document in a body. Raises QueryProblem, and nothing else, for any fault of the body."""
    reading = reading_of(body)
    reading.check(reading.document)
    return reading.document


def reading_of(body: bytes, *, depth_max: int = DEPTH_MAX) -> Reading:
    """Read the text and mark the values that JSON leaves open, for `check`. Raises QueryProblem for other faults."""
    if body.count(b"[") + body.count(b"{") > depth_max:  # fewer cannot be nested deeper, wherever they stand
        _check_nesting(body, depth_max)
    if body.startswith(_BYTE_ORDER_MARK):
        raise QueryProblem.of("body", "begins with a byte order mark, which JSON in UTF-8 has not")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise QueryProblem.of("body", f"is not UTF-8 at byte {error.start}") from None
    hooks, has_odd_escapes = _Hooks(), b"\\u" in body and _ESCAPED.search(body) is not None
    has_long_digits = len(body) > _LOOKED_AT_BYTES_MAX or _LONG_DIGITS.search(body) is not None
    try:
        document = _reader(hooks, has_long_digits=has_long_digits).decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise QueryProblem.of("body", f"is not JSON at {place}: {error.msg}") from None
    return Reading(document=document, is_suspect=hooks.refused > 0 or has_odd_escapes)


def first_distinct(found: Iterable[Found]) -> list[Found]:
    """The first twenty that are different. No more of `found` is read than that takes."""
    distinct: dict[Found, None] = {}
    for each in found:
        distinct[each] = None
        if len(distinct) == ERRORS_MAX:
            break
    return list(distinct)


def written(path: Iterable[str | int]) -> str:
    """A path into a document as the name of a field, such as `where.and[0]`; `body` is the document as a whole."""
    return "".join(_step(part) for part in path).removeprefix(".") or "body"


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _PLAIN_KEY.fullmatch(part) else f"[{quoted(part)}]"


def _check_nesting(body: bytes, depth_max: int) -> None:
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    if brackets.count(b"[") + brackets.count(b"{") > PARTS_MAX:
        raise QueryProblem.of("body", f"has more than {PARTS_MAX} objects and lists")
    depth = 0
    for bracket in brackets:
        if bracket in b"[{":
            depth += 1
            if depth > depth_max:
                raise QueryProblem.of("body", f"is nested more than {depth_max} deep")
        else:
            depth -= 1


class _Refused:
    """The mark that stands in a document for a value on which JSON readers disagree."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


_FURTHER: Final = _Refused("is not JSON that all readers read alike")
"""The mark for every refused value beyond the largest number of errors."""


class _Hooks:
    """The hooks of one reading, and the number of values that they have refused."""

    __slots__ = ("refused",)

    def __init__(self) -> None:
        self.refused = 0

    def members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Refused:
        """The object with these members, or the mark of a refusal."""
        if len(pairs) > MEMBERS_MAX:
            return self._refuse(f"has more than {MEMBERS_MAX} members")
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        if self.refused >= ERRORS_MAX:
            return _FURTHER
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        return self._refuse(f"has the key {quoted(twice)} twice")

    def integer(self, digits: str) -> int | float | _Refused:
        """The number without a point and an exponent, or the mark of a refusal."""
        if len(digits) > _DIGITS_MAX:
            return self._refuse("is an integer too large to be exact; write it with an exponent if a double will do")
        value = int(digits)
        if -INTEGER_MAX <= value <= INTEGER_MAX:
            return value
        # RFC 8785 spells the doubles up to 1e21 without an exponent, and a canonical form is a query too.
        nearest = float(value)
        if nearest == value or rfc8785.dumps(nearest).decode() == digits:
            return nearest
        return self._refuse("is an integer that a double does not hold; write it with an exponent if a double will do")

    def real(self, digits: str) -> int | float | _Refused:
        """Any other number, or the mark of a refusal."""
        value = float(digits)
        if isinf(value):
            return self._refuse("is a number too large for a double")
        # One value, one spelling: from here on 3.0 is 3.
        return int(value) if value.is_integer() and abs(value) <= INTEGER_MAX else value

    def constant(self, name: str) -> _Refused:
        """The mark of a refusal, for NaN, Infinity and -Infinity."""
        return self._refuse(f"is {name}, which is not JSON")

    def _refuse(self, message: str) -> _Refused:
        self.refused += 1
        return _Refused(message) if self.refused <= ERRORS_MAX else _FURTHER


def _reader(hooks: _Hooks, *, has_long_digits: bool) -> json.JSONDecoder:
    """A reader for one text. Integers get a hook only if one may be too large, since a list may have many."""
    return json.JSONDecoder(
        object_pairs_hook=hooks.members,
        parse_int=hooks.integer if has_long_digits else None,
        parse_float=hooks.real,
        parse_constant=hooks.constant,
    )


def _refusals(value: object, path: tuple[str | int, ...]) -> Iterator[FieldError]:
    """The refusals anywhere in a document; its nesting was checked before."""
    match value:
        case _Refused():
            yield FieldError(field=written(path), message=value.message)
        case str() if (found := _NO_TEXT.search(value)) is not None:
            yield FieldError(field=written(path), message=_no_text(found[0]))
        case dict():
            for key, member in value.items():
                if (found := _NO_TEXT.search(key)) is not None:
                    yield FieldError(field=written(path), message=f"{_no_text(found[0])}, in the name of a member")
                yield from _refusals(member, (*path, key))
        case list():
            for place, member in enumerate(value):
                is_odd = isinstance(member, str) and _NO_TEXT.search(member) is not None
                if is_odd or isinstance(member, (dict, list, _Refused)):
                    yield from _refusals(member, (*path, place))
        case _:
            pass


def _no_text(character: str) -> str:
    return "has the character U+0000" if character == "\0" else "has half of a surrogate pair, which is not text"
