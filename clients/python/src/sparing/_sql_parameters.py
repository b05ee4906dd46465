"""Parameters of a query in SQL: each `?` is replaced by a literal."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from sparing._expressions import iso, plain
from sparing._sql import SQLError, reading


class ParameterError(ValueError):
    """A parameter's value has no literal in SQL."""


def bound(text: str, parameters: Sequence[object] = ()) -> str:
    """The text with a literal in place of each `?` outside quotes, names and comments.

    Literals get spaces around them, so that they do not merge with their surroundings.

    Raises:
        ParameterError: a parameter's value has no literal.
        SQLError: the numbers of parameters and of `?` differ, or the text cannot be read.
        ImportError: sqlglot is not installed.
    """
    if isinstance(parameters, Mapping | str):
        raise SQLError("parameters are a sequence, one for each ?")
    places = _places(text) if parameters or "?" in text else []
    if len(places) != len(parameters):
        raise SQLError(f"the text has {len(places)} times ?, and there are {len(parameters)} parameters")
    parts, last = [], 0
    for place, parameter in zip(places, parameters, strict=True):
        parts += [text[last:place], f" {literal(parameter)} "]
        last = place + 1
    return "".join([*parts, text[last:]])


def literal(value: object) -> str:
    """The literal in SQL of a value of Python, numpy or pandas. Raises ParameterError if there is none."""
    value = value if isinstance(value, Decimal) else plain(value)
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, date) and value == value:  # noqa: PLR0124 - NaT of pandas does not equal itself
        value = iso(value)
    if not isinstance(value, str):
        raise ParameterError(f"a {type(value).__name__} has no literal in SQL")
    if "\0" in value:
        raise ParameterError("a text with a NUL character has no literal in SQL")
    return "'" + value.replace("'", "''") + "'"


def _number(number: float | Decimal) -> str:
    """The literal of a number; negative numbers are in parentheses, as `--` would begin a comment."""
    if not math.isfinite(number):
        raise ParameterError(f"{number} has no literal in SQL")
    text = format(number, "f") if isinstance(number, Decimal) else repr(number + 0)
    return f"({text})" if text.startswith("-") else text


def _places(text: str) -> list[int]:
    """The place of each `?`; the tokens are the parser's own, so that both agree on the end of a text."""
    with reading() as parser:
        tokens = parser.tokenize(text, read="postgres")
    return [token.start for token in tokens if token.token_type.name == "PLACEHOLDER"]
