"""The page of shared resources: each row has a bound, the answer beyond it, and a test that shows it."""

import re
from dataclasses import dataclass
from typing import Final

import pytest

from service.settings.bound_settings import BoundSettings
from service.settings.settings import VARIABLES
from tests.architecture.pages import exists, section_of
from tests.architecture.source import ROOT

PAGE: Final = ROOT / "docs" / "load.md"
SECTION: Final = "Shared resources"
HEADER: Final = "| Resource | Share | Setting | Beyond it | Shown by |"
_TEST: Final = re.compile(r"`((?:tests|clients)/[^`]+)`")
_SETTING: Final = re.compile(r"`((?:SPARING|DATABASE|REDIS)_[A-Z_]+)`")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One shared resource as the page has it."""

    resource: str
    share: str
    settings: str
    beyond: str
    shown: str


def rows_of(page: str) -> list[Row]:
    """The rows of the table."""
    table = section_of(page, SECTION).partition(f"{HEADER}\n|---|---|---|---|---|\n")[2]
    lines = table.partition("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [Row(resource=a, share=b, settings=c, beyond=d, shown=e) for a, b, c, d, e in cells]


def complaints(page: str) -> list[str]:
    """Settings and tests that are not there, and rows without a share, an end or a test."""
    found = []
    for row in rows_of(page):
        tests = _TEST.findall(row.shown)
        found += [f"{row.resource}: no {test}" for test in tests if not exists(test)]
        found += [f"{row.resource}: no {name}" for name in _SETTING.findall(row.settings) if name not in VARIABLES]
        if not (row.share and row.settings and row.beyond and tests):
            found.append(f"{row.resource}: a cell is empty")
    return found


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    return PAGE.read_text(encoding="utf-8")


def test_each_row_names_settings_and_tests_that_exist(page: str) -> None:
    """No cell is empty, and no name has gone."""
    assert len(rows_of(page)) > 10
    assert complaints(page) == []


def test_each_setting_that_bounds_a_principal_has_a_row(page: str) -> None:
    """The settings of `BoundSettings` are all in the table."""
    bounds = [str(field.validation_alias) for field in BoundSettings.model_fields.values()]
    table = " ".join(row.settings for row in rows_of(page))
    assert [name for name in bounds if f"`{name}`" not in table] == []


def test_a_test_that_is_gone_is_complained_of(page: str) -> None:
    """The check can fail."""
    broken = page.replace("tests/api/test_places.py::", "tests/api/test_nowhere.py::", 1)
    broken = broken.replace("`SPARING_RATE_LIMIT`, ", "`SPARING_RATE_ABSENT`, ", 1)
    assert len(complaints(broken)) == 2
