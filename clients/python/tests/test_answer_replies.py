"""Answers whose parts do not fit each other are refused when they come, not where they are used."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing import APIReplyError
from sparing._answer_replies import answer_of

FACTS: dict[str, Any] = {
    "id": "q",
    "sequence": 1,
    "sigma": 2.0,
    "grid": 0.5,
    "half_width_95": 4.0,
    "worst_case_rho": "0.1",
} | {"coverage_certified": True, "reused": False, "epoch": 1, "released_at": "2026-01-01T00:00:00Z", "table": "t"}


def item(title: str = "count", size: int = 1, **more: Any) -> dict[str, Any]:
    """An item in axes."""
    return {"select": title, "offset": 0, "size": size, **more}


def of_axes(*axes: dict[str, Any], dimension: int = 1, **more: Any) -> dict[str, Any]:
    """An answer without labels, by the axes before its item."""
    last = {"select": more.pop("items", [item()])}
    return FACTS | {"axes": [*axes, last], "labels": [], "dimension": dimension, "values": [1.0] * dimension} | more


GOOD: dict[str, dict[str, Any]] = {
    "a count": of_axes(),
    "categories": of_axes({"column": "a", "size": 2, "categories": ["x", None]}, dimension=2),
    "bins": of_axes({"column": "a", "size": 2, "edges": [0, 0.5, 2]}, dimension=2),
    "days": of_axes({"column": "a", "size": 2, "lower": "2026-01-31", "upper": "2026-02-01"}, dimension=2),
    "seconds": of_axes({"column": "a", "size": 2, "lower": "2026-01-31T00:00:00", "upper": "x"}, dimension=2),
    "integers": of_axes({"column": "a", "size": 3, "lower": -1, "upper": 1}, dimension=3),
    "months": of_axes({"column": "a", "size": 3, "by": "month", "lower": "2026-01-31", "upper": "x"}, dimension=3),
    "two items": of_axes(
        items=[item(), item("sum(a)", 2)], dimension=3, sigma=[1, 2], grid=[1, 1], half_width_95=[2, 4]
    ),
    "a histogram": of_axes(items=[item("histogram(a)", 2, values={"column": "a", "size": 2})], dimension=2),
    "moments": of_axes(items=[item("moments", 3, features=["a", "b"])], dimension=3),
    "a gradient": of_axes(items=[item("gradient", 4, features=["a", "b"], classes=["x", "y"])], dimension=4),
    "labels": of_axes(labels=[{"select": "count"}]),
    "a mean": of_axes(
        items=[item(), item("n")],
        dimension=2,
        values=[500.0, 1000.0],
        labels=[{"select": "count"}, {"select": "n"}],
        estimates={"items": [{"title": "m", "parts": [0, 1], "mean": {"low": 0, "middle": 1, "high": 2}}]},
    ),
    "labels of groups": of_axes({"column": "a", "size": 1}, labels=[{"a": "x", "select": "count"}]),
}
A = {"column": "a", "size": 2}
HUGE = 10**12
BAD: dict[str, dict[str, Any]] = {
    "no axes": FACTS | {"axes": [], "labels": [], "dimension": 1, "values": [1.0]},
    "a dimension of nothing": of_axes(dimension=0),
    "axes of 10^12": of_axes({"column": "a", "size": HUGE}) | {"dimension": HUGE},
    "an axis of 10^12 and one value": of_axes({"column": "a", "size": HUGE}),
    "an axis of no size": of_axes({"column": "a", "size": True}),
    "an axis less than nothing": of_axes({"column": "a", "size": -1}, {"column": "b", "size": -1}),
    "an axis without a name": of_axes({"column": 7, "size": 2}, dimension=2),
    "two axes of one name": of_axes(A, A, dimension=4),
    "a column called as the item": of_axes({"column": "select", "size": 2}, dimension=2),
    "other categories": of_axes(A | {"categories": ["x"]}, dimension=2),
    "lists for categories": of_axes(A | {"categories": [["x"], {}]}, dimension=2),
    "a text for categories": of_axes(A | {"categories": "xy"}, dimension=2),
    "other edges": of_axes(A | {"edges": [0, 1]}, dimension=2),
    "edges that are no numbers": of_axes(A | {"edges": [0, None, True]}, dimension=2),
    "other days": of_axes(A | {"lower": "0001-01-01", "upper": "9999-12-31"}, dimension=2),
    "days that are none": of_axes(A | {"lower": "2026-99-01", "upper": "2026-99-02"}, dimension=2),
    "a last second": of_axes(A | {"lower": "9999-12-31T23:59:59", "upper": "x"}, dimension=2),
    "other integers": of_axes(A | {"lower": 0, "upper": HUGE}, dimension=2),
    "one bound": of_axes(A | {"lower": 0}, dimension=2),
    "items that are no list": of_axes(items={"select": "count"}),
    "no items": of_axes(items=[]),
    "items that are texts": of_axes(items=["count"]),
    "a title that is a list": of_axes(items=[item() | {"select": ["x"]}]),
    "an item of a place that is a list": of_axes(items=[item(item=[])]),
    "another histogram": of_axes(items=[item("histogram(a)", 2, values={"column": "a", "size": 3})], dimension=2),
    "moments of no triangle": of_axes(items=[item("moments", 2)], dimension=2),
    "moments of other features": of_axes(items=[item("moments", 3, features=["a"])], dimension=3),
    "a gradient of other features": of_axes(items=[item("gradient", 3, features=["a", "b"])], dimension=3),
    "a gradient of no classes": of_axes(items=[item("gradient", 2, classes=[])], dimension=2),
    "a sigma of another item": of_axes(sigma=[1, 2], grid=[1, 1], half_width_95=[1, 1]),
    "a sigma of each item alone": of_axes(sigma=[1]),
    "no sigma": of_axes(sigma=0),
    "a scale less than nothing": of_axes(scale=-1),
    "a number without end": of_axes(values=[1e999]),
    "a sum of numbers that is one": of_axes(A, dimension=2, values=[1e999, -1e999]),
    "other labels": of_axes(labels=[{"select": "count"}] * 2),
    "labels without an item": of_axes(labels=[{}]),
    "labels of another group": of_axes({"column": "a", "size": 1}, labels=[{"b": 1, "select": "count"}]),
    "labels with lists": of_axes({"column": "a", "size": 1}, labels=[{"a": [], "select": "count"}]),
    "labels with another item": of_axes(labels=[{"select": 7}]),
    "values that are texts": of_axes(values=["<b>"]),
    "estimates that are a list": of_axes(labels=[{"select": "count"}], estimates=[]),
    "an estimate of no numbers": of_axes(labels=[{"select": "count"}], estimates={"items": [{"title": "m"}]}),
}


@pytest.mark.parametrize("reply", GOOD.values(), ids=GOOD)
def test_an_answer_whose_parts_fit_is_taken(reply: dict[str, Any]) -> None:
    """Everything that is made of it can be made."""
    answer = answer_of(reply)
    assert len(answer.labels) == len(list(answer.labels)) == answer.dimension
    assert len(answer.sigmas) == len(answer.intervals()) == answer.dimension
    assert len(answer.to_pandas()) == (len(answer.averages) or answer.dimension)
    assert answer._repr_html_().startswith("<table>")


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
def test_an_answer_whose_parts_do_not_fit_is_refused(reply: dict[str, Any]) -> None:
    """Before a label is made of it."""
    with pytest.raises(APIReplyError, match="the reply is not a"):
        answer_of(reply)


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "count", "2026-01-01", 1e300])
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("column", "size", "select", "categories", "edges", "lower", "upper", "values", "by"),
                    *("items", "title", "parts", "number", "mean", "low", "middle", "high"),
                ]
            ),
            inner,
        )
    ),
    max_leaves=8,
)


@given(
    st.sampled_from([*GOOD.values()]),
    st.sampled_from(["axes", "labels", "sigma", "dimension", "scale", "estimates"]),
    JSON,
)
def test_an_answer_with_any_part_is_used_or_refused(good: dict[str, Any], name: str, part: Any) -> None:
    """Nothing but an APIReplyError, and that at once."""
    try:
        answer = answer_of(good | {name: part})
    except APIReplyError:
        return
    assert len(list(answer.labels)) == len(answer.half_widths) == len(answer.to_pandas())
    assert answer._repr_html_()
