"""Text of a service as a terminal, a notebook and JSON show it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import SparingError
from sparing._printable import printable, printable_json

SHOWN = {
    "plain": "plain",
    "å ☃ 🦉": "å ☃ 🦉",
    "\x1b[2J": r"\x1b[2J",
    "\x9b31m": r"\x9b31m",
    "a\r\nb\tc": r"a\r\nb\tc",
    "\u202egnp.x": r"\u202egnp.x",
    "\ud800": r"\ud800",
    "\u0645\u06cc\u200c\u062e": "\u0645\u06cc\u200c\u062e",
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.items())
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    """And letters of any language are as they are."""
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\x1b\x9b\ud800\n")))
def test_an_error_and_json_of_any_text_can_be_printed(text: str) -> None:
    """The lines of an error stay lines, and JSON stays the same JSON."""
    assert len(str(SparingError(text)).encode()) >= len(text)
    document: Any = {text: [text]}
    shown = printable_json(json.dumps(document, ensure_ascii=False, indent=2))
    assert json.loads(shown) == document
    assert all(line.isprintable() for line in shown.split("\n"))
