"""Items of answers, found by their names."""

from typing import Any

import pytest

from clients.python.tests.released import in_groups, item_axis, released
from sparing import combine, consistent_histogram
from sparing._selected import selected

TWO = released(
    [1.0, 10.0, 2.0, 20.0],
    [{"country": country, "select": item} for country in ("NO", "SE") for item in ("count", "sum(spend)")],
    sigma=3.0,
    grid=0.0,
)


def test_the_numbers_of_an_item() -> None:
    """By group, in the order of the answer."""
    found = selected((TWO, "sum(spend)"), "numerators")

    assert found.columns == ("country",)
    assert found.numbers == {("NO",): 10.0, ("SE",): 20.0}
    assert found.variance == 9
    assert found.number({"age": 3, "country": "SE"}) == 20
    assert found.within({"country": "NO"}) == (10.0,)


def test_the_only_item_need_not_be_named() -> None:
    """Also of a combination of answers."""
    assert selected(combine([in_groups([4.0]), in_groups([6.0])]), "counts").numbers == {(0,): 5.0}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (TWO, r"counts has several items; .*one of count, sum\(spend\), as a pair"),
        ((TWO, "sum(age)"), r"counts has no item sum\(age\); it has count, sum\(spend\)"),
    ],
)
def test_an_item_that_is_not_there_is_named(selection: Any, message: str) -> None:
    """With those that are."""
    with pytest.raises(ValueError, match=message):
        selected(selection, "counts")


def test_a_group_that_is_not_there_is_named() -> None:
    """With the argument."""
    with pytest.raises(ValueError, match=r"counts has no count of the group {'country': 'DK'}"):
        selected((TWO, "count"), "counts").number({"country": "DK"})


DAYS: dict[str, object] = {"column": "day", "size": 3, "lower": 0, "upper": 2}


@pytest.mark.parametrize(
    ("item", "axes"),
    [
        ("count", [DAYS, {"select": [item_axis("count")]}]),
        ("histogram(day)", [{"select": [item_axis("histogram(day)", size=3) | {"values": DAYS}]}]),
    ],
)
def test_a_long_answer_without_labels_is_numbered_if_it_has_one_column(item: str, axes: Any) -> None:
    """Above 10,000 numbers there are axes alone."""
    answer = released([5.0, 6.0, 7.0], [], axes=axes)
    found = selected(answer, "counts")

    assert (found.columns, found.item) == (("day",), item)
    assert found.within({}) == (5.0, 6.0, 7.0)
    assert consistent_histogram([answer]).edges == (0, 1, 2, 3)


def test_a_long_answer_may_be_by_several_columns() -> None:
    """Their values are those of the axes."""
    axes: list[dict[str, object]] = [DAYS, {"column": "country", "size": 2}, {"select": [item_axis("count")]}]
    found = selected(released([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [], axes=axes), "counts")
    assert found.columns == ("day", "country")
    assert found.number({"day": 1, "country": 0}) == 3.0
