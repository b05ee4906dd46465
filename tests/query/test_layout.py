"""The order of an answer's coordinates and their names."""

from itertools import product

from service.query.layout import Count, Histogram, Layout, Sum, domain_of
from service.query.schema import BooleanColumn, CategoryColumn, IntegerColumn

COUNTRY = CategoryColumn(type="category", categories=("NO", "SE"))
MEMBER = BooleanColumn(type="boolean")
LEVEL = IntegerColumn(type="integer", lower=-1, upper=1)
ITEM = CategoryColumn(type="category", size=3)
LAYOUT = Layout(
    groups=(("country", COUNTRY), ("member", MEMBER)),
    items=((Count(), None), (Histogram(column="item", size=3), ITEM), (Sum(column="spend"), None)),
)


def test_groups_are_outermost_and_an_items_own_coordinates_innermost() -> None:
    """Row-major in the order of group_by, then the items in order."""
    block: list[dict[str, object]] = [
        {"select": "count"},
        *({"select": "histogram(item)", "item": item} for item in range(3)),
        {"select": "sum(spend)"},
    ]
    expected = [
        {"country": country, "member": member} | inner
        for country, member, inner in product(["NO", "SE"], [False, True], block)
    ]

    assert LAYOUT.labels() == expected
    assert (LAYOUT.block, LAYOUT.dimension) == (5, 20)


def test_axes_say_the_same_in_a_few_lines() -> None:
    """Enough to find a coordinate: group * block + offset + the item's own."""
    assert LAYOUT.axes() == [
        {"column": "country", "size": 2, "categories": ["NO", "SE"]},
        {"column": "member", "size": 2, "categories": [False, True]},
        {
            "select": [
                {"select": "count", "offset": 0, "size": 1},
                {"select": "histogram(item)", "offset": 1, "size": 3, "values": {"column": "item", "size": 3}},
                {"select": "sum(spend)", "offset": 4, "size": 1},
            ]
        },
    ]


def test_without_groups_there_is_one_block() -> None:
    """The empty product is one group."""
    layout = Layout(groups=(), items=((Histogram(column="level", size=3), LEVEL),))

    assert layout.labels() == [{"select": "histogram(level)", "level": level} for level in (-1, 0, 1)]
    assert layout.axes() == [
        {
            "select": [
                {
                    "select": "histogram(level)",
                    "offset": 0,
                    "size": 3,
                    "values": {"column": "level", "size": 3, "lower": -1, "upper": 1},
                }
            ]
        }
    ]


def test_names_stop_at_ten_thousand_coordinates() -> None:
    """Above that the axes must do."""

    def histogram(size: int) -> Layout:
        column = CategoryColumn(type="category", size=size)
        return Layout(groups=(), items=((Histogram(column="item", size=size), column),))

    assert len(histogram(10_000).labels()) == 10_000
    assert histogram(10_001).labels() == []


def test_a_long_list_of_categories_is_left_to_the_schema() -> None:
    """An axis lists at most 1,000."""
    column = CategoryColumn(type="category", categories=tuple(map(str, range(1001))))
    layout = Layout(groups=(("code", column),), items=((Count(), None),))

    assert layout.axes()[0] == {"column": "code", "size": 1001}


def test_domains_are_in_the_order_of_their_codes() -> None:
    """And are not listed until asked for."""
    assert list(domain_of(LEVEL)) == [-1, 0, 1]
    assert list(domain_of(COUNTRY)) == ["NO", "SE"]
    assert list(domain_of(ITEM)) == [0, 1, 2]
    assert list(domain_of(MEMBER)) == [False, True]
    assert len(domain_of(IntegerColumn(type="integer", lower=-(2**53) + 1, upper=2**53 - 1))) == 2**54 - 1
