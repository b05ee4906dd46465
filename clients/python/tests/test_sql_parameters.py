"""Parameters: a law between values and what the parser reads, places that are none, and values without a literal."""

import datetime as dt
import enum
import json
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparing import SQLError
from sparing._sql import question_of
from sparing._sql_parameters import ParameterError, bound, literal

COUNT = "SELECT COUNT(*) FROM p WHERE"


def read(text: str) -> Any:
    """The condition of a text."""
    _, question = question_of(text)
    found = question["where"]
    assert found is not None
    return found.json


VALUES = st.one_of(
    st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)


@given(values=st.lists(VALUES, min_size=3, max_size=3))
@example(values=["Cooper's", "'; DROP TABLE p; --", "\\' ? \" $$ /* */ é 🎈"])
def test_a_parameter_is_read_as_its_value(values: list[Any]) -> None:
    """Quotes, comments and all, at its place, and with nothing else read differently."""
    text = f"{COUNT} a=?AND \"b?\" = '?' AND c - ? > d AND e IN (?, 1) -- ?\n AND f = 2"
    if isinstance(values[1], str | bool):
        values[1] = 7
    found = read(bound(text, values))

    assert found == {
        "and": [
            {"eq": [{"col": "a"}, values[0]]},
            {"eq": [{"col": "b?"}, "?"]},
            {"gt": [{"sub": [{"col": "c"}, values[1]]}, {"col": "d"}]},
            {"in": [{"col": "e"}, [values[2], 1]]},
            {"eq": [{"col": "f"}, 2]},
        ]
    }
    assert [type(each) for each in (found["and"][0]["eq"][1], found["and"][3]["in"][1][0])] == [
        type(values[0]),
        type(values[2]),
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (False, "FALSE"),
        (-5, "(-5)"),
        (2.5, "2.5"),
        (Decimal("19.61"), "19.61"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-1E-7"), "(-0.0000001)"),
        (dt.date(2026, 3, 31), "'2026-03-31'"),
        (dt.datetime(2026, 3, 31, 12, 30), "'2026-03-31T12:30:00'"),  # noqa: DTZ001 - as columns have it
        (dt.datetime(2026, 3, 31, tzinfo=dt.UTC), "'2026-03-31T00:00:00+00:00'"),
        (pd.Timestamp("2026-03-31"), "'2026-03-31'"),
        (np.int64(4), "4"),
        (np.float64(0.1), "0.1"),
        (np.bool_(True), "TRUE"),
        (np.datetime64("2026-03-31"), "'2026-03-31'"),
        (np.str_("O'Neil"), "'O''Neil'"),
        (enum.IntEnum("Size", {"LARGE": 3}).LARGE, "3"),  # type: ignore[attr-defined]
        (enum.StrEnum("Town", {"OSLO": "Oslo"}).OSLO, "'Oslo'"),  # type: ignore[attr-defined]
    ],
)
def test_a_value_has_its_literal(value: object, shown: str) -> None:
    """Values of Python, numpy and pandas; a negative number in parentheses, so that `a -?` begins no comment."""
    assert literal(value) == shown


@pytest.mark.parametrize(
    "value",
    [
        *(b"x", dt.time(12), uuid.UUID(int=1), [1], {"a": 1}, object(), 1j, "a\0b", pd.NaT, pd.NA),
        *(float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity"), np.float64("nan")),
    ],
)
def test_a_value_without_a_literal_is_refused(value: object) -> None:
    """And nothing is guessed."""
    with pytest.raises(ParameterError, match="has no literal in SQL"):
        literal(value)


@pytest.mark.parametrize(
    ("text", "parameters", "said"),
    [
        (f"{COUNT} a = ?", (), r"the text has 1 times \?, and there are 0 parameters"),
        (f"{COUNT} a = ?", (1, 2), r"the text has 1 times \?, and there are 2 parameters"),
        (f"{COUNT} a = '?'", (1,), r"the text has 0 times \?, and there are 1 parameters"),
        (f"{COUNT} a = ?", {"a": 1}, "parameters are a sequence"),
        (f"{COUNT} a = ?", "x", "parameters are a sequence"),
        (f"{COUNT} a = '?", (1,), "the text is not SQL"),
    ],
)
def test_each_mark_has_one_parameter(text: str, parameters: Any, said: str) -> None:
    """A text is not ten parameters, and a mapping has no order."""
    with pytest.raises(SQLError, match=said):
        bound(text, parameters)


def test_a_text_without_marks_stays_as_it_is() -> None:
    """Percent signs and colons too."""
    text = f"{COUNT} a = '100 %s :x %(y)s'"
    assert bound(text) == text
    assert json.dumps(read(text)) == json.dumps({"eq": [{"col": "a"}, "100 %s :x %(y)s"]})
