"""The candidates of a bug are the tests that reach its lines, quickest first, and its present killers."""

from pathlib import Path

import pytest
from coverage import CoverageData

from tests.mutants.mutant import Mutant
from tests.mutants.search import Recording, best_killers, key_of

SOURCE = """
LIMIT = 10

def charge(units):
    if (
        units > LIMIT
    ):
        raise Refused(units)
    return units

def refund(units):
    return -units
"""
QUICK, SLOW, CASES, OTHER = (
    "tests/test_quick.py::test_a",
    "tests/test_slow.py::TestB::test_b",
    "tests/test_slow.py::test_c",
    "tests/test_other.py::test_d",
)
REACHED = {
    f"{SLOW}|run": [5, 9],
    f"{CASES}[1]|run": [5, 8],
    f"{CASES}[2]|run": [12],
    f"{QUICK}|run": [5, 9],
    f"{OTHER}|setup": [5, 9],
    f"{OTHER}|run": [12],
    "": [2, 4, 11],
}
REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_slow.TestB" name="test_b" time="3.5"/>
<testcase classname="tests.test_slow" name="test_c[1]" time="1"/>
<testcase classname="tests.test_slow" name="test_c[2]" time="2"/>
<testcase classname="tests.test_quick" name="test_a" time="0.5"/>
</testsuite></testsuites>"""


def mutant(definition: str, find: str, *killed_by: str) -> Mutant:
    """A bug of the module above."""
    where = f"service/charge.py: {definition}"
    return Mutant(name="m", incident="x.", where=where, find=find, put="0", killed_by=killed_by or (OTHER,))


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A run of four functions of tests, one of them with two cases."""
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "__init__.py").touch()
    (tmp_path / "service" / "charge.py").write_text(SOURCE)
    (tmp_path / "junit.xml").write_text(REPORT)
    data = CoverageData(basename=str(tmp_path / "coverage"))
    data.add_lines({str(tmp_path / "service" / "__init__.py"): [1]})
    for context, lines in REACHED.items():
        data.set_context(context)
        data.add_lines({str(tmp_path / "service" / "charge.py"): lines})
    data.write()
    return Recording(tmp_path / "coverage", tmp_path / "junit.xml")


@pytest.mark.parametrize(
    ("definition", "find", "candidates"),
    [
        ("charge", "units > LIMIT", [OTHER, QUICK, f"{CASES}[1]", SLOW]),
        ("charge", "LIMIT", [OTHER, QUICK, f"{CASES}[1]", SLOW]),
        ("charge", "raise Refused(units)", [OTHER, f"{CASES}[1]"]),
        ("refund", "-units", [OTHER, f"{CASES}[2]"]),
        ("LIMIT", "10", [OTHER, QUICK, f"{CASES}[1]", SLOW]),
        ("charge", "def charge(units)", [OTHER, QUICK, f"{CASES}[1]", SLOW]),
    ],
)
def test_candidates_reach_the_changed_lines(
    recording: Recording, definition: str, find: str, candidates: list[str]
) -> None:
    """A statement is reached on any of its lines, in the body of a test; a constant, where it is used."""
    found = recording.reaching(mutant(definition, find))

    assert sorted(node for nodes in found.values() for node in nodes) == sorted(candidates)


def test_files_are_tried_by_the_seconds_of_their_candidates(recording: Recording) -> None:
    """All cases of a function count if it is named as a whole; a test that was not recorded comes first."""
    assert [*recording.reaching(mutant("charge", "units > LIMIT"))] == [
        "tests/test_other.py",
        "tests/test_quick.py",
        "tests/test_slow.py",
    ]
    assert [recording.seconds(node) for node in (QUICK, SLOW, f"{CASES}[1]", CASES, OTHER)] == [0.5, 3.5, 1.0, 3.0, 0.0]


def test_the_quickest_killers_are_settled() -> None:
    """Three at most; a killer in a file that was tried gives way, any other one stays behind those that were found."""
    bug = mutant("charge", "units", "tests/test_a.py::test_old", "tests/test_z.py::test_unsearched")

    def line(killer: str | None, seconds: float, of: Mutant = bug, file: str = "") -> dict[str, object]:
        tests = file or str(killer).partition("::")[0]
        return {"digest": key_of(of), "tests": tests, "killer": killer, "killer_s": seconds, "is_green": killer is None}

    slow, quick = "tests/test_b.py::test_slow", "tests/test_a.py::test_quick"
    lines = [line(slow, 2.0), line(quick, 0.1), line(None, 0.0, file="tests/test_c.py")]

    assert best_killers(bug, lines) == (quick, slow, "tests/test_z.py::test_unsearched")
    assert best_killers(bug, [line(quick, 0.1, mutant("charge", "other"))]) == bug.killed_by
    assert best_killers(bug, [line(f"tests/test_{n}.py::test_x", n) for n in range(5)])[0] == "tests/test_0.py::test_x"
    assert len(best_killers(bug, [line(f"tests/test_{n}.py::test_x", n) for n in range(5)])) == 3
