"""The words: retired names stay retired, and docstrings begin with their fact."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache

import pytest

from tests.architecture.rules import Rule
from tests.architecture.source import Module, module, modules

# Words of a private vocabulary, and the words of the field that have taken their places.
RETIRED = {
    "house": "replica",
    "desk": "committer",
    "errand": "job",
    "journey": "round trip",
    "parcel": "outgoing commit",
    "courier": "forwarding client",
    "premises": "adapters",
    "furnished": "open_adapters",
    "vouch": "confirm_recorded",
    "shelf": "key-value store",
    "whoever": "name the noun",
    "reception": "request context",
    "punctual": "deadline",
}
RETIRED_NAMES = {
    "House",
    "Line",
    "Lines",
    "DatasetWriter",
    "Desk",
    "Question",
    "Proposer",
    "Proposal",
    "Outdated",
    "Recall",
    "News",
    "Shelf",
    "Edge",
    "Life",
    "Reception",
    "Courier",
    "Patience",
    "Premises",
    "SharedReply",
    "_door",
    "is_vouched",
    "doubt",
    "doubt_all",
}
OURS = ("service", "clients", "loadtests", "tests")
PRONOUNS = re.compile(r"\b(?:who|whoever|nobody|somebody)\b", re.IGNORECASE)
FREE_RELATIVE = re.compile(r"\s*(?:What|Who|Whoever|Whatever)\b")
FRAGMENT = re.compile(r"(?:Of|As|Whether|Where|The same|So many|Nobody|None)\b")
PRONOUNS_PER_THOUSAND_MAX = 1.0


@cache
def docstrings(found: Module) -> list[tuple[int, str]]:
    """Line and text of every docstring of a module, those of attributes included."""
    return [
        (statement.lineno, statement.value.value)
        for node in ast.walk(found.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
        if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    ]


def names(found: Module) -> Iterator[tuple[int, str]]:
    """Line and text of every name in the code of a module."""
    for token in tokenize.generate_tokens(io.StringIO(found.text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def retired_names(found: Module) -> list[str]:
    """Names that were replaced, or hold a retired word; a module without such a word is not split into its tokens."""
    if not any(map(is_retired, set(re.findall(r"\w+", found.text)))):
        return []
    return [f"{found.path}:{line} {name}" for line, name in names(found) if is_retired(name)]


@cache
def is_retired(name: str) -> bool:
    """Tell whether a name was replaced, or holds a retired word."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return name in RETIRED_NAMES or any(word in spaced for word in RETIRED)


def retired_words(found: Module) -> list[str]:
    """Docstrings with a retired word."""
    words = re.compile(rf"\b(?:{'|'.join(RETIRED)})s?\b", re.IGNORECASE)
    return [
        f"{found.path}:{line} {match.group(0)}" for line, text in docstrings(found) for match in words.finditer(text)
    ]


def free_relatives(found: Module) -> list[str]:
    """Docstrings that begin with a free relative, such as What or Who, instead of their fact."""
    return [f"{found.path}:{line} {text[:40]}" for line, text in docstrings(found) if FREE_RELATIVE.match(text)]


def fragments(found: Module) -> list[str]:
    """Docstrings that begin with a word that begins no sentence and no noun phrase of their own."""
    return [f"{found.path}:{line} {text[:40]}" for line, text in docstrings(found) if FRAGMENT.match(text)]


@pytest.mark.parametrize("root", [*OURS, "migrations"])
def test_docstrings_begin_with_a_verb_or_a_noun(root: str) -> None:
    """A fragment leaves out what it is about."""
    assert [complaint for found in modules(root) for complaint in fragments(found)] == []


@pytest.mark.parametrize("rule", [retired_names, retired_words, free_relatives])
@pytest.mark.parametrize("root", OURS)
def test_the_words_are_those_of_the_field(rule: Rule, root: str) -> None:
    """No retired name, no retired word, no docstring without a subject."""
    assert [complaint for found in modules(root) for complaint in rule(found)] == []


@pytest.mark.parametrize("root", OURS)
def test_docstrings_name_their_subjects(root: str) -> None:
    """Pronouns for unnamed people are rare: a docstring says individual, analyst, caller or process."""
    texts = [text for found in modules(root) for _, text in docstrings(found)]
    words, pronouns = sum(len(text.split()) for text in texts), sum(len(PRONOUNS.findall(text)) for text in texts)

    assert words > 1000
    assert 1000 * pronouns / words <= PRONOUNS_PER_THOUSAND_MAX


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (retired_names, "class TheHouse: ..."),
        (retired_names, "self._door = 1"),
        (retired_words, '"""Two journeys."""'),
        (free_relatives, '"""What is sent."""'),
        (fragments, '"""As it is sent."""'),
        (fragments, 'size = 1; """Of a page."""'),
    ],
)
def test_each_rule_bites(rule: Rule, text: str) -> None:
    """A planted offence draws one complaint."""
    (complaint,) = rule(module("service/here.py", text))

    assert complaint.startswith("service/here.py:1 ")
