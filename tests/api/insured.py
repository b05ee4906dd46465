"""The people of the health insurance experiment, and what a table about them on a page must come to."""

import io

import pandas as pd
import pytest

from tests.api.documented import DOCS

PEOPLE = DOCS / "notebooks" / "data" / "people.csv.gz"


def people() -> pd.DataFrame:
    """Everybody."""
    return pd.read_csv(PEOPLE)[["person", "female", "age"]]


def truth() -> list[float]:
    """The number and the mean age of the men, then of the women."""
    found: list[float] = people().groupby("female")["age"].agg(["count", "mean"]).to_numpy().ravel().tolist()
    return found


def check_table(told: str, made: str) -> None:
    """The page has such an answer, but for the noise, and its intervals hold the truth.

    The rows are the same, with error bars of the same length for counts, which follow from the schema alone.
    """
    shown, true = (pd.read_csv(io.StringIO(text), sep=r"\s+") for text in (told, made))
    pd.testing.assert_frame_equal(shown[["female", "select"]], true[["female", "select"]])
    lengths = [(each["high_95"] - each["low_95"])[::2] for each in (shown, true)]
    assert lengths[0].to_numpy() == pytest.approx(lengths[1].to_numpy(), abs=0.2)
    assert ((shown["low_95"] < truth()) & (truth() < shown["high_95"])).all()
