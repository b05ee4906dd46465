"""A statement is found however it is wrapped and wherever its function is, and only if it stands there once."""

from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest

from tests.mutants.mutant import DoesNotApply, Mutant
from tests.mutants.source import Span, statements, tokens

SOURCE = """
LIMIT = 10
QUERY = "SELECT seq FROM entries WHERE hash = %s"


class Account:
    @property
    def left(self) -> int:
        return self.limit - self.spent

    def charge(self, units: int) -> None:
        # Never beyond the limit.
        if units > self.left:
            raise Refused(units, limit=self.limit, spent=self.spent)
        self.spent += units


def charge(account: Account, units: int) -> None:
    def refuse() -> None:
        raise Refused(units)

    account.spent += units
"""
HERE = "service/accounts.py"


def mutant(definition: str, find: str, put: str = "pass") -> Mutant:
    """A bug of the module above."""
    where = f"{HERE}: {definition}" if definition else HERE
    return Mutant(name="m", incident="x.", where=where, find=find, put=put, killed_by=("tests/test_a.py",))


def written(root: Path, **files: str) -> Path:
    """A tree with these modules of the service."""
    for name, text in files.items():
        (root / "service").mkdir(exist_ok=True)
        (root / "service" / f"{name}.py").write_text(text)
    return root


def fixed(text: str) -> list[str]:
    """The tokens that no formatter adds or takes away."""
    return [token.text for token in tokens(text) if not token.is_optional]


@pytest.mark.parametrize(
    ("definition", "find", "put", "line"),
    [
        ("LIMIT", "10", "11", "LIMIT = 11"),
        ("QUERY", "hash = %s", "true", 'QUERY = "SELECT seq FROM entries WHERE true"'),
        ("Account.left", "self.limit - self.spent", "self.limit", "        return self.limit"),
        ("Account.charge", "self.spent += units", "", "        "),
        ("Account", "self.limit - self.spent", "0", "        return 0"),
        ("charge", "account.spent += units", "pass", "    pass"),
        ("charge.refuse", "raise Refused(units)", "raise Refused(0)", "        raise Refused(0)"),
        ("", "LIMIT = 10", "LIMIT = 9", "LIMIT = 9"),
    ],
)
def test_a_bug_is_put_into_its_definition(tmp_path: Path, definition: str, find: str, put: str, line: str) -> None:
    """Functions, methods, properties, constants, texts within string literals and whole modules are anchors."""
    file, text = mutant(definition, find, put).applied(written(tmp_path, accounts=SOURCE))

    [(old, new)] = [pair for pair in zip(SOURCE.split("\n"), text.split("\n"), strict=True) if pair[0] != pair[1]]
    assert (file, new) == (HERE, line)
    assert find in old


def test_lines_of_a_bug_are_indented_like_the_statement_that_they_replace(tmp_path: Path) -> None:
    """The tables do not repeat how deep a statement is."""
    _, text = mutant("Account.charge", "self.spent += units", "if units:\n    return").applied(
        written(tmp_path, accounts=SOURCE)
    )
    assert "        if units:\n            return\n" in text


@pytest.mark.parametrize(
    ("find", "formatted"),
    [
        ("return total(first, second)", "return total(\n    first,  # the larger one\n    second,\n)"),
        ("return total(\n    first,\n    second,\n)", "return total(first, second)"),
        ("return first + second", "return (\n    first\n    + second\n)"),
        ("return (\n    first\n    + second\n)", "return first + second"),
        ("x = first if second else None", "x = (\n    first\n    if second\n    else None\n)"),
        ("if first:\n    return second", "if first:\n\n    # Why.\n    return second"),
        ("return ()", "return ()"),
        ("with open(first) as file:", "with (\n    open(first) as file,\n):\n    pass"),
        ("while (first\n    and second):", "while first and second:\n    pass"),
    ],
)
def test_a_statement_is_found_however_it_is_wrapped(find: str, formatted: str) -> None:
    """Lines, comments, last commas and parentheses around a whole expression make no difference, in either way."""
    source = f"def f():\n{indent(formatted, '    ')}\n"

    [(start, end)] = statements(source, Span(0, len(source)), find)

    assert fixed(source[start:end]) == fixed(find)


@pytest.mark.parametrize(
    ("source", "find"),
    [
        ("def f():\n    return (a + b) * c\n", "return a + b"),
        ("def f():\n    return (\n        a\n        + b\n    )\n", "return a"),
        ("def f():\n    return g(a, b)\n", "g(a)"),
        ("def f():\n    return g((a, b))\n", "g(a, b)"),
    ],
)
def test_other_statements_are_not_taken_for_it(tmp_path: Path, source: str, find: str) -> None:
    """A parenthesis that changes the meaning is a difference, and none stays open."""
    with pytest.raises(DoesNotApply, match="found 0 times"):
        mutant("f", find).applied(written(tmp_path, accounts=source))


@pytest.mark.parametrize(("find", "count"), [("no such text", 0), ("units", 3)])
def test_a_statement_that_does_not_stand_once_is_told(tmp_path: Path, find: str, count: int) -> None:
    """A bug that can no longer be made must not count as killed."""
    with pytest.raises(DoesNotApply, match=f"found {count} times in service/accounts.py: charge"):
        mutant("charge", find).applied(written(tmp_path, accounts=SOURCE))


def test_a_function_that_has_moved_is_followed(tmp_path: Path) -> None:
    """The bug goes to the one other module that defines it, and the catalogue can be written anew."""
    root = written(tmp_path, accounts="", ledger=SOURCE, other="def charge(): ...")
    moved = mutant("Account.charge", "self.spent += units")

    assert moved.applied(root)[0] == "service/ledger.py"
    assert moved.followed(root) == replace(moved, where="service/ledger.py: Account.charge")


@pytest.mark.parametrize("count", [0, 2])
def test_a_function_that_is_nowhere_or_in_two_modules_is_told(tmp_path: Path, count: int) -> None:
    """A guess would put the bug where nobody meant it."""
    root = written(tmp_path, accounts="", **{f"ledger_{number}": SOURCE for number in range(count)})

    with pytest.raises(DoesNotApply, match=f"charge is gone, and {count} other modules have it"):
        mutant("charge", "account.spent += units").applied(root)


def test_a_file_that_is_not_python_is_searched_for_the_text(tmp_path: Path) -> None:
    """Scripts of pages have no definitions here."""
    (tmp_path / "page.js").write_text("if (a) {\n  b();\n}")
    script = replace(mutant("", "b();", "c();"), where="page.js")

    assert script.applied(tmp_path) == ("page.js", "if (a) {\n  c();\n}")
