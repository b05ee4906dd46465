"""CSV for people: what a spreadsheet would take for a formula, under every mark between fields."""

import csv
import io

import pytest

from service.ledger.model.spreadsheets import csv_text

TEXTS = {
    "plain": "plain",
    "": "",
    "=1+1": "'=1+1",
    "+x": "'+x",
    "-x": "'-x",
    "@sum": "'@sum",
    "\uff1d1": "'\uff1d1",
    "\uff0b1": "'\uff0b1",
    "\uff0d1": "'\uff0d1",
    "\uff20a": "'\uff20a",
    "\tx": "'\tx",
    "\rx": "'\rx",
    "a;=1": "a;'=1",
    "a\n=1": "a\n'=1",
    "a\t-x": "a\t'-x",
    "a=1": "a=1",
    "a;b": "a;b",
    'say "x", =y': 'say "x", =y',
    "-5": "-5",
    "+1.5e-7": "+1.5e-7",
    "-5=x": "'-5=x",
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.items())
def test_a_text_is_read_back_as_it_is_shown(text: str, shown: str) -> None:
    """An apostrophe where a cell may begin with a sign of a formula; numbers stay as they are."""
    assert list(csv.reader(io.StringIO(csv_text([("id", text)]), newline=""))) == [["id", shown]]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_no_cell_begins_a_formula_whatever_the_mark_is_taken_to_be(mark: str) -> None:
    """Lines and fields as a reader finds them that knows another mark, and no quotation marks behind it."""
    text = csv_text([(text, text) for text in TEXTS])
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    signs = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
    begins = [cell for row in rows for cell in row if cell.startswith(signs)]
    assert {cell.partition(",")[0] for cell in begins} <= {"-5", "+1.5e-7"}


def test_numbers_and_nothing_are_written_without_marks() -> None:
    """A negative number is no formula."""
    assert csv_text([(-1, 0.5, None, True)]) == "-1,0.5,,True\n"
