"""Queries on the worst data, most of whose work is priced by a single constant of the public price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import sqrt
from typing import Any

from loadtests.worst_data import FAR_MAX, IMAGE, ITEMS, LISTED, PAIRED, RANKS, SHARE, STRIPES

Item = dict[str, Any]
COUNT: list[Item] = [{"count": {}}]
SIGMA = 1e4
NEAR_WHOLE = sqrt(2**39)
"""A sigma at which the price of a squared step is a whole number but for rounding: no float decides a charge."""
SMALL = 1.1
"""A sigma with charges beyond 2^50 units, where a float has no fraction."""
SIGMAS = {"1234.567": 1234.567, "sqrt(2^39)": NEAR_WHOLE, "1.1": SMALL, "2^20": 2.0**20}
NARROW = "2^20"
"""The one of SIGMAS whose square has so few digits that charges are decided in 64 bits."""
RANDOM_SHARES = (4, 8, 9, 16, 32, 64, 100, 140, 1000)
"""Shares of people, each one in this many. Beyond some of these, numpy and the engine search a mask in other ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A query, the constant that prices most of its work, and the data that it meets.

    `is_first` marks a query that finds no index and no tally made, `standings` one that is asked on all standings.
    """

    constant: str
    data: str
    query: Mapping[str, Any] = field(default_factory=dict)
    sigma: float = SIGMA
    standings: bool = False
    is_first: bool = False


def summed(*names: str) -> Item:
    """Sums of columns."""
    return {"select": [{"sum": {"column": name}} for name in names]}


def histograms(*names: str) -> Item:
    """Histograms of columns."""
    return {"select": [{"histogram": {"column": name}} for name in names]}


def where(condition: Item) -> Item:
    """A condition."""
    return {"where": condition}


def least(name: str, bound: int) -> Item:
    """A lower bound."""
    return {"ge": [{"col": name}, bound]}


def below(share: float) -> Item:
    """A condition that holds for a random share of people."""
    return {"lt": [{"col": "rank"}, round(RANKS * share)]}


def between(name: str, low: int, high: int) -> Item:
    """A condition for a range with two ends."""
    return {"between": [{"col": name}, low, high]}


def listed(name: str, values: Sequence[int]) -> Item:
    """A condition for a list of values."""
    return {"in": [{"col": name}, list(values)]}


def matrix(name: str, size: int, functionals: int) -> Item:
    """Functionals, each of which weighs every value of a column of `size` values."""
    weights = {
        "starts": [size * n for n in range(functionals + 1)],
        "indices": [*range(size)] * functionals,
        "values": [n % 89 + 1 for n in range(size * functionals)],
    }
    return {"select": [{"linear": {"column": name, "matrix": weights}}]}


_FAR_STEP = FAR_MAX // 10_000
_FAR_VALUES = range(1, 8_000 * _FAR_STEP, _FAR_STEP)
_ALL_EIGHT = {"and": [between("far", n, FAR_MAX - 1 - n) for n in range(1, 9)]}
_ANY_OF_EIGHT = {"or": [between("far", 10 * n, 10 * n + 5) for n in range(1, 9)]}
_PRODUCT = {"mul": [{"clip": [{"col": "amount"}, -900, 900]}, {"abs": {"col": "c0"}}]}
_CLIP = {"per_individual": {"l2_clip": 3.0}}
_CLIPPED_FAR = {"per_individual": {"l2_clip": 0.01}, "noise": {"sigma": 10.0}}
_FOLD = {"fold": {"seed": "a", "of": 5, "in": [0, 2]}}
_EIGHT = [{"of": {"mul": [{"col": f"c{n}"}, 0.01]}} for n in range(8)]
_PAIRS = [{"of": {"mul": [{"mul": [{"col": f"c{n}"}, {"col": "amount"}]}, 1e-5]}} for n in range(8)]
_BINS = {"one_hot": {"bin": {"column": "amount", "width": 50}}}
_IMAGE = {"vector": "image"}
_SHORTENED = {"rule": "clip", "noise": {"sigma": 1e3}}


def moments(*features: Item) -> Item:
    """Second moments of features."""
    return {"select": [{"moments": {"features": features}}]}


def regression(feature: Item, *, size: int) -> Item:
    """The gradient of a regression with the `size` numbers of a feature."""
    model = {"loss": "squared", "target": {"col": "second"}, "features": [feature], "residual_clip": 1}
    return {"select": [{"gradient": model | {"parameters": [0.01] * size}}]}


def softmax(*features: Item, size: int | None = None) -> Item:
    """The gradient of a model of 101 classes, by one number of each feature, or by a feature of `size` numbers."""
    parameters = [[n / 10] * (size or len(features)) for n in range(101)]
    model = {"loss": "softmax", "target": "c7", "features": features, "parameters": parameters}
    return {"select": [{"gradient": model}]}


def predicted(*features: Item, size: int | None = None) -> Item:
    """A predicted probability by features, or by a feature of `size` numbers."""
    parameters = [0.1 * n for n in range(size or len(features))]
    return {"predict": {"link": "logistic", "features": features, "parameters": parameters}}


def own(body: Item) -> Item:
    """A count or sum of the events of each individual."""
    return {"own": {"from": "once", "clip": [0, 20]} | body}


_OWN_SOME = own({"sum": {"col": "amount"}} | where(least("small", 1)))


def by_item(count: int, *, clip: float | None = None, last: float = SIGMA) -> Item:
    """A sigma for each of `count` items, of those that are costliest to divide by, and a clip for each."""
    sizes = [*[SIGMA] * (count - 1), last]
    noise: Item = {"noise": {"sigma": [size + n + 0.1 for n, size in enumerate(sizes)]}}
    return noise if clip is None else noise | {"per_individual": {"l2_clip": [clip] * count}}


TOUCHED: Sequence[Priced] = (
    *(
        Priced(constant="individual", data=data, query=query, standings=True)
        for data, query in (
            ("everybody", {}),
            ("everybody by a range", where(least("age", 1))),
            ("one age missing", where(least("gap", 1))),
            ("every second", where(least("second", 1))),
            ("a random half", where(below(0.5))),
            ("a random 9 in 10", where(below(0.9))),
            ("all who have a share left", {"select": [{"active": {"share": 1e-6}}]}),
        )
    ),
    *(
        Priced(constant="individual", data=data, query=where(condition), standings=name == "block")
        for name, length in STRIPES.items()
        for data, condition in ((f"every second {length:,}", least(name, 1)), (f"one in {length:,}", least(name, 2)))
    ),
    *(
        Priced(constant="individual", data=f"a random 1 in {share}", query=where(below(1 / share)))
        for share in RANDOM_SHARES
    ),
    *(
        Priced(constant="priced_individual", data=data, query=query, standings=True)
        for data, query in (
            ("amounts", summed("amount")),
            ("ages, one missing", summed("gap")),
            ("amounts of a random half", summed("amount") | where(below(0.5))),
        )
    ),
    *(
        Priced(
            constant="priced_individual" if name == NARROW else "wide_charge",
            data=f"{column}, sigma {name}",
            query=summed(column),
            sigma=SIGMAS[name],
        )
        for column, name in product(("age", "amount", "big", "real"), SIGMAS)
        if column != "real" or SIGMAS[name] < SIGMA  # a grid has a largest sigma
    ),
)
"""Queries whose work grows with the touched individuals."""

CHOSEN: Sequence[Priced] = tuple(
    Priced(constant=constant, data=data, query=query)
    for constant, data, query in (
        ("leaf_row", "8 ranges of 8 bytes, and", where(_ALL_EIGHT)),
        ("leaf_row", "8 ranges of 8 bytes, or", where(_ANY_OF_EIGHT)),
        ("leaf_row", "8 bounds on bytes", where({"and": [least(f"c{n}", 0) for n in range(8)]})),
        (
            "leaf_row",
            "1,000 ranges of 2 bytes",
            where({"or": [between("rank", 9 * n, 9 * n + 2) for n in range(1000)]}),
        ),
        ("leaf_row", "8 runs of 8 bytes", where(listed("far", [1000 * n + m for n in range(8) for m in range(2)]))),
        ("leaf_row", "a fold", where(_FOLD)),
        ("leaf_row", "20 runs of 2 bytes", where(listed("rank", range(0, 60, 3)))),
        ("literal", "a list by a table of 2^20", where(listed("middling", range(0, 2**20 - 1, 60)))),
        ("leaf_row", "a list at a sixteenth", where(listed("at", range(0, LISTED, 2)))),
        ("leaf_row", "a list one beyond a sixteenth", where(listed("beyond", range(0, LISTED, 2)))),
        (
            "leaf_row",
            "pairs at a sixteenth",
            where({"and": [{"eq": [{"col": "left"}, 0]}, listed("right", range(0, PAIRED, 2))]}),
        ),
        (
            "leaf_row",
            "a comparison of calculated columns",
            where({"lt": [{"mul": [{"col": "amount"}, {"col": "c0"}]}, {"add": [{"col": "c1"}, 7]}]}),
        ),
        ("leaf_row", "a sum of a calculated column", {"select": [{"sum": {"of": _PRODUCT}}]}),
        ("leaf_row", "buckets of weekdays", {"group_by": [{"bucket": {"column": "moment", "by": "weekday"}}]}),
        ("leaf_row", "buckets of hours", {"group_by": [{"bucket": {"column": "moment", "by": "hour"}}]}),
        ("leaf_row", "buckets of months", {"group_by": [{"bucket": {"column": "moment", "by": "month"}}]}),
        ("searched_row", "a list of 8,000 of 8 bytes", where(listed("far", _FAR_VALUES))),
        (
            "searched_row",
            "1,000 bins of 8 bytes",
            {"group_by": [{"bin": {"column": "far", "edges": [n * _FAR_STEP for n in range(1000)]}}]},
        ),
        (
            "searched_row",
            "a listed histogram of 8 bytes",
            {"select": [{"histogram": {"column": "far", "values": list(_FAR_VALUES)}}]},
        ),
        (
            "searched_row",
            "weights of 8,000 values of 8 bytes",
            {
                "select": [
                    {"linear": {"column": "far", "weights": {"indices": list(_FAR_VALUES), "values": [1.0] * 8000}}}
                ]
            },
        ),
    )
)
"""Queries whose work grows with the rows that are looked at."""

ADDED: Sequence[Priced] = tuple(
    Priced(constant=constant, data=data, query=query, standings=data == "2 groups" or "shortened" in data)
    for constant, data, query in (
        ("scatter_entry", "2 groups", {"group_by": ["second"]}),
        ("scatter_entry", "2,001 coordinates", histograms("amount")),
        ("label", "4,096 labels", histograms("at")),
        ("label", "8,192 labels of groups", {"group_by": ["at", "second"]}),
        ("refined_coordinate", "sums of fractions in 2^16 groups", summed("real") | {"group_by": ["wide"]}),
        ("scatter_entry", "2^16 coordinates", histograms("wide")),
        ("coordinate", "2^20 coordinates", histograms("middling")),
        ("scatter_entry", "sums in 101 groups", summed("amount") | {"group_by": ["c0"]}),
        ("scatter_entry", "sums in 2^16 groups", summed("amount") | {"group_by": ["wide"]}),
        ("scatter_entry", "groups of 3 keys", {"group_by": ["c0", "c1", "second"]} | where(least("c0", 1))),
        ("entry", "2 sums", summed("amount", "c0")),
        ("entry", "4 sums", summed("amount", "c0", "c1", "c2")),
        ("entry", "2 sums, a sigma each", summed("amount", "c0") | by_item(2)),
        ("entry", "4 sums, a sigma each", summed("amount", "c0", "c1", "c2") | by_item(4)),
        ("entry", "a count and a histogram", {"select": [*COUNT, {"histogram": {"column": "c0"}}]}),
        ("entry", "8 histograms", histograms(*(f"c{n}" for n in range(8)))),
        ("entry", "a matrix of 2 a row", matrix("at", LISTED // 4, 2)),
        ("entry", "a matrix of 16 a row", matrix("c0", 101, 16)),
        ("shortened_individual", "a sum, shortened", summed("amount") | _SHORTENED),
        ("shortened_individual", "a count, shortened", _SHORTENED),
        ("shortened_individual", "2 sums, shortened", summed("amount", "c0") | _SHORTENED),
        ("shortened_individual", "a sum of large numbers, shortened", summed("big") | _SHORTENED),
        ("feature", "moments of 8 features", moments(*_EIGHT)),
        ("feature", "moments of 8 features, each of two columns", moments(*_PAIRS)),
        ("feature", "a sum of predictions by 8 features", {"select": [{"sum": {"of": predicted(*_EIGHT)}}]}),
        ("feature", "predictions by 8 pairs of columns", where({"ge": [predicted(*_PAIRS), 0.1]})),
        ("vector_number", "predictions by a vector of 48 numbers", where({"ge": [predicted(_IMAGE, size=IMAGE), 0.1]})),
        ("scalar_entry", "a sum of own counts", {"select": [{"sum": {"of": own({"count": {}})}}]}),
        ("scalar_entry", "own sums of some", where({"ge": [_OWN_SOME, 1]})),
        ("error", "a gradient of 101 classes", softmax(*_EIGHT[:2])),
        ("product", "moments of 48 features", moments(*_EIGHT, _BINS)),
        ("vector_number", "a gradient by a vector of 48 numbers", regression(_IMAGE, size=IMAGE)),
        ("product", "a gradient of 101 classes by a vector of 48 numbers", softmax(_IMAGE, size=IMAGE)),
        ("product", "moments of a vector of 48 numbers", moments(_IMAGE)),
        ("clipped_entry", "a gradient of 101 classes, all beyond the clip", softmax(*_EIGHT[:2]) | _CLIPPED_FAR),
        ("clipped_entry", "moments of 48 features, shortened", moments(*_EIGHT, _BINS) | _SHORTENED),
        ("clipped_entry", "2 sums, all beyond the clip", summed("amount", "c0") | _CLIP),
        ("clipped_entry", "2 sums, each beyond its clip", summed("amount", "c0") | by_item(2, clip=3.0)),
        (
            "clipped_entry",
            "a matrix of 16 a row and a count, each beyond its clip",
            {"select": [*matrix("c0", 101, 16)["select"], *COUNT]} | by_item(2, clip=1.0),
        ),
        ("clipped_entry", "a sum, all beyond the clip", summed("amount") | _CLIP),
        ("clipped_entry", "a matrix of 16 a row, all beyond the clip", matrix("c0", 101, 16) | _CLIP),
    )
)
"""Queries whose work grows with the entries of vectors."""

FIRST: Sequence[Priced] = (
    Priced(constant="first index", data="of one column", query=where(between("c0", 7, 7)), is_first=True),
    Priced(
        constant="first index",
        data="of two columns",
        query=where({"and": [{"eq": [{"col": "left"}, 0]}, {"eq": [{"col": "right"}, 2]}]}),
        is_first=True,
    ),
)


def of_events(table: str) -> Sequence[Priced]:
    """Queries of one table of events."""
    known = where({"not": {"is_null": {"col": "item0"}}})
    groups: Item = {"group_by": ["item0"]}
    every: Sequence[tuple[str, str, Item, float]] = (
        ("scalar_entry", "a count", {}, SIGMA),
        ("scalar_entry", "a count of individuals", {"select": [{"count_individuals": {}}]}, SIGMA),
        ("scalar_entry", "a clipped count", _CLIP, SIGMA),
        ("scalar_entry", "a sum", summed("amount"), SIGMA),
        ("scalar_entry", "a sum, near whole charges", summed("amount"), NEAR_WHOLE),
        ("scalar_entry", "a sum of large numbers, near whole charges", summed("big"), NEAR_WHOLE),
        ("listed_individual", "a sum of small numbers", summed("small"), SIGMA),
        ("scalar_entry", "a clipped sum", summed("amount") | _CLIP, SIGMA),
        ("entry", "a histogram of chosen rows", histograms("item0") | known, SIGMA),
        ("entry", "a histogram of all, by its tally", histograms("item0"), SIGMA),
        ("entry", "groups of all, by their tally", groups, SIGMA),
        ("entry", "sums in groups", summed("amount") | groups, SIGMA),
        ("entry", "2 sums", summed("amount", "small"), SIGMA),
        ("entry", "2 sums, a sigma each", summed("amount", "small") | by_item(2, last=SIGMA / 20), SIGMA),
        ("clipped_entry", "2 sums, each beyond its clip", summed("amount", "small") | by_item(2, clip=1.5), SIGMA),
        ("entry", "sums by an own column", summed("amount") | {"group_by": ["people.c0"]}, SIGMA),
        ("entry", "rows that share the weight of one", {"per_individual": {"rows": 1}}, 1e3),
        ("clipped_entry", "a clipped histogram", histograms("item0") | {"per_individual": {"l2_clip": 1.5}}, SIGMA),
        ("clipped_entry", "clipped sums in groups", summed("amount") | groups | _CLIP, SIGMA),
        ("leaf_row", "a list at a sixteenth", where(listed("item0", range(ITEMS // SHARE))), SIGMA),
        ("leaf_row", "8 ranges of 8 bytes", where(_ALL_EIGHT), SIGMA),
        ("leaf_row", "an own column", where(least("people.age", 1)), SIGMA),
        ("leaf_row", "a fold of the owners", where(_FOLD), SIGMA),
    )
    first = (
        ("first tally", "of one column", histograms("item0")),
        ("first index", "of one column", where({"eq": [{"col": "item0"}, 7]})),
    )
    of_table = {"from": table}
    return (
        *(
            Priced(constant=constant, data=f"{table}: {data}", query=query | of_table, sigma=sigma)
            for constant, data, query, sigma in every
        ),
        *(
            Priced(constant=constant, data=f"{table}: {data}", query=query | of_table, is_first=True)
            for constant, data, query in first
        ),
    )


QUERIES: Sequence[Priced] = (
    *TOUCHED,
    *CHOSEN,
    *ADDED,
    *FIRST,
    *(priced for table in ("once", "often", "alone") for priced in of_events(table)),
)
