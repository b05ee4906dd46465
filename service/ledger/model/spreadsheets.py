"""CSV for people, who open it in a spreadsheet: no text becomes a formula there, and numbers stay numbers.

A text that begins with a sign of a formula, also a full-width one, gets an apostrophe before the sign. A sign after a
semicolon, a tab or the end of a line inside a text gets one too: a spreadsheet that takes the semicolon or the tab as
the mark between fields ignores quotation marks inside a field, and a cell would begin there. The function `csv` in
clients/dashboard/format.js does the same.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_FULL_WIDTH: Final = "\uff1d\uff0b\uff0d\uff20"
_CELL_BEGINS: Final = re.compile(rf"(^|[;\t\r\n])(?=[=+\-@{_FULL_WIDTH}])|^(?=[\t\r])")
_NEEDS_QUOTES: Final = re.compile(r"[\",;\t\r\n]")


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV, one line for each row."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows)


def _cell(value: object) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = value if _NUMBER.fullmatch(value) else _CELL_BEGINS.sub(r"\1'", value)
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
