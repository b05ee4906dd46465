"""The hooks of the guide's build: pages from elsewhere in the repository, from notebooks and from the code.

Links in the sources lead from file to file of the repository, where readers follow them too. In the guide, a link to a
file that is no page becomes plain words.
"""

import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from clients.guide import interface, notebooks

ROOT: Final = Path(__file__).parents[2]
ELSEWHERE: Final = {
    "clients/python/README.md": "python-client.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
}
"""The files outside docs/ that become pages, with their places in the guide."""
ASSETS: Final = {
    "clients/dashboard/icon.svg": "icon.svg",
    "clients/guide/guide.css": "guide.css",
    "clients/guide/logo.svg": "logo.svg",
}
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_FENCE: Final = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_WORDS: Final = re.compile(r"^( *```\w+) .*$", re.MULTILINE)
"""Matches the words after the language of a code block, which tell the tests what to do with the block."""
_GENERATED: Final = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> None:
    """List the decisions in the navigation."""
    decisions = next(part["Decisions"] for entry in config.nav or [] for part in _dicts(entry) if "Decisions" in part)
    decisions += sorted(
        path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).glob("decisions/*")
    )


def _dicts(entry: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - navigation is JSON
    """The titled parts of a navigation entry, at any depth."""
    if isinstance(entry, dict):
        yield entry
        for parts in entry.values():
            for part in parts if isinstance(parts, list) else []:
                yield from _dicts(part)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and assets that lie outside docs/, and turn each notebook into a page with its pictures."""
    for source, place in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    for source, place in ASSETS.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        files.remove(file)
        page = notebooks.page_of(Path(str(file.abs_src_path)))
        place = file.src_uri.removesuffix(".ipynb")
        files.append(File.generated(config, f"{place}.md", content=page.text))
        for name, png in page.pictures.items():
            files.append(File.generated(config, posixpath.join(posixpath.dirname(place), name), content=png))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Insert the generated parts, and point links to pages of the guide."""
    place = page.file.src_uri
    generated = _GENERATED.sub(lambda found: interface.PARTS[found[1]](), markdown)
    pieces = _FENCE.split(_WORDS.sub(r"\1", generated))
    return "".join(each if each.lstrip(" ").startswith("```") else _linked(each, place, files) for each in pieces)


def on_post_build(config: MkDocsConfig) -> None:
    """Remove unused files: search is in English only, and the service has its own answer to a 404."""
    site = Path(config.site_dir)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr")
    for path in [*site.rglob("*.map"), *site.glob("404.html"), *site.glob("sitemap.xml*")]:
        path.unlink()


def _linked(text: str, place: str, files: Files) -> str:
    def led(found: re.Match[str]) -> str:
        target, mark, anchor = found["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        page = _page_at(posixpath.normpath(posixpath.join(posixpath.dirname(_source_of(place)), target)))
        if files.get_file_from_path(page) is None:
            if found["image"] or (ROOT / posixpath.dirname(_source_of(place)) / target).exists() is False:
                return found[0]  # reported by the strict build
            return found["words"]
        relative = posixpath.relpath(page, posixpath.dirname(place) or ".")
        return f"{found['image']}[{found['words']}]({relative}{mark}{anchor})"

    return _LINK.sub(led, text)


def _source_of(place: str) -> str:
    """The path in the repository from which a page of the guide comes."""
    return next((source for source, page in ELSEWHERE.items() if page == place), f"docs/{place}")


def _page_at(source: str) -> str:
    """The page of the guide that comes from a file of the repository; a place without a page if no page does."""
    if source in ELSEWHERE:
        return ELSEWHERE[source]
    if source == "README.md":
        return "index.md"
    place = source.removeprefix("docs/") if source.startswith("docs/") else f"../{source}"
    return f"{place.removesuffix('.ipynb')}.md" if place.endswith(".ipynb") else place
