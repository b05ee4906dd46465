"""A result counts for the tree it was found in, and a failure only where no error stands beside it."""

from pathlib import Path

import pytest

from tests.mutants.trials import Journal, failed_cases

PASSED = '<testcase classname="tests.test_a" name="test_x[1]"/>'
FAILED = '<testcase classname="tests.test_a.TestB" name="test_y"><failure/></testcase>'
BROKEN = '<testcase classname="tests.test_a" name="test_z"><error/></testcase>'
SKIPPED = '<testcase classname="tests.test_a" name="test_s"><skipped/></testcase>'


def test_results_are_kept_for_runs_of_the_same_tree(tmp_path: Path) -> None:
    """An interrupted run continues; half a line at its end is gone, and another tree has results of its own."""
    path = tmp_path / "build" / "mutants.jsonl"
    Journal(path, "one").add(mutant="a", killed_by="ρ")
    Journal(path, "two").add(mutant="b", killed_by=None)
    path.write_text(path.read_text() + '{"tree": "one", "mut')

    assert Journal(path, "one").lines == [{"tree": "one", "mutant": "a", "killed_by": "ρ"}]
    Journal(path, "one").add(mutant="c", killed_by=None)
    assert [line["mutant"] for line in Journal(path, "one").lines] == ["a", "c"]
    assert [line["mutant"] for line in Journal(path, tree=None).lines] == ["a", "b", "c"]
    assert Journal(path, "one", is_new=True).lines == []


@pytest.mark.parametrize(
    ("cases", "failed"),
    [
        (PASSED + SKIPPED, []),
        (PASSED + FAILED, [("tests.test_a.TestB", "test_y")]),
        (FAILED + BROKEN, []),
        (BROKEN, []),
        (None, []),
    ],
)
def test_an_error_outside_of_a_test_is_no_failure(
    tmp_path: Path, cases: str | None, failed: list[tuple[str, str]]
) -> None:
    """A fixture that breaks, a module that cannot be imported and a run without a report kill nothing."""
    report = tmp_path / "report.xml"
    if cases is not None:
        report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")

    assert failed_cases(report) == failed
