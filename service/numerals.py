"""The one reading of a number that is written as text: in bodies, addresses, headers, options and the environment.

`int`, `float` and `Decimal`, and pydantic after them, also read `1_000`, ` 5 `, `+5` and the digits of other scripts,
which a person or another program may have meant otherwise. Uploads match whole columns by their own patterns
(`service.engine.ingest.columns`). These are as strict, except that they admit the sign in files of other tools.
"""

import re
from decimal import Decimal
from typing import Final

from pydantic import BeforeValidator

CHARACTERS_MAX: Final = 100
_INTEGER: Final = re.compile(r"-?[0-9]+")
_DECIMAL: Final = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")


def is_digits(text: str) -> bool:
    """Tell whether the text is a whole number in digits alone, without a sign."""
    return text.isascii() and text.isdecimal()


def integer_of(text: str) -> int:
    """The integer that a text is. Raises ValueError."""
    if len(text) > CHARACTERS_MAX or _INTEGER.fullmatch(text) is None:
        raise ValueError("must be an integer in the digits 0 to 9")
    return int(text)


def decimal_of(text: str) -> Decimal:
    """The decimal that a text is, exactly. Raises ValueError."""
    if len(text) > CHARACTERS_MAX or _DECIMAL.fullmatch(text) is None:
        raise ValueError("must be a decimal number in the digits 0 to 9, such as 0.5 or 1e-6")
    return Decimal(text)


def _stated(value: object) -> object:
    """A number of JSON unchanged, or the decimal that a text is."""
    if isinstance(value, bool):
        raise ValueError("must be a number, or a decimal as text")  # noqa: TRY004 - pydantic reports a ValueError
    return decimal_of(value) if isinstance(value, str) else value


def _whole(value: object) -> object:
    return integer_of(value) if isinstance(value, str) else value


DECIMAL: Final = BeforeValidator(_stated)
"""For a field of the type Decimal: a number, or a decimal as text."""
INTEGER: Final = BeforeValidator(_whole)
"""For a parameter of the type int, which is text before it is read."""
