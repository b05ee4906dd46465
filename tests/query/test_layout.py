"""The order of an answer's coordinates and their names."""

from itertools import product

import numpy as np

from service.query.domains import Domain, ListedValues, domain_of
from service.query.items.count import Count
from service.query.items.histogram import Histogram
from service.query.items.linear import Functionals
from service.query.items.sum import Sum
from service.query.layout import Layout
from service.query.schema import BooleanColumn, CategoryColumn, IntegerColumn
from service.query.sparse_matrix import Triples, matrix_of

COUNTRY = CategoryColumn(type="category", categories=("NO", "SE"))
MEMBER = BooleanColumn(type="boolean")
LEVEL = IntegerColumn(type="integer", lower=-1, upper=1)
ITEM = CategoryColumn(type="category", size=3)


def histogram(label: str, domain: Domain) -> Histogram:
    """The item of a histogram."""
    size = len(domain_of(domain))
    return Histogram(title=f"histogram({label})", column=label, size=size, domain=domain, label=label)


LAYOUT = Layout(
    groups=(("country", COUNTRY), ("member", MEMBER)),
    items=(Count(), histogram("item", ITEM), Sum(column="spend", title="sum(spend)")),
    places=(0, 1, 2),
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
    layout = Layout(groups=(), items=(histogram("level", LEVEL),), places=(0,))

    assert layout.labels() == [{"select": "histogram(level)", "level": level} for level in (-1, 0, 1)]
    values = {"column": "level", "size": 3, "lower": -1, "upper": 1}
    axis = {"select": "histogram(level)", "offset": 0, "size": 3, "values": values}
    assert layout.axes() == [{"select": [axis]}]


def functionals(size: int, rows: list[int], codes: list[int]) -> Functionals:
    """The item of a matrix of ones."""
    places, values = np.array(rows, dtype=np.int64), np.array(codes, dtype=np.int64)
    _, matrix = matrix_of(Triples(functionals=places, codes=values, weights=np.ones(len(rows))))
    return Functionals(
        column="linear(item) 0", size=size, title="linear(item)", matrix=matrix, entries_of_row=matrix.most
    )


def test_functionals_are_named_by_their_numbers() -> None:
    """Also those that weigh nothing; the axis has one line for all."""
    layout = Layout(groups=(("member", MEMBER),), items=(Count(), functionals(3, [0, 2], [5, 5])), places=(0, 1))
    names = ["count", "linear(item)[0]", "linear(item)[1]", "linear(item)[2]"]

    assert layout.labels() == [{"member": member, "select": name} for member in (False, True) for name in names]
    assert layout.axes()[1] == {
        "select": [{"select": "count", "offset": 0, "size": 1}, {"select": "linear(item)", "offset": 1, "size": 3}]
    }


def test_a_row_has_as_many_entries_as_its_value_has_weights() -> None:
    """At most those of the value that has most; of any other item it has one."""
    assert Sum(column="spend", title="sum(spend)").entries_of_row == 1
    assert functionals(9, [0, 2, 8, 1], [5, 5, 5, 4]).entries_of_row == 3
    assert functionals(9, [0, 2], [5, 4]).entries_of_row == 1


def test_listed_values_are_in_their_own_order() -> None:
    """In labels and, up to 1,000 of them, in the axis."""

    def layout(values: tuple[int, ...]) -> Layout:
        return Layout(groups=(), items=(histogram("item", ListedValues(of=ITEM, values=values)),), places=(0,))

    assert layout((2, 0)).labels() == [{"select": "histogram(item)", "item": item} for item in (2, 0)]
    axis = {"select": "histogram(item)", "offset": 0, "size": 2}
    assert layout((2, 0)).axes() == [
        {"select": [axis | {"values": {"column": "item", "size": 2, "categories": [2, 0]}}]}
    ]
    assert layout(tuple(range(1001))).axes() == [
        {"select": [axis | {"size": 1001, "values": {"column": "item", "size": 1001}}]}
    ]


def test_names_stop_at_ten_thousand_coordinates() -> None:
    """Above that the axes must do."""

    def layout(size: int) -> Layout:
        column = CategoryColumn(type="category", size=size)
        return Layout(groups=(), items=(histogram("item", column),), places=(0,))

    assert len(layout(10_000).labels()) == 10_000
    assert layout(10_001).labels() == []


def test_a_long_list_of_categories_is_left_to_the_schema() -> None:
    """An axis lists at most 1,000."""
    column = CategoryColumn(type="category", categories=tuple(map(str, range(1001))))
    layout = Layout(groups=(("code", column),), items=(Count(),), places=(0,))

    assert layout.axes()[0] == {"column": "code", "size": 1001}


def test_domains_are_in_the_order_of_their_codes() -> None:
    """And are not listed until asked for."""
    assert list(domain_of(LEVEL)) == [-1, 0, 1]
    assert list(domain_of(COUNTRY)) == ["NO", "SE"]
    assert list(domain_of(ITEM)) == [0, 1, 2]
    assert list(domain_of(MEMBER)) == [False, True]
    assert len(domain_of(IntegerColumn(type="integer", lower=-(2**53) + 1, upper=2**53 - 1))) == 2**54 - 1
