"""The page on security: every requirement of the standard stands once, with a test that exists or a reason."""

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
LEVELS_ASKED: Final = "12"
"""Each has a column of numbers."""
NOT_APPLICABLE: Final = "Requirements that do not apply"
"""The heading of the last table, whose rows have a reason and no test."""
REASONS: Final = ("left to the operator: ", "not met: ")
WORDS_MIN: Final = 3
"""A reason is a sentence."""

_ROW: Final = re.compile(r"^(?=\|(?: \|)? \d)\| ([\d., -]*)\| ([\d., -]*)\| (.*?) \| (.*?) \|$", re.MULTILINE)
_NUMBERS: Final = re.compile(r"(\d+\.\d+\.)(\d+)(?:-\1(\d+))?")
_TEST: Final = re.compile(r"`(tests/[^`]+|clients/[^`]+)`")
_REASON: Final = re.compile(rf"(?:^|[.;] )({'|'.join(REASONS)})(.*)", re.IGNORECASE)
_COUNTS: Final = re.compile(
    r"Of (\d+) requirements (\d+) are shown by tests, (\d+) do not apply, (\d+) are left to the operator, "
    r"and (\d+) are not met, in part or at all\."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """The requirements that one row of the page is about, each with its number and level."""

    requirements: list[tuple[str, str]]
    asked: str
    here: str
    applies: bool

    @property
    def tests(self) -> list[str]:
        """The names of its tests: a file, and within it a function or a method after `::`."""
        return _TEST.findall(self.here)

    @property
    def reason(self) -> tuple[str, str]:
        """The kind of its reason, and the reason; both empty without one."""
        if not self.applies:
            return NOT_APPLICABLE, self.here
        found = _REASON.search(self.here)
        return ("", "") if found is None else (found[1].lower(), found[2].strip())


def rows_of(page: str) -> list[Row]:
    """The rows of the page's tables, in their order."""
    applicable, _, not_applicable = page.partition(f"### {NOT_APPLICABLE}\n")
    return [
        Row(
            requirements=[(number, level) for level in LEVELS_ASKED for number in numbers_in(row[int(level) - 1])],
            asked=row[2],
            here=row[3],
            applies=applies,
        )
        for applies, text in ((True, applicable), (False, not_applicable))
        for row in _ROW.findall(text)
    ]


def numbers_in(cell: str) -> Iterator[str]:
    """The numbers in a cell: `6.2.1-6.2.3` stands for three, and anything else than such a range for itself."""
    for each in filter(None, cell.strip().split(", ")):
        found = _NUMBERS.fullmatch(each)
        if found is None:
            yield each
            continue
        section, first, last = found.groups()
        yield from [f"{section}{number}" for number in range(int(first), int(last or first) + 1)] or [each]


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
    """Numbers that do not stand once at their level, and rows that are misplaced, empty, or name a missing test."""
    rows = rows_of(page)
    found, wanted = Counter(each for row in rows for each in row.requirements), Counter(numbers())
    wrong = sorted({number for number, _ in (found - wanted) + (wanted - found)})
    told = [f"{number} does not stand once at its level" for number in wrong]
    if not told and not _are_in_order(rows):
        told = ["the rows are not in the standard's order"]
    return told + [complaint for row in rows for complaint in _wrong_in(row)]


def _are_in_order(rows: list[Row]) -> bool:
    """Tell whether the first numbers of the rows ascend, among those that apply and among those that do not."""
    place = {requirement: number for number, requirement in enumerate(numbers())}
    firsts = [(not row.applies, min(place[each] for each in row.requirements)) for row in rows]
    return firsts == sorted(firsts)


def _wrong_in(row: Row) -> Iterator[str]:
    (number, _), (kind, reason) = row.requirements[0], row.reason
    if len(row.asked.split()) < 2:
        yield f"{number} does not say what is asked"
    if not row.tests and not kind:
        yield f"{number} has neither a test nor a reason"
    if kind and len(reason.split()) < WORDS_MIN:
        yield f"{number} has a reason that says nothing"
    if row.tests and not row.applies:
        yield f"{number} does not apply and is tested"
    yield from (f"{number} names {test}, which is not there" for test in row.tests if not exists(test))


def counted(rows: list[Row]) -> Mapping[str, int]:
    """How many requirements there are of each kind; one with tests and a reason counts as its reason says."""
    return Counter(row.reason[0] or "shown" for row in rows for _ in row.requirements)


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    return (ROOT / PAGE).read_text(encoding="utf-8")


def test_every_requirement_has_its_row(page: str) -> None:
    """Each number stands once, in order, at its level, with a test that exists or a reason."""
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
    assert [int(each) for each in told] == [total, *(kinds[kind] for kind in ("shown", NOT_APPLICABLE, *REASONS))]


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
    assert len(addresses) >= len({"database", "cache", "forwarding", "metrics", "provider"})
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


ROW = "| | 1.1.1 | decode input once | {} |"


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
        ("does not apply: nothing is decoded", "1.1.1 has neither a test nor a reason"),
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
        "left to the operator: the proxy has the TLS",
        "`tests/api/test_auth.py::TestKeys::test_two_keys_are_no_key`; not met: nothing checks the third",
    ):
        (row,) = rows_of(ROW.format(here))
        assert list(_wrong_in(row)) == []


def test_a_requirement_that_does_not_apply_has_no_test() -> None:
    """A row of the last table has a reason alone."""
    table = f"### {NOT_APPLICABLE}\n{ROW}"
    (row,) = rows_of(table.format("nothing is decoded"))
    assert list(_wrong_in(row)) == []
    (row,) = rows_of(table.format("nothing is decoded: `tests/api/test_auth.py::TestKeys::test_two_keys_are_no_key`"))
    assert list(_wrong_in(row)) == ["1.1.1 does not apply and is tested"]


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        ("| | 10.3.1-10.3.3 |", ["10.3.4"]),
        ("| | 10.3.1, 10.3.3-10.3.4 |", ["10.3.2"]),
        ("| | 10.3.1-10.3.5 |", ["10.3.5"]),
        ("| | 10.3.1-10.3.4, 10.3.3 |", ["10.3.3"]),
        ("| | 10.3.1-10.3.4, 1.1.1 |", ["1.1.1"]),
        ("| 10.3.1 | 10.3.2-10.3.4 |", ["10.3.1"]),
        ("| | 10.3.4-10.3.1 |", ["10.3.1", "10.3.2", "10.3.3", "10.3.4", "10.3.4-10.3.1"]),
        ("| | 10.3.1-10.4.4 |", ["10.3.1", "10.3.1-10.4.4", "10.3.2", "10.3.3", "10.3.4"]),
    ],
)
def test_a_row_over_several_numbers_stands_for_each(page: str, cells: str, wrong: list[str]) -> None:
    """A number that is left out, doubled, of another level or section, or not in the standard is noticed."""
    right = "| | 10.3.1-10.3.4 |"
    assert page.count(right) == 1
    assert complaints(page.replace(right, cells)) == [f"{number} does not stand once at its level" for number in wrong]


def test_a_missing_or_doubled_row_is_noticed(page: str) -> None:
    """Rows in the wrong order and at the wrong level are noticed too."""
    first, second = re.findall(r"^\| \| 1\.4\.\d .*\n", page, re.MULTILINE)[:2]
    for wrong in (
        page.replace(first, ""),
        page.replace(second, first),
        page.replace(first + second, second + first),
        page.replace(first, first + first),
        page.replace(first, first.replace("| | 1.4.1 |", "| 1.4.1 | |")),
    ):
        assert complaints(wrong) != []
