"""A table of seeded bugs is read as it was written, and anything else in it is refused by name."""

from pathlib import Path

import pytest

from tests.mutants import tables
from tests.mutants.mutant import Mutant

GOOD = """[[mutant]]
name = "a"
incident = "People are charged twice."
where = "service/core/charge.py: charge"
find = 'return "x"'
put = ""
killed_by = ["tests/core/test_charge.py"]
"""


def made(name: str, where: str, find: str = "a", put: str = "b") -> Mutant:
    """A bug of this place."""
    return Mutant(name=name, incident="x.", where=where, find=find, put=put, killed_by=("tests/test_a.py",))


@pytest.mark.parametrize("text", ["a", "'", '"', "\\n", "'\"", "a\nb", "'''\n\"", "  a\n\n    b\\", "ρ ≤ 1", "\n"])
def test_every_text_is_read_as_it_was_written(tmp_path: Path, text: str) -> None:
    """Quotes, backslashes and lines are kept."""
    bugs = [made("m", "service/core/charge.py: charge", find=text, put=text)]

    tables.write(bugs, tmp_path)

    assert tables.read(tmp_path) == bugs


def test_each_room_has_a_sorted_table(tmp_path: Path) -> None:
    """A bug whose function has moved to another room changes tables, and an empty table goes."""
    places = ["service/core/b.py: f", "clients/python/src/a.py", "service/core/a.py: g", "service/core/a.py: f"]
    tables.write([made("left", "service/run/serve.py")], tmp_path)

    tables.write([made(place, place) for place in places], tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["clients.toml", "core.toml"]
    assert [bug.where for bug in tables.read(tmp_path)] == [places[1], places[3], places[2], places[0]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", r"core.toml: Invalid value"),
        ("[mutant]", r"core.toml: only \[\[mutant\]\] may stand in it"),
        (f"title = 1\n{GOOD}", r"only \[\[mutant\]\] may stand in it, not \['title'\]"),
        (GOOD.replace("put = ", "puts = "), r"core.toml: mutant 1 \(a\): missing \['put'\], unknown \['puts'\]"),
        (GOOD.replace('"People are charged twice."', '""'), r"mutant 1 \(a\): incident is a text that is not empty"),
        (GOOD.replace('""', "1"), r"mutant 1 \(a\): put is a text"),
        (
            GOOD.replace('["tests/core/test_charge.py"]', "[]"),
            r"mutant 1 \(a\): killed_by is a list of node ids or files",
        ),
        (GOOD.replace('["tests/core/test_charge.py"]', '"tests/a.py"'), r"killed_by is a list of node ids or files"),
        (GOOD + GOOD, r"more than one mutant has the name 'a'"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    """The error names the table, the mutant and the member."""
    (tmp_path / "core.toml").write_text(text)

    with pytest.raises(tables.Malformed, match=told):
        tables.read(tmp_path)
