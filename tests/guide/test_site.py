"""The built guide: it loads nothing from elsewhere, its links lead somewhere, and its references are complete."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import sparing
from clients.guide.hatch_build import HERE
from clients.guide.interface import document
from service.api.routes.guide import policy_of
from tests.architecture.source import ROOT

FIRST_PAGES = {
    "Curator": "first-hour/#curator",
    "Analyst": "first-hour/#analyst",
    "Individual": "first-hour/#individual",
    "Auditor": "first-hour/#auditor",
    "Operator": "first-hour/#operator",
    "Researcher": "guarantee/",
}
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Elements(HTMLParser):
    """The elements of a page, each with its attributes, and the ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    @property
    def ids(self) -> set[str]:
        return {str(attributes["id"]) for _, attributes in self.found if "id" in attributes}


def page(site: Path, place: str) -> str:
    """The text of a page."""
    return (site / place / "index.html").read_text(encoding="utf-8")


def pages(site: Path) -> dict[str, Elements]:
    """The elements of every page, by its path."""
    found = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    return {path: Elements(text) for path, text in found.items()}


def test_no_page_and_no_style_loads_anything_from_elsewhere(guide_site: Path) -> None:
    """Scripts, styles, fonts and pictures lie in the guide. Links for readers are no loading."""
    loaded = {
        value
        for elements in pages(guide_site).values()
        for tag, attributes in elements.found
        if (value := attributes.get(LOADING.get(tag, "")))
    }
    styles = [path.read_text(encoding="utf-8") for path in guide_site.rglob("*.css")]

    assert len(loaded) > 20
    assert [value for value in loaded if re.match(r"(?:[a-z]+:)?//", value)] == []
    places = [place.strip("'\"") for text in styles for place in re.findall(r"(?:url\(|@import)\s*([^);]+)", text)]
    assert places
    assert [place for place in places if not place.startswith("data:")] == []


def test_no_page_needs_what_its_policy_forbids(guide_site: Path) -> None:
    """No style within a page, no handler in an attribute; each script within it is named by its hash."""
    for path, elements in pages(guide_site).items():
        forbidden = [attribute for _, attributes in elements.found for attribute in attributes if attribute == "style"]
        handlers = [attribute for _, attributes in elements.found for attribute in attributes if attribute[:2] == "on"]
        text = (guide_site / path).read_text(encoding="utf-8")
        assert (path, forbidden, handlers, "<style" in text) == (path, [], [], False)
        assert policy_of(text).count("'sha256-") == len(set(re.findall(r"<script>(.*?)</script>", text, re.DOTALL))) > 0


def test_the_start_leads_each_reader_to_a_first_page(guide_site: Path) -> None:
    """Five roles and a researcher; above that the two pictures."""
    text = page(guide_site, "")
    firsts = dict(re.findall(r"<td[^>]*><strong>(\w+)</strong></td>.*?href=\"([^\"]+)\"", text, re.DOTALL))

    assert firsts == FIRST_PAGES
    assert {"demo.png", "dashboard.png"} <= set(re.findall(r"<img[^>]* src=\"([^\"]+)\"", text))


def test_the_references_are_complete(guide_site: Path) -> None:
    """Every operation and type of the interface, and every name of the client."""
    told = document()
    language = Elements(page(guide_site, "reference/query-language")).ids
    interface = Elements(page(guide_site, "reference/http")).ids
    python = Elements(page(guide_site, "reference/python")).ids
    types = {f"type-{name}" for name in told["components"]["schemas"]}
    operations = {each["operationId"] for methods in told["paths"].values() for each in methods.values()}
    public = {name for name in sparing.__all__ if callable(getattr(sparing, name))}

    assert operations <= interface
    assert types <= language ^ interface
    assert {"type-Query", "type-Noise", "type-Condition", "type-CategoryColumn"} <= language
    assert {f"sparing.{name}" for name in public} <= python
    assert {"sparing.testing.FakeService", "sparing.research.descend"} <= python
    with sparing.Client(api_key="k", base_url="http://sparing") as client:
        parts = [type(part) for name, part in vars(client).items() if name[0] != "_"]
    assert {f"{part.__module__}.{part.__qualname__}" for part in parts} <= python


@pytest.mark.parametrize("source", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_a_page_has_the_headings_and_blocks_of_its_source(guide_site: Path, source: str) -> None:
    """A block of code ends where it ends, also with words after its language."""
    parts = re.split(
        r"^ *```.*?^ *```$", (ROOT / "docs" / source).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    text = page(guide_site, "" if source == "index.md" else source.removesuffix(".md"))

    assert len(re.findall(r"<h2\b", text)) == sum(len(re.findall(r"^## ", part, re.MULTILINE)) for part in parts)
    assert "```" not in text
    assert len(re.findall(r"<div class=\"(?:language-\w+ )?highlight\">", text)) >= len(parts) - 1


def test_a_notebook_is_a_page_with_its_outputs(guide_site: Path) -> None:
    """Words, code, tables without styles of their own, and pictures as files."""
    text = page(guide_site, "notebooks/health-insurance")

    assert "<h1" in text
    assert "curator.datasets.create" in re.sub(r"<[^>]+>", "", text)
    assert '<div class="output">' in text
    for name in re.findall(r"<img[^>]* src=\"\.\./([^\"]+\.png)\"", text):
        assert (guide_site / "notebooks" / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("lost", [["missing.md", "index.md#nowhere", "/guide/"], []], ids=["lost", "found"])
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, lost: list[str]) -> None:
    """With the settings of the guide, on a page of its own: a file, an anchor, an address of the site's host."""
    (tmp_path / "docs").mkdir()
    links = "\n\n".join(f"[a]({link})" for link in ["#here", *lost])
    (tmp_path / "docs" / "index.md").write_text(f"# A\n\n{links}\n\n## Here\n", encoding="utf-8")
    settings = f"INHERIT: {ROOT / HERE / 'mkdocs.yml'}\ndocs_dir: docs\nsite_dir: site\nnav: [index.md]\nhooks: []\n"
    (tmp_path / "mkdocs.yml").write_text(f"{settings}plugins: []\nextra_css: []\n", encoding="utf-8")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(build, check=False, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == (1 if lost else 0), done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == len(lost), done.stderr
    assert all(link.removeprefix("index.md") in " ".join(warnings) for link in lost), done.stderr
