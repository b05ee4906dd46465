"""The one rule for names that people read: of keys, organisations, purposes and categories.

Two names that look alike are different in the ledger, but a reader takes them for one. A control character may reverse
a line or hide it. Datasets, tables and columns have narrower names, of ASCII letters and digits (`Name`).
"""

import unicodedata
from typing import Final

_BLANK_LETTERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without a shape, which Unicode counts as visible: fillers, joiners and the blank of Braille."""


def fault_of_name(text: str, length_max: int) -> str | None:
    """The fault of a name, as a message states it after the name's field; None for a good name."""
    if not 1 <= len(text) <= length_max:
        return f"must have 1 to {length_max} characters"
    if not (text.isascii() and text.isprintable()):
        unseen = next((letter for letter in text if not letter.isprintable() or letter in _BLANK_LETTERS), None)
        if unseen is None and unicodedata.category(text[0]).startswith("M"):
            unseen = text[0]  # a mark alone has no letter to stand on
        if unseen is not None:
            return f"must hold no character that cannot be seen, such as U+{ord(unseen):04X}"
    return "must not begin or end with a blank" if text.startswith(" ") or text.endswith(" ") else None
