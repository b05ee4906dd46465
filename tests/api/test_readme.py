"""The answer on the repository's first page: its query runs, and comes to its numbers but for the noise."""

import re
from collections.abc import Iterator

import pytest

from sparing import Client
from tests.api.documented import DOCS, printed_by
from tests.api.insured import check_table, people, truth
from tests.api.notebooks import reader_of
from tests.api.world import build_world

PAGE = (DOCS.parent / "README.md").read_text(encoding="utf-8").partition("\n## An answer\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = [text for language, text in BLOCKS if language == "python"]
PRINTED = [text for language, text in BLOCKS if language != "python"]
TABLES = {
    "people": {
        "kind": "individuals",
        "key": "person",
        "columns": {"female": {"type": "boolean"}, "age": {"type": "integer", "lower": 0, "upper": 65}},
    }
}


@pytest.fixture(scope="module")
def outputs() -> Iterator[list[str]]:
    """The text that each program of the page prints: the analyst's, and that of a man of 42."""
    insured = people()
    (man,) = insured[insured["person"] == "h0000"].itertuples()
    assert (man.female, man.age) == (False, 42)
    world, printed, names = build_world(), [], dict[str, object]()
    with pytest.MonkeyPatch.context() as monkeypatch:
        reader_of(world, monkeypatch)
        with Client() as curator:
            curator.datasets.create(name="insurance", epsilon=1, delta="1e-6", capacity=10_000, tables=TABLES)
            curator.datasets.upload(dataset="insurance", table="people", data=insured)
            analyst = curator.principals.create(role="analyst", name="me", dataset="insurance")
            own = curator.principals.create(role="individual", name="him", dataset="insurance", individual=man.person)
        for key, program in zip((analyst.key, own.key), PROGRAMS, strict=True):
            monkeypatch.setenv("SPARING_API_KEY", key)
            printed.append(printed_by(program, names))
    yield printed
    world.replica.close()


def test_the_printed_answer_is_such_an_answer_and_its_intervals_hold_the_truth(outputs: list[str]) -> None:
    """The printed answer is like the made one but for the noise, and the truth is stated beside it."""
    check_table(PRINTED[0], outputs[0])
    assert "here all four do ({:,.0f} and {:.1f}, {:,.0f} and {:.1f})".format(*truth()) in PAGE


def test_the_printed_charge_is_the_charge(outputs: list[str]) -> None:
    """No noise is in it."""
    assert outputs[1] == PRINTED[1]
