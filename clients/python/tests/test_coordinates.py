"""The coordinates of an answer: whose item each is."""

import pytest

from sparing._coordinates import by_coordinate, by_item, common

AXES = (
    {"column": "cut", "size": 2},
    {"select": [{"select": "count", "size": 1}, {"select": "histogram(color)", "size": 3}]},
)


def test_a_number_for_each_item_becomes_one_for_each_coordinate() -> None:
    """Groups are outermost; one number for all items needs no axes."""
    assert by_coordinate((5.0, 7.0), AXES, 8) == (5.0, 7.0, 7.0, 7.0, 5.0, 7.0, 7.0, 7.0)
    assert by_coordinate(5.0, (), 3) == (5.0, 5.0, 5.0)
    assert by_item(5.0) == (5.0,)
    assert by_item((5.0, 7.0)) == (5.0, 7.0)


def test_what_has_no_common_number_has_none() -> None:
    """Several items, and axes of others."""
    assert common(5.0) == 5.0
    with pytest.raises(ValueError, match="2 items have precisions of their own"):
        common((5.0, 7.0))
    with pytest.raises(ValueError, match="zip"):
        by_coordinate((5.0, 7.0, 9.0), AXES, 8)
