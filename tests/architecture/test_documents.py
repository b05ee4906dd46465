"""Documents are a tested surface: their links lead somewhere, and each decision says what enforces it."""

import ast
import re

import pytest

from tests.architecture.source import ROOT, files, module

SECTIONS = ["Context", "Decision", "Rejected"]
DECISIONS = [path for path in files() if path.startswith("docs/decisions/")]
PAGES = [path for path in files() if path.endswith(".md")]


def text_of(path: str) -> str:
    """The text of one of the repository's files."""
    return (ROOT / path).read_text(encoding="utf-8")


def decisions_named(text: str) -> set[int]:
    """The decisions that a text names by their number, with or without a link."""
    return {int(number) for number in re.findall(r"\b(?:docs/decisions/|[Dd]ecision )(\d+)\b", text)}


def test_a_decision_that_is_named_is_there() -> None:
    """Each decision has a number of its own, and code and documents name no other number."""
    numbers = [int(path.split("/")[-1][:4]) for path in DECISIONS]
    texts = {path: text_of(path) for path in files() if path.endswith((".md", ".py"))}
    named = {path: decisions_named(text) - set(numbers) for path, text in texts.items()}

    assert numbers == sorted(set(numbers))
    assert decisions_named("[decision 8](8.md), docs/decisions/0010") == {8, 10}
    assert {path: missing for path, missing in named.items() if missing} == {}


@pytest.mark.parametrize("path", DECISIONS)
def test_each_decision_is_one_page_of_three_parts(path: str) -> None:
    """A decision carries its number, says the line people will quote, and is read in a minute."""
    text = text_of(path)

    assert re.findall(r"^# (\d+)\. \S", text, re.MULTILINE) == [str(int(path.rsplit("/", maxsplit=1)[-1][:4]))]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert re.search(r"^## Decision\n\n\*\*.+", text, re.MULTILINE)
    assert len(text.splitlines()) <= 40


@pytest.mark.parametrize("path", DECISIONS)
def test_what_enforces_a_decision_exists(path: str) -> None:
    """Every test that a decision names is there."""
    named = re.findall(r"`([\w./-]+)`", text_of(path).partition("\nEnforced by ")[2].partition("\n")[0])

    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", PAGES)
def test_links_between_documents_lead_somewhere(path: str) -> None:
    """A relative link names a file or folder of the repository."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(path))
    relative = [target for target in targets if "://" not in target and not target.startswith("mailto:")]

    assert [target for target in relative if not ((ROOT / path).parent / target).exists()] == []


def test_the_glossary_is_in_order_and_says_each_word_once() -> None:
    """A word is found where the alphabet puts it, and has one meaning."""
    tables = [
        re.findall(r"^\| \*\*([\w ]+)\*\* \|", part, re.MULTILINE)
        for part in text_of("docs/glossary.md").split("\n## The machine\n")
    ]

    assert {"individual", "analyst", "curator", "auditor", "charge", "release", "ledger", "slot", "page"} <= {
        *tables[0]
    }
    assert {"witness", "burn", "fence", "head", "batch", "checkpoint", "replica", "worker"} <= {*tables[1]}
    assert tables == [sorted(set(words)) for words in tables]
    assert not set(tables[0]) & set(tables[1])


def test_the_licence_is_whole() -> None:
    """The text of the licence is that of Apache 2.0, from its first line to the end of its terms."""
    text = text_of("LICENSE")

    assert text.split()[:5] == ["Apache", "License", "Version", "2.0,", "January"]
    assert "END OF TERMS AND CONDITIONS" in text


def kinds_of_acts(text: str) -> set[str]:
    """The kinds that a module of Python journals: the words in the first argument of every call of `journal`."""
    calls = [node for node in ast.walk(module("service/here.py", text).tree) if isinstance(node, ast.Call)]
    kinds = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "journal"]
    words = [[part.value for part in _outcomes(kind) if isinstance(part, ast.Constant)] for kind in kinds]
    if not all(words):
        raise ValueError("the kind of an act is a word, or a choice of two, where it is journalled")
    return {str(word) for each in words for word in each}


def _outcomes(kind: ast.expr) -> list[ast.expr]:
    return [kind.body, kind.orelse] if isinstance(kind, ast.IfExp) else [kind]


def test_every_kind_of_act_is_documented_and_no_other() -> None:
    """The log of acts is explained by the kinds that the code journals, in the document and in the client."""
    rooms = ("service/writer/", "service/maintenance/", "service/workflows/")
    sources = [path for path in files() if path.startswith(rooms) and path.endswith(".py")]
    journalled = set().union(*(kinds_of_acts(text_of(path)) for path in sources))
    section = text_of("docs/ledger.md").partition("\n## The log of acts\n")[2].partition("\n## ")[0]
    models = text_of("clients/python/src/sparing/_models.py")
    (named,) = re.findall(r'^class ActRow:\n    """(.+?)"""$', models, re.MULTILINE | re.DOTALL)

    assert {"rows", "pause", "resume"} <= journalled
    assert set(re.findall(r"\(`(\w+)`\)", section)) == journalled
    assert set(re.findall(r'"(\w+)"', named)) == journalled


def test_a_kind_that_is_made_elsewhere_is_noticed() -> None:
    """A variable would hide a kind of act from the comparison with the documents."""
    assert kinds_of_acts("transaction.journal('a' if x else 'b', {})") == {"a", "b"}
    with pytest.raises(ValueError, match="is a word"):
        kinds_of_acts("transaction.journal(kind, {})")


def test_documents_install_our_distributions_from_a_clone() -> None:
    """No index has them: `pip install sparing-client` would end in an error, or bring somebody else's."""
    texts = {path: text_of(path) for path in files() if path.endswith((".md", ".ipynb"))}
    installed = {path: re.findall(r"pip install ([^`\n]+)", text) for path, text in texts.items()}

    assert "docs/your-data.md" in {path for path, found in installed.items() if found}
    assert {path: found for path, found in installed.items() if re.search(r"\bsparing\b", " ".join(found))} == {}
