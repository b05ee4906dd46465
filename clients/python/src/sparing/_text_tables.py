"""Aligned tables of text for a terminal, in which wide and combining characters count as they are shown."""

import unicodedata
from collections.abc import Sequence

from sparing._printable import printable

Cell = tuple[str, bool]
"""A text, and a flag that is true if the text is aligned to the right."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, indent: str = "") -> str:
    """The text of a table: columns are as wide as their widest cell, and two blanks apart."""
    is_right = [right for _, right in rows[0]] if rows else [False] * len(header)
    head = [[(printable(name), right) for name, right in zip(header, is_right, strict=True)]] if header else []
    cells = [*head, *rows]
    widths = [max(_width(row[place][0]) for row in cells) for place in range(len(is_right))] if cells else []
    return "\n".join(
        (indent + "  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in cells
    )


def _padded(cell: Cell, width: int) -> str:
    text, is_right = cell
    blanks = " " * (width - _width(text))
    return blanks + text if is_right else text + blanks


def _width(text: str) -> int:
    """The number of a terminal's columns that a text fills."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)
