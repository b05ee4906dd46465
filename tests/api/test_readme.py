"""The answer on the repository's first page: its query runs, and comes to its numbers but for the noise."""

import contextlib
import io
import re
from collections.abc import Iterator

import pandas as pd
import pytest

from sparing import Client
from tests.api.documented import DOCS
from tests.api.notebooks import reader_of
from tests.api.world import build_world

PAGE = (DOCS.parent / "README.md").read_text(encoding="utf-8").partition("\n## An answer\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = [text for language, text in BLOCKS if language == "python"]
PRINTED = [text for language, text in BLOCKS if language != "python"]
PEOPLE = DOCS / "notebooks" / "data" / "people.csv.gz"
TABLES = {
    "people": {
        "kind": "individuals",
        "key": "person",
        "columns": {"female": {"type": "boolean"}, "age": {"type": "integer", "lower": 0, "upper": 65}},
    }
}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """The people of the health insurance experiment."""
    return pd.read_csv(PEOPLE)[["person", "female", "age"]]


@pytest.fixture(scope="module")
def outputs(people: pd.DataFrame) -> Iterator[list[str]]:
    """The text that each program of the page prints: the analyst's, and that of a man of 42."""
    (man,) = people[people["person"] == "h0000"].itertuples()
    assert (man.female, man.age) == (False, 42)
    world, printed, names = build_world(), [], dict[str, object]()
    with pytest.MonkeyPatch.context() as monkeypatch:
        reader_of(world, monkeypatch)
        with Client() as curator:
            curator.datasets.create(name="insurance", epsilon=1, delta="1e-6", capacity=10_000, tables=TABLES)
            curator.datasets.upload(dataset="insurance", table="people", data=people)
            analyst = curator.principals.create(role="analyst", name="me", dataset="insurance")
            own = curator.principals.create(role="individual", name="him", dataset="insurance", individual=man.person)
        for key, program in zip((analyst.key, own.key), PROGRAMS, strict=True):
            monkeypatch.setenv("SPARING_API_KEY", key)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(program, "README.md", "exec"), names)  # noqa: S102 - our own page
            printed.append(output.getvalue())
    yield printed
    world.replica.close()


def test_the_printed_answer_is_such_an_answer_and_its_intervals_hold_the_truth(
    people: pd.DataFrame, outputs: list[str]
) -> None:
    """The same rows, with error bars of the same length for counts, which follow from the schema alone."""
    told, made = (pd.read_csv(io.StringIO(text), sep=r"\s+") for text in (PRINTED[0], outputs[0]))
    pd.testing.assert_frame_equal(told[["female", "select"]], made[["female", "select"]])
    widths = [(each["high_95"] - each["low_95"])[::2] for each in (told, made)]
    assert widths[0].to_numpy() == pytest.approx(widths[1].to_numpy(), abs=0.2)
    truth = people.groupby("female")["age"].agg(["count", "mean"]).to_numpy().ravel()
    assert ((told["low_95"] < truth) & (truth < told["high_95"])).all()
    assert "here all four do ({:,.0f} and {:.1f}, {:,.0f} and {:.1f})".format(*truth) in PAGE


def test_the_printed_charge_is_the_charge(outputs: list[str]) -> None:
    """No noise is in it."""
    assert outputs[1] == PRINTED[1]
