"""Lines of progress, and `sparing ledger verify` that says how far it is."""

import pytest

from service.cli.progress import EVERY_S, ProgressLines
from service.maintenance.verify.report import verify_all
from tests.factories import TWO_PEOPLE, analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore


def test_a_short_command_says_nothing_and_a_long_one_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr: what is printed on stdout is the result."""
    seconds = iter([0.0, EVERY_S - 0.1, EVERY_S, EVERY_S + 1.0, 2 * EVERY_S])
    progress = ProgressLines(clock=lambda: next(seconds))
    for done in (1, 2000, 3000, 4000):
        progress.see("survey", done, 5000, "entries")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "survey: 2,000 of 5,000 entries\nsurvey: 4,000 of 5,000 entries\n"


def test_a_verification_says_after_each_entry_how_far_it_is() -> None:
    """Each dataset by its name, up to its last entry."""
    store = MemoryStore()
    seen: list[tuple[str, int, int]] = []
    with open_replica(store) as opened:
        register(opened)
        upload(opened, "people", TWO_PEOPLE)
        who = analyst(opened)
        for number in range(3):
            ask(opened, who, f"k{number}", reuse=False)
        reports = list(verify_all(store, watch=lambda *far: seen.append(far)))
    assert [report.findings for report in reports] == [[]]
    assert seen == [("survey", 1, 3), ("survey", 2, 3), ("survey", 3, 3)]
