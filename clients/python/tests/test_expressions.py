"""Conditions and items build exactly the documented JSON."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparing import Condition, active, col, count, count_individuals, histogram, linear, sum_

AGE, AREA = {"col": "age"}, {"col": "area"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (col("age") == 40, {"eq": [AGE, 40]}),
        (col("age") != 40, {"ne": [AGE, 40]}),
        (col("age") < 40, {"lt": [AGE, 40]}),
        (col("age") <= 40, {"le": [AGE, 40]}),
        (col("age") > 40.5, {"gt": [AGE, 40.5]}),
        (col("age") >= 40, {"ge": [AGE, 40]}),
        (40 <= col("age"), {"ge": [AGE, 40]}),  # noqa: SIM300 - Python itself turns it round
        (col("member") == True, {"eq": [{"col": "member"}, True]}),  # noqa: E712 - a literal of the language
        (col("area").is_in(["1000", "1001"]), {"in": [AREA, ["1000", "1001"]]}),
        (col("age").between(18, 65.5), {"between": [AGE, 18, 65.5]}),
        (col("age").is_null(), {"is_null": AGE}),
        (col("day") >= dt.date(2026, 3, 31), {"ge": [{"col": "day"}, "2026-03-31"]}),
        (col("at") < dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC), {"lt": [{"col": "at"}, "2026-03-31T12:00:00+00:00"]}),
        (col("age") >= np.int64(40), {"ge": [AGE, 40]}),
        (col("age") >= Decimal("19.61"), {"ge": [AGE, 19.61]}),
        (col("age").is_in(pd.Series([1, 2])), {"in": [AGE, [1, 2]]}),
        (np.array([0.5], dtype="float32")[0] * col("age") < 1, {"lt": [{"mul": [0.5, AGE]}, 1]}),
        (Decimal("0.5") * col("age") < 1, {"lt": [{"mul": [0.5, AGE]}, 1]}),
        (col("day") >= pd.Timestamp("2026-03-31"), {"ge": [{"col": "day"}, "2026-03-31"]}),
        (col("at") >= np.datetime64("2026-01-02T03:04:05", "ns"), {"ge": [{"col": "at"}, "2026-01-02T03:04:05"]}),
        (col("age") < col("other"), {"lt": [AGE, {"col": "other"}]}),
        (
            2 * abs(col("age") - col("other")) + 1 >= 0.5,
            {"ge": [{"add": [{"mul": [2, {"abs": {"sub": [AGE, {"col": "other"}]}}]}, 1]}, 0.5]},
        ),
        ((3 - col("age") * 2).clip(0, 9) == 4, {"eq": [{"clip": [{"sub": [3, {"mul": [AGE, 2]}]}, 0, 9]}, 4]}),
        (1 + col("age") > 0, {"gt": [{"add": [1, AGE]}, 0]}),
        (~(col("age") >= 40), {"not": {"ge": [AGE, 40]}}),
        (
            (col("age") > 1) & (col("age") < 9) & (col("age") != 5),
            {"and": [{"gt": [AGE, 1]}, {"lt": [AGE, 9]}, {"ne": [AGE, 5]}]},
        ),
        (
            (col("age") > 1) | (col("age") < 9) & (col("age") != 5),
            {"or": [{"gt": [AGE, 1]}, {"and": [{"lt": [AGE, 9]}, {"ne": [AGE, 5]}]}]},
        ),
    ],
)
def test_a_condition_is_its_json(condition: Condition, expected: dict[str, Any]) -> None:
    """One operator, one node; a chain of one operator is one list; literals of numpy and pandas are Python's."""
    assert condition.json == expected


def test_combining_leaves_the_parts_alone() -> None:
    """Conditions are values: a part may be used again."""
    adult = col("age") >= 18
    both = adult & (col("age") < 65)
    three = both & (col("age") != 40)

    assert (len(both.json["and"]), len(three.json["and"])) == (2, 3)  # type: ignore[arg-type]
    assert adult.json == {"ge": [AGE, 18]}


def test_items() -> None:
    """The select items."""
    items = (count(), count_individuals(), active(share=0.1), active(Decimal("0.25")), sum_("spend"), histogram("item"))
    assert [item.json for item in items] == [
        {"count": {}},
        {"count_individuals": {}},
        {"active": {"share": 0.1}},
        {"active": {"share": 0.25}},
        {"sum": {"column": "spend"}},
        {"histogram": {"column": "item"}},
    ]


def test_groups_and_sums_of_values() -> None:
    """Whole columns, bins and buckets; a plain column is summed by its name."""
    assert col("age").bins([0, 18, 65]).json == {"bin": {"column": "age", "edges": [0, 18, 65]}}
    assert col("born").bins([dt.date(2026, 1, 1), "2026-02-01"]).json == {
        "bin": {"column": "born", "edges": ["2026-01-01", "2026-02-01"]}
    }
    assert col("spend").bins(width=Decimal("0.1")).json == {"bin": {"column": "spend", "width": 0.1}}
    assert col("spend").bins([Decimal(0), Decimal("1.5")]).json == {"bin": {"column": "spend", "edges": [0, 1.5]}}
    assert col("day").by("month").json == {"bucket": {"column": "day", "by": "month"}}
    assert sum_(col("spend")).json == sum_("spend").json
    assert sum_(col("spend") * col("age")).json == {"sum": {"of": {"mul": [{"col": "spend"}, AGE]}}}
    assert linear("item", {3: 0.5, 17: -2}).json == {
        "linear": {"column": "item", "weights": {"indices": [3, 17], "values": [0.5, -2]}}
    }
    assert linear("item", [{3: 1}, {4: 1}]).json == {
        "linear": {"column": "item", "weights": [{"indices": [3], "values": [1]}, {"indices": [4], "values": [1]}]}
    }
    for wrong in ({}, {"edges": [1, 2], "width": 1}):
        with pytest.raises(ValueError, match="either edges or width"):
            col("age").bins(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("operand", ["1", True, None])
def test_a_value_is_calculated_from_numbers_alone(operand: Any) -> None:
    """A text is no number."""
    with pytest.raises(TypeError, match="calculated from columns and numbers"):
        _ = col("age") + operand


def test_python_s_own_and_or_and_chains_are_refused() -> None:
    """They would silently keep one half of the condition."""
    with pytest.raises(TypeError, match="write & for and"):
        _ = 18 <= col("age") <= 65
    with pytest.raises(TypeError, match="write & for and"):
        _ = (col("age") > 1) and (col("age") < 9)


@pytest.mark.parametrize("literal", [None, [1], object()])
def test_only_literals_can_be_compared(literal: Any) -> None:
    """A value is compared with a constant or another value, never with NULL."""
    with pytest.raises(TypeError, match="compared with"):
        _ = col("age") == literal


def test_a_sparse_matrix_of_scipy_is_a_matrix_of_functionals() -> None:
    """In compressed rows, each entry once, without zeros; its columns are named by number or by `values`."""
    dense = [[0, 2, 0], [0, 0, 0], [1.5, 0, -1]]
    matrix = {"starts": [0, 1, 1, 3], "indices": [1, 0, 2], "values": [2.0, 1.5, -1.0]}
    for made in (sparse.coo_array, sparse.csc_matrix, sparse.csr_array):
        assert linear("item", made(np.array(dense))).json == {"linear": {"column": "item", "matrix": matrix}}
    repeated = sparse.coo_array(([1.0, 2.0, 3.0, -3.0], ([0, 0, 0, 0], [1, 1, 2, 2])), shape=(1, 3))
    assert linear("item", repeated, values=["a", "b", "c"]).json == {
        "linear": {"column": "item", "matrix": {"starts": [0, 1], "indices": ["b"], "values": [3.0]}}
    }


def test_more_functionals_than_the_list_holds_are_sent_as_a_matrix() -> None:
    """Up to 64 keep the form, and so the hash, that they have had."""
    several: Any = [{"a": n, "b": 1} for n in range(65)]
    listed: Any = linear("item", several[:64]).json["linear"]
    assert listed["weights"][63] == {"indices": ["a", "b"], "values": [63, 1]}
    sent: Any = linear("item", several).json["linear"]
    matrix = sent["matrix"]
    assert (matrix["starts"][:3], matrix["starts"][-1]) == ([0, 2, 4], 130)
    assert (matrix["indices"][:2], matrix["values"][-2:]) == (["a", "b"], [64, 1])


def test_weights_of_another_kind_are_refused() -> None:
    """Naming what linear takes."""
    wrong: Any = 3
    with pytest.raises(TypeError, match="linear takes"):
        linear("item", wrong)


def test_a_histogram_may_be_of_listed_values() -> None:
    """In their order."""
    values: Any = (3, np.int64(1))
    assert histogram("item", values=values).json == {"histogram": {"column": "item", "values": [3, 1]}}
