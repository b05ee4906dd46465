"""Texts of a service with control characters for a terminal escaped; only this module decides which these are."""

from typing import Final

_JOINERS: Final = "\u200c\u200d"
"""Joining characters, which Persian, Indian scripts and emoji need; they are harmless to a terminal."""


def printable(text: object) -> str:
    """The text on one line, with unprintable characters escaped, such as ESC, newlines and lone surrogates."""
    told = str(text)
    return told if told.isprintable() else "".join(map(_shown, told))


def printable_lines(text: str) -> str:
    """The text with unprintable characters other than newlines escaped."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """A JSON document in which unprintable characters other than newlines are escaped as in JSON."""
    return "".join(each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)


def _shown(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else ascii(character)[1:-1]


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
