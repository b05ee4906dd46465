"""No file of the repository holds hosts of registries, addresses of package files or paths of one machine."""

import re

import pytest

from tests.architecture.source import ROOT, files, texts

# Written in pieces, so that this file does not convict itself.
REGISTRIES = re.compile(
    "py" + r"pi\.org|python" + r"hosted|npm" + r"js\.(?:org|com)|deb\." + r"debian|proxy\.go" + r"lang|crates\." + "io",
    re.IGNORECASE,
)
PACKAGE_FILES = re.compile(r"https?://\S+\.(?:whl|tar\.gz|tgz|zip|deb|crate|rpm)\b", re.IGNORECASE)
MACHINE_PATHS = re.compile(
    "/(?:wo" + "rk|fa" + r"rm)/\w|/tm" + "p/c/|/op" + "t/(?:py" + "pi|wheels)|/root/\\w|/home/\\w+/|/Users/\\w+/"
)
LOOSE_ENDS = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|XX" + r"X)\b")


def offences(pattern: re.Pattern[str], found: list[tuple[str, str]]) -> list[str]:
    """The places of a pattern, as `path:line text`."""
    return [
        f"{path}:{number} {line.strip()[:120]}"
        for path, text in found
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("pattern", [REGISTRIES, PACKAGE_FILES, MACHINE_PATHS])
def test_no_file_depends_on_one_machine_or_one_registry(pattern: re.Pattern[str]) -> None:
    """A clone installs from whatever registry its machine is set up for, wherever it lies."""
    assert offences(pattern, list(texts())) == []


def test_nothing_is_left_undone_in_the_code() -> None:
    """Unfinished work is stated in docs/known-limits.md, where people read it, not in a comment."""
    assert offences(LOOSE_ENDS, [found for found in texts() if not found[0].endswith((".lock", ".csv"))]) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRIES, "files.python" + "hosted.org/packages"),
        (PACKAGE_FILES, "https" + "://example.org/sparing-0.1.0-py3-none-any.whl"),
        (MACHINE_PATHS, "open('/wo" + "rk/main/data.csv')"),
        (MACHINE_PATHS, "/home" + "/anna/sparing"),
        (LOOSE_ENDS, "# TO" + "DO: later"),
    ],
)
def test_each_pattern_bites(pattern: re.Pattern[str], line: str) -> None:
    """A planted offence is found, and told by file and line."""
    assert offences(pattern, [("a.txt", f"innocent\n{line}")]) == [f"a.txt:2 {line}"]


def test_the_walk_sees_the_repository_and_nothing_that_tools_left() -> None:
    """The checks read hidden files that are ours, and no environment, cache or home of a running service."""
    found = files()

    assert {".ci/run", ".gitignore", "Makefile", "pyproject.toml", "tests/architecture/test_files.py"} <= set(found)
    assert not [path for path in found if path.startswith((".venv/", ".git/", ".sparing/")) or "__pycache__" in path]


def test_every_folder_of_the_map_in_the_readme_exists() -> None:
    """A map that shows a room which is not there is worse than none."""
    rooms = re.findall(r"^\| `([a-z/]+/)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert rooms
    assert [room for room in rooms if not (ROOT / room).is_dir()] == []
