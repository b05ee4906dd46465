"""The page on security: every requirement of the standard has a row, and every row a test that exists or a reason."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from service.settings.settings import VARIABLES
from tests.architecture.pages import exists, section_of
from tests.architecture.source import ROOT

PAGE: Final = "docs/security.md"
LEVELS: Final = {
    1: "1:22 2:1111122223 3:112222222223 4:222 5:123",
    2: "1:122 2:112 3:12223 4:23",
    3: "1:3 2:113 3:12223 4:11222233 5:11122333 6:3 7:22333",
    4: "1:12233 2:23333 3:22 4:1222",
    5: "1:2 2:112333 3:113 4:222",
    6: "1:122 2:111111112222 3:11223333 4:112233 5:22222333 6:2223 7:33 8:2222",
    7: "1:222 2:1111 3:22 4:11222 5:223 6:22",
    8: "1:1233 2:1123 3:133 4:23",
    9: "1:111 2:1222",
    10: "1:22 2:223 3:22223 4:1111122222233333 5:22222 6:22 7:222",
    11: "1:2233 2:22233 3:11233 4:1222 5:23 6:23 7:33",
    12: "1:12233 2:11 3:22223",
    13: "1:2333 2:222223 3:2233 4:1222233",
    14: "1:22 2:12223333 3:122",
    15: "1:12233 2:12233 3:1222222 4:3333",
    16: "1:2 2:22222 3:2222 4:222 5:2223",
    17: "1:23 2:22223333 3:22",
}
"""The levels of OWASP ASVS 5.0.0: of each chapter the sections, and of each section its requirements in order."""
LEVELS_ASKED: Final = frozenset("12")
REASONS: Final = ("does not apply: ", "left to the operator: ", "not met: ")
WORDS_MIN: Final = 3
"""A reason is a sentence."""

_ROW: Final = re.compile(r"^\| (\d+\.\d+\.\d+) \| (\d) \| (.*?) \| (.*?) \|$", re.MULTILINE)
_TEST: Final = re.compile(r"`(tests/[^`]+|clients/[^`]+)`")
_REASON: Final = re.compile(rf"(?:^|[.;] )({'|'.join(REASONS)})(.*)", re.IGNORECASE)
_COUNTS: Final = re.compile(
    r"Of (\d+) requirements (\d+) are shown by tests, (\d+) do not apply, (\d+) are left to the operator, "
    r"and (\d+) are not met, in part or at all\."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One requirement as the page has it."""

    number: str
    level: str
    asked: str
    here: str

    @property
    def tests(self) -> list[str]:
        """The names of its tests: a file, and within it a function or a method after `::`."""
        return _TEST.findall(self.here)

    @property
    def reason(self) -> tuple[str, str]:
        """The kind of its reason, and the reason; both empty without one."""
        found = _REASON.search(self.here)
        return ("", "") if found is None else (found[1].lower(), found[2].strip())


def rows_of(page: str) -> list[Row]:
    """The rows of the page's tables, in their order."""
    return [Row(number=row[0], level=row[1], asked=row[2], here=row[3]) for row in _ROW.findall(page)]


def numbers() -> list[tuple[str, str]]:
    """Number and level of each requirement that the page is to have, in the standard's order."""
    return [
        (f"{chapter}.{section}.{number}", level)
        for chapter, listed in LEVELS.items()
        for section, levels in (each.split(":") for each in listed.split())
        for number, level in enumerate(levels, 1)
        if level in LEVELS_ASKED
    ]


def complaints(page: str) -> list[str]:
    """Rows that are missing, misplaced, empty, or name a test that is not there."""
    rows, wanted = rows_of(page), numbers()
    found = [(row.number, row.level) for row in rows]
    misplaced = [f"{number} is missing, misplaced or of another level" for number, _ in set(wanted) ^ set(found)]
    if not misplaced and found != wanted:
        misplaced = ["the rows are not once each in the standard's order"]
    return misplaced + [complaint for row in rows for complaint in _wrong_in(row)]


def _wrong_in(row: Row) -> Iterator[str]:
    kind, reason = row.reason
    if len(row.asked.split()) < 2:
        yield f"{row.number} does not say what is asked"
    if not row.tests and not kind:
        yield f"{row.number} has neither a test nor a reason"
    if kind and len(reason.split()) < WORDS_MIN:
        yield f"{row.number} has a reason that says nothing"
    if kind == REASONS[0] and row.tests:
        yield f"{row.number} does not apply and is tested"
    yield from (f"{row.number} names {test}, which is not there" for test in row.tests if not exists(test))


def counted(rows: list[Row]) -> Mapping[str, int]:
    """How many rows there are of each kind; one with tests and a reason counts as its reason says."""
    return Counter(row.reason[0] or "shown" for row in rows)


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    return (ROOT / PAGE).read_text(encoding="utf-8")


def test_every_requirement_has_its_row(page: str) -> None:
    """Once, in order, with its level, and with a test that exists or a reason."""
    assert complaints(page) == []


def test_the_numbers_are_those_of_the_standard() -> None:
    """Version 5.0.0 has 345 requirements: 70 of level 1, 183 of level 2 and 92 of level 3."""
    digits = "".join(levels.partition(":")[2] for listed in LEVELS.values() for levels in listed.split())
    assert Counter(digits) == {"1": 70, "2": 183, "3": 92}
    assert len(numbers()) == 70 + 183


def test_the_page_counts_its_rows(page: str) -> None:
    """The numbers in its introduction are those of its tables."""
    (told,) = _COUNTS.findall(page)
    kinds, total = counted(rows_of(page)), len(numbers())
    assert [int(each) for each in told] == [total, kinds["shown"], *(kinds[reason] for reason in REASONS)]


def test_every_secret_has_its_line(page: str) -> None:
    """Each setting that is a secret, and each purpose of the pepper, is in the table of secrets."""
    section = section_of(page, "Secrets and algorithms")
    settings = [name for name, field in VARIABLES.items() if not field.repr]
    text = (ROOT / "service/ledger/model/api_keys.py").read_text(encoding="utf-8")
    purposes = re.findall(r'_mac\(b"([a-z -]+)"', text)
    assert {"SPARING_PEPPER", "DATABASE_URL"} <= set(settings)
    assert len(purposes) >= len({"api-key", "sign-in", "tombstone", "upload", "ledger", "cache"})
    assert [name for name in [*settings, *purposes] if f"`{name}`" not in section] == []


def test_every_connection_has_its_line(page: str) -> None:
    """Each setting that holds an address is in the table of connections."""
    section = section_of(page, "Connections")
    addresses = [name for name in VARIABLES if re.search(r"_(?:URL|HOST|PORT|ISSUER)$", name)]
    assert len(addresses) >= len({"database", "cache", "forwarding", "alarms", "metrics"})
    assert [name for name in addresses if f"`{name}`" not in section] == []


def test_every_table_of_the_database_is_classified(page: str) -> None:
    """Nothing is kept that the table of kept data does not name."""
    section = section_of(page, "Data and their protection")
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "migrations/versions").glob("*.py"))]
    tables = {name for text in texts for name in re.findall(r"CREATE TABLE (\w+)", text)}
    assert {"principals", "ledger", "individuals"} <= tables
    assert [name for name in sorted(tables) if f"`{name}`" not in section] == []


def test_the_times_for_components_are_stated(page: str) -> None:
    """Days for a weakness by its rating, and months for renewing all of them."""
    section = section_of(page, "Components of others")
    assert re.findall(r"within (\d+) days", section) == ["7", "30"]
    assert "once in three months" in section


ROW = "| 1.1.1 | 2 | decode input once | {} |"


@pytest.mark.parametrize(
    ("here", "told"),
    [
        ("", "1.1.1 has neither a test nor a reason"),
        ("met by design, as anybody can see", "1.1.1 has neither a test nor a reason"),
        ("`tests/api/test_auth.py`", "1.1.1 names tests/api/test_auth.py, which is not there"),
        (
            "`tests/api/test_auth.py::test_two_keys_are_no_key`",
            "1.1.1 names tests/api/test_auth.py::test_two_keys_are_no_key, which is not there",
        ),
        (
            "`tests/api/test_auth.py::TestKeys::test_two_keys_are_no_keys`",
            "1.1.1 names tests/api/test_auth.py::TestKeys::test_two_keys_are_no_keys, which is not there",
        ),
        ("not met: later", "1.1.1 has a reason that says nothing"),
    ],
)
def test_a_wrong_row_is_noticed(here: str, told: str) -> None:
    """A misspelt test, a file without a function, prose in place of both, and an empty reason."""
    (row,) = rows_of(ROW.format(here))
    assert list(_wrong_in(row)) == [told]


def test_a_right_row_is_not() -> None:
    """A test by its full name, and a reason in a sentence."""
    for here in (
        "`tests/api/test_auth.py::TestKeys::test_two_keys_are_no_key`",
        "does not apply: no passwords are kept",
        "`tests/api/test_auth.py::TestKeys::test_two_keys_are_no_key`; not met: nothing checks the third",
    ):
        (row,) = rows_of(ROW.format(here))
        assert list(_wrong_in(row)) == []


def test_a_missing_or_doubled_row_is_noticed(page: str) -> None:
    """And one of another level."""
    first, second = re.findall(r"^\| 1\.1\.\d .*\n", page, re.MULTILINE)[:2]
    for wrong in (
        page.replace(first, ""),
        page.replace(second, first),
        page.replace(first + second, second + first),
        page.replace(first, first + first),
        page.replace(first, first.replace("| 2 |", "| 1 |")),
    ):
        assert complaints(wrong) != []
