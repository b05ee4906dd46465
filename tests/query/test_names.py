"""A name is seen as it is: no character of it hides, turns the line around, or looks like none."""

import pytest
from pydantic import ValidationError

from service.query.names import fault_of_name
from service.query.schema import CategoryColumn

GOOD = ("a", "Ann of the town", "Bodø", "\u0915\u094d\u0937", "e\u0301", "\u4e2d\u6587", "\N{HEAVY BLACK HEART}\ufe0f")
HIDDEN: tuple[str, ...] = ("\u3000a", "a\n", "a\u00a0")
HIDDEN += ("\u3164", "\u115f", "\u2800", "\uffa0", "\u034f", "\ufe0f", "\u0301", "a\u3164", "a\u202eb", "a\u200bb")
HIDDEN += ("\ufeffa", "a\nb", "a\tb", "a\0b", "a\x1b[2Jb", "a\u00a0b", "a\u2028b", "\u2066a", "a\u00adb")


@pytest.mark.parametrize("name", GOOD)
def test_a_name_in_any_script_is_good(name: str) -> None:
    """With marks on its letters, too."""
    assert fault_of_name(name, 128) is None


@pytest.mark.parametrize("name", HIDDEN)
def test_a_character_that_cannot_be_seen_is_named(name: str) -> None:
    """Fillers, control characters, turns of the line, separators and marks that stand alone."""
    assert "U+" in (fault_of_name(name, 128) or "")


@pytest.mark.parametrize("name", [" ", " a", "a ", " \u00e9"])
def test_a_blank_at_an_end_is_refused(name: str) -> None:
    """It is not seen, and a file or a form may drop it."""
    assert fault_of_name(name, 128) == "must not begin or end with a blank"


def test_a_name_has_a_length() -> None:
    """In characters."""
    assert fault_of_name("", 5) == fault_of_name("abcdef", 5) == "must have 1 to 5 characters"
    assert fault_of_name("ååååå", 5) is None


def test_a_category_is_a_name() -> None:
    """Beside it the empty text, and blanks around a value: files may hold both."""
    assert CategoryColumn(type="category", categories=("", "NO", " NO ", 5)).categories == ("", "NO", " NO ", 5)
    for name in (*HIDDEN, "  ", "a" * 1001):
        with pytest.raises(ValidationError, match="categor"):
            CategoryColumn(type="category", categories=("NO", name))
