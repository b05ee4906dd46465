"""The page docs/first-hour.md is right: its programs run in order, in one namespace, and print what it shows.

Where an answer has noise, the page shows such an answer. tests/e2e/test_first_hour.py runs the operator's commands.
"""

import re
from itertools import pairwise

import pytest

from tests.api.documented import DOCS, Block, blocks
from tests.api.insured import check_table, people
from tests.api.notebooks import reader_of
from tests.api.world import build_world

BLOCKS = blocks((DOCS / "first-hour.md").read_text(encoding="utf-8"))
Shown = list[tuple[Block, str]]


@pytest.fixture(scope="module")
def shown() -> Shown:
    """Each text below a program of the page, and the output of that program."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        world = build_world()
        reader = reader_of(world, monkeypatch)
        monkeypatch.chdir(DOCS.parent)
        found = [(block, reader.read(block)) for block in BLOCKS]
        world.replica.close()
    assert reader.warnings == []
    programs = {block for above, block in pairwise(BLOCKS) if above.language == "python"}
    return [(block, pair[1]) for block, pair in found if pair is not None and block in programs]


def test_every_program_prints_what_the_page_shows(shown: Shown) -> None:
    """Exactly, but for answers with noise."""
    assert [block.words for block, _ in shown].count("answer") == 2
    assert len(shown) == sum(block.language == "python" for block in BLOCKS)
    for block, printed in shown:
        if not block.words:
            assert block.text == printed, f"line {block.line}"


def test_the_answers_are_such_answers_and_their_intervals_hold_the_truth(shown: Shown) -> None:
    """A table, and the number of children with its error bar."""
    (table, rows), (count, line) = ((block, printed) for block, printed in shown if block.words == "answer")
    check_table(table.text, rows)
    value, *told = re.split(r" ± |\b(?= people)", count.text)
    assert told == re.split(r" ± |\b(?= people)", line)[1:]
    assert abs(int(value) - (people()["age"] < 18).sum()) < int(told[0])
