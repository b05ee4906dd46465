"""docs/papers.md leaves out no numbered statement of the papers, and names functions, tests and pictures that exist."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
STATEMENTS: Final = {
    "Feldman and Zrnic 2021": """
        Theorem 1.1, Theorem 1.2, Definition 2.1, Definition 2.2, Definition 2.3, Fact 2.4, Definition 2.5,
        Example 2.6, Example 2.7, Theorem 3.1, Corollary 3.2, Algorithm 1, Definition 4.1, Lemma 4.2, Theorem 4.3,
        Remark 4.4, Algorithm 2, Theorem 4.5, Remark 4.6, Corollary 4.7, Theorem 4.8, Algorithm 3, Proposition 5.1,
        Table of §5.1, Figure 1
    """,
    "Feldman and Zrnic 2020, the first version": """
        Theorem 1.1, Definition 2.1, Definition 2.2, Definition 2.3, Fact 2.4, Algorithm 1, Definition 2.5,
        Definition 2.6, Example 2.7, Example 2.8, Proposition 2.9, Theorem 3.1, Corollary 3.2, Algorithm 2,
        Definition 4.1, Lemma 4.2, Theorem 4.3, Remark 4.4, Algorithm 3, Theorem 4.5, Odometers of §5
    """,
    "Koskela, Tobaben and Honkela 2023": """
        Definition 1, Lemma 2, Definition 3, Theorem 4, Definition 5, Theorem 6, Corollary 7, Lemma 8, Definition 9,
        Lemma 10, Theorem 11, Algorithm 1, Theorem 12, Filter of §5, Figure 1, Figure 2, Theorem B.1, Algorithm 2,
        Theorem C.1, Corollary C.2, Remark C.3, Lemma C.4, Figure 3, Figure 4, Figure 5, Odometers of C.5,
        Blackwell of C.6, Lemma D.1, Theorem D.2, Figure 6, Figure 7, Figure 8, Figure 9, Figure 10
    """,
    "Thudi et al. 2023": "Definition of DP, Update of DP-SGD, Rényi divergence, Definition of per-instance DP",
}
"""The numbered statements of each paper, in its order; of two papers as far as the text is at hand."""
LATER: Final = {"Feldman and Zrnic 2020, the first version": "Feldman and Zrnic 2021"}
"""The later version of a paper, whose rows hold for statements of equal number and content."""
NOT_BUILT: Final = "not built, because "
NARROWER: Final = "narrower"
WORDS_MIN: Final = 4
"""A reason has so many words at least; numbers and names in code are none."""
AS_LATER: Final = "as in the later version"


def rows(page: str, paper: str) -> list[list[str]]:
    """The cells of each row of a paper's first table, without the header."""
    _, heading, section = page.partition(f"\n## {paper}\n")
    if not heading:
        raise LookupError(paper)
    table = re.findall(r"^\| (.+) \|$", section.partition("\n| statement")[2].partition("\n\n")[0], re.MULTILINE)
    return [[cell.strip() for cell in re.split(r" ?\|(?: |$)", line)] for line in table if not line.startswith("---")]


def complaints(page: str, paper: str, statements: Sequence[str]) -> list[str]:
    """Everything that is wrong with the table of a paper."""
    found = rows(page, paper)
    told = [name for cells in found for name in cells[0].split(", ")]
    wrong = [f"{name} is missing" for name in statements if name not in told]
    if not wrong and told != list(statements):
        wrong.append(f"the order is {told}")
    for name, says, project, *others in found:
        if says == AS_LATER:
            later = {cells[0] for cells in rows(page, LATER[paper])}
            wrong += [f"{each} is not in the later version" for each in name.split(", ") if each not in later]
            continue
        functions, tests = re.findall(r"`([\w.]+)`", project), re.findall(r"`[\w/]+\.py::\w+`", " ".join(others))
        if not says:
            wrong.append(f"{name} says nothing")
        if project.startswith(NOT_BUILT):
            wrong += [] if len(reason_in_words(project)) >= WORDS_MIN else [f"{name} is not built without a reason"]
        elif NARROWER in project and len(reason_in_words(project)) < WORDS_MIN:
            wrong.append(f"{name} is narrower without a reason")
        elif not functions or not tests:
            wrong.append(f"{name} has no function or no test")
    return wrong


def reason_in_words(project: str) -> list[str]:
    """The words after `because` in a cell."""
    return re.findall(r"[^\W\d_]+", re.sub(r"`[^`]*`", "", project.partition("because")[2]))


def named_tests(page: str) -> list[tuple[str, str]]:
    """Path and name of each test on a page."""
    return sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", page)))


@pytest.mark.parametrize("paper", STATEMENTS)
def test_no_numbered_statement_is_missing(paper: str) -> None:
    """In the order of the paper, each with a function and a test, or with the reason why it is not built."""
    statements = [name.strip() for name in STATEMENTS[paper].split(",")]

    assert complaints(PAGE, paper, [" ".join(name.split()) for name in statements]) == []


def test_the_page_has_four_papers() -> None:
    """Each section with a table of statements is of one of them, and the head counts them."""
    assert re.findall(r"^## (.+)\n(?:\n.+\n)+?\n\| statement ", PAGE, re.MULTILINE) == list(STATEMENTS)
    assert len(STATEMENTS) == 4
    assert "of the four papers" in PAGE.partition("\n## ")[0]


def test_a_missing_statement_is_noticed() -> None:
    """And one without a function, a test, a reason in words, or out of its place."""
    page = "\n## P\n\n| statement | it says |\n|---|---|---|---|---|\n{}\n\nmore"
    good = "| Lemma 1 | x | `a.b` | `c.py::d` | |"
    assert complaints(page.format(good), "P", ["Lemma 1"]) == []
    assert complaints(page.format(good), "P", ["Lemma 1", "Lemma 2"]) == ["Lemma 2 is missing"]
    for bad in (
        "| Lemma 1 | x | | `c.py::d` | |",
        "| Lemma 1 | x | `a.b` | | |",
        "| Lemma 1 | | `a.b` | `c.py::d` | |",
    ):
        assert len(complaints(page.format(bad), "P", ["Lemma 1"])) == 1
    why = "it depends on all other records"
    assert complaints(page.format(f"| Lemma 1 | x | not built, because {why} | | |"), "P", ["Lemma 1"]) == []
    narrow = "| Lemma 1 | x | `a.b`: narrower{} | `c.py::d` | |"
    assert complaints(page.format(narrow.format(f", because {why}")), "P", ["Lemma 1"]) == []
    unsaid = "| Lemma 1 | x | not built, because 2 of 3 `are_not_in_here` | | |"
    assert complaints(page.format(unsaid), "P", ["Lemma 1"]) == ["Lemma 1 is not built without a reason"]
    assert complaints(page.format(narrow.format("")), "P", ["Lemma 1"]) == ["Lemma 1 is narrower without a reason"]
    first, later = next(iter(LATER.items()))
    both = page.format(f"| Lemma 1, Lemma 2 | {AS_LATER} | | | |").replace("## P", f"## {first}")
    both += page.format(good).replace("## P", f"## {later}")
    assert complaints(both, first, ["Lemma 1", "Lemma 2"]) == ["Lemma 2 is not in the later version"]
    other = good.replace("Lemma 1", "Lemma 2")
    assert len(complaints(page.format(f"{other}\n{good}"), "P", ["Lemma 1", "Lemma 2"])) == 1


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`((?:service|sparing|sparing_papers|sparing_audit|sparing_local)\.[\w.]+)`", PAGE)))
)
def test_each_function_of_the_page_exists(name: str) -> None:
    """By its full path, methods included."""
    assert resolve_name(name) is not None


@pytest.mark.parametrize(("path", "name"), named_tests(PAGE))
def test_each_test_of_the_page_exists(path: str, name: str) -> None:
    """The file named has a function of that name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_picture_of_the_page_exists_and_each_picture_is_on_it() -> None:
    """A picture that no text explains would not be found."""
    shown = set(re.findall(r"\]\((figures/[\w-]+\.png)\)", PAGE))

    assert shown == {f"figures/{path.name}" for path in (ROOT / "docs" / "figures").iterdir()}
