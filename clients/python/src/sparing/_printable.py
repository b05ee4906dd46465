"""Text of a service without characters that a terminal would obey: the only place that decides which those are."""

from typing import Final

_JOINERS: Final = "\u200c\u200d"
"""Letters of Persian and of India, and emoji, are written with them; a terminal does not obey them."""


def printable(text: object) -> str:
    """The text on one line, with escapes for unprintable characters: ESC, newlines, lone surrogates."""
    told = str(text)
    return told if told.isprintable() else "".join(map(_shown, told))


def printable_lines(text: str) -> str:
    """Make a text of ours printable, whose newlines stay."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """A JSON document with its newlines, whose texts have escapes of JSON for unprintable characters."""
    return "".join(each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)


def _shown(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else ascii(character)[1:-1]


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
