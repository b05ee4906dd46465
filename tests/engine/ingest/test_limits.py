"""Limits in rho: rounded down to units, never above the dataset's budget."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.charge import rho_of_units, units_down
from tests.engine.ingest.uploads import ARROW, BUDGET, CSV, NDJSON, PARQUET, arrow, csv, ndjson, problems, read, written
from tests.engine.ingest.uploads import with_limits as table


def limits(*values: Any, content_type: str = CSV) -> list[int]:
    """The units of a column of limits."""
    body = written(content_type, [(f"p{place}", value) for place, value in enumerate(values)], ("id", "rho"))
    rows = read(body, content_type, table())
    assert rows.limits is not None
    return [int(units) for units in rows.limits]


@given(st.decimals(0, 1, allow_nan=False, places=18))
def test_a_limit_is_rounded_down_to_units(rho: Decimal) -> None:
    """Never up: no limit is above the written one."""
    assert limits(rho) == [units_down(Fraction(rho))]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("1", BUDGET),
        ("1.0000000000001", BUDGET),
        ("0", 0),
        ("-0", 0),
        ("+.5", BUDGET // 2),
        ("5E-1", BUDGET // 2),
        ("1e-999999999", 0),
        ("0e999999999", 0),
        ("1e-99999999999999999999", None),
        ("0.1", 109951162777),
    ],
)
def test_odd_ways_to_write_a_limit(text: str, units: int | None) -> None:
    """Huge exponents are compared and not expanded; what rounds down to the budget is within it."""
    if units is None:
        assert problems(csv(f"a,{text}", header="id,rho"), table=table())[0][:2] == (1, "rho")
    else:
        assert limits(text) == [units]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-0.1", "negative"),
        (str(rho_of_units(BUDGET + 1)), "above the dataset's budget"),
        ("1e999999999", "above the dataset's budget"),
        ("1e99999999999999999999", "not a decimal"),
        ("nan", "not a decimal"),
        ("Infinity", "not a decimal"),
        ("0,5", "not a decimal"),
        ("0x1", "not a decimal"),
        ("1/2", "not a decimal"),
        ("0." + "1" * 200, "not a decimal"),
    ],
)
def test_what_is_no_limit_is_named(text: str, message: str) -> None:
    """By row and column, every time it occurs."""
    found = problems(csv("a,1", f'b,"{text}"', "c,", f'd,"{text}"', header="id,rho"), table=table())
    assert [(row, column) for row, column, _ in found] == [(2, "rho"), (4, "rho")]
    assert message in found[0][2]


@pytest.mark.parametrize(
    ("content_type", "values", "units"),
    [
        (NDJSON, ["0.5", 0.25, 1, None, 1e-7], [2**39, 2**38, 2**40, -1, 109951]),
        (PARQUET, [0.5, 0.1, None], [2**39, 109951162777, -1]),
        (ARROW, [Decimal("0.5"), Decimal("0.1"), None], [2**39, 109951162777, -1]),
        (ARROW, [1, 0, None], [2**40, 0, -1]),
        (ARROW, ["0.5", None], [2**39, -1]),
    ],
)
def test_numbers_are_limits_as_they_would_be_written(content_type: str, values: list[Any], units: list[int]) -> None:
    """0.1 is a tenth, although no double is; NULL is the dataset's budget."""
    assert limits(*values, content_type=content_type) == units


def test_what_is_no_number_is_no_limit() -> None:
    """By the column's type, or the value's."""
    assert problems(arrow({"id": ["a"], "rho": [True]}), ARROW, table())[0][:2] == (None, "rho")
    assert problems(arrow({"id": ["a"], "rho": [float("nan")]}), ARROW, table())[0][:2] == (1, "rho")
    assert problems(ndjson(("a", True), names=("id", "rho")), NDJSON, table())[0][:2] == (1, "rho")
