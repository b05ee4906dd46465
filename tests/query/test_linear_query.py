"""Composite items become linear items by public rules; what cannot be worked out is refused by its own field."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.accounting.accountings import PureAccounting
from service.query.canonical import canonical_bytes
from service.query.dataset_terms import DatasetTerms
from service.query.linear_query import LinearQuery, linear_query
from service.query.parse import parse_query
from service.query.plan import groups_of
from service.query.stated import shown_of
from tests.query.samples import BUDGET_UNITS, CAPACITY, body, columns_of, plan_of, query, refused

SHARE = {"share": 0.1}
AGE, SPEND = {"column": "age"}, {"column": "spend"}
ONES = {"sum": {"of": {"clip": [{"col": "age"}, 1, 1]}}}
MIDDLE = {"sub": [{"col": "age"}, 60]}
SQUARES = {"sum": {"of": {"sub": [{"mul": [{"abs": MIDDLE}, {"abs": MIDDLE}]}, 1800]}}}
RATIO = {"ratio": {"of": {"sum": SPEND}, "to": {"count": {}}}}
DIFFERENCE = {"difference": {"of": {"mean": AGE}, "by": "member", "from": False, "to": True}}


def composite(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A query with composite items."""
    return query(select=list(items), **({"noise": SHARE} | fields))


def linear_of(*items: dict[str, Any], **fields: Any) -> LinearQuery:
    """The linear query behind one of these items."""
    asked = parse_query(body(composite(*items, **fields)))
    columns = columns_of(asked.from_ or "people")
    return linear_query(asked, columns, groups_of(asked, columns), DatasetTerms(CAPACITY, BUDGET_UNITS, None, None))


def document_of(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The items and the noise of the linear query, as JSON."""
    document = json.loads(canonical_bytes(linear_of(*items, **fields).query, table="people"))
    return {name: document[name] for name in ("select", "noise")}


# The linear items


def test_a_mean_is_a_sum_from_the_middle_over_a_count_of_values() -> None:
    """With 7 and 4 parts of the cost. Rows without a value are in neither; where the middle is 0 nothing is taken."""
    mean = {"select": [{"sum": {"of": MIDDLE}}, ONES], "noise": SHARE | {"weights": [7, 4]}}
    assert document_of({"mean": AGE}) == document_of({"mean": {"of": {"col": "age"}}}) == mean
    centred = document_of({"mean": {"of": {"sub": [{"col": "level"}, 0.5]}}})
    assert centred["select"][0] == {"sum": {"of": {"sub": [{"col": "level"}, 0.5]}}}


def test_a_variance_has_squares_from_the_middle_of_their_own() -> None:
    """Between minus and plus 60^2 / 2; a standard deviation is worked out from the same items."""
    found = document_of({"variance": AGE})
    assert found == {"select": [{"sum": {"of": MIDDLE}}, ONES, SQUARES], "noise": SHARE | {"weights": [12, 7, 5]}}
    assert document_of({"stddev": AGE}) == found


def test_quantiles_share_the_counts_of_their_bins() -> None:
    """A whole number has a bin of its own, or a bin ends between two; others have 64, or as many as asked for."""
    half, tenth = ({"quantile": AGE | {"probability": share}} for share in (0.5, 0.1))
    edges = [age - 0.5 for age in range(0, 123, 2)]
    assert document_of(half, tenth) == {
        "select": [{"histogram": {"bin": {"column": "age", "edges": edges}}}],
        "noise": SHARE,
    }
    bins: list[tuple[dict[str, Any], list[float]]] = [
        ({"column": "level"}, [-2, -1, 0, 1, 2, 3, 4]),
        ({"column": "spend", "bins": 4}, [0, 125, 250, 375, 500]),
        ({"column": "balance", "bins": 2}, [-0.7, -0.3, 0.1]),
        ({"column": "age", "edges": [0, 18, 120]}, [0, 18, 120]),
        ({"of": {"mul": [{"col": "spend"}, 2]}, "bins": 2}, [0, 500, 1000]),
    ]
    for asked, wanted in bins:
        (found,) = document_of({"quantile": asked | {"probability": 0.5}})["select"]
        assert found["histogram"]["bin"]["edges"] == wanted


def test_a_ratio_has_its_two_items_and_a_difference_those_of_its_item() -> None:
    """In equal parts, and in the parts of the item."""
    both = {"select": [{"sum": SPEND}, {"count": {}}], "noise": SHARE | {"weights": [1, 1]}}
    assert document_of(RATIO) == both
    assert document_of(DIFFERENCE, group_by=["member"]) == document_of({"mean": AGE}, group_by=["member"])


def test_items_share_what_they_have_in_common() -> None:
    """Weights are by what was asked for, and divided within; a count of rows is not one of values."""
    items: list[dict[str, Any]] = [{"count": {}}, {"mean": AGE}, {"stddev": AGE}, {"mean": SPEND}]
    found = document_of(*items, noise=SHARE | {"weights": [3, 1, 1, 0.5]})

    of_mean, of_deviation, half = Fraction(1, 11), Fraction(1, 24), Fraction(1, 22)
    parts: list[Fraction] = [
        Fraction(3),
        7 * of_mean + 12 * of_deviation,
        4 * of_mean + 7 * of_deviation,
        5 * of_deviation,
        7 * half,
        4 * half,
    ]
    assert found["noise"]["weights"] == [part * 264 for part in parts]
    assert found["select"][1:4] == document_of({"variance": AGE})["select"]


def test_columns_of_events_and_of_their_people_have_their_own_bounds() -> None:
    """And calculated values those that follow: from -1800 + 7 to 3600 + 7."""
    price = {"clip": [{"sub": [{"col": "paid"}, 20]}, -15, 30]}
    value = {"add": [{"mul": [price, {"abs": {"col": "people.age"}}]}, 7]}
    sums = document_of({"mean": {"of": value}}, from_="visits", per_individual={"rows": 5})["select"]
    assert sums[0]["sum"]["of"]["sub"] == [value, 907]


@pytest.mark.parametrize(
    ("item", "linear", "weights", "more"),
    [
        ({"mean": AGE}, [{"sum": {"of": MIDDLE}}, ONES], [7, 4], {}),
        ({"stddev": AGE}, [{"sum": {"of": MIDDLE}}, ONES, SQUARES], [12, 7, 5], {"group_by": ["country"]}),
        (RATIO, [{"sum": SPEND}, {"count": {}}], [1, 1], {"where": {"ge": [{"col": "age"}, 18]}}),
        (DIFFERENCE, [{"sum": {"of": MIDDLE}}, ONES], [7, 4], {"group_by": ["member"], "rule": "clip"}),
    ],
)
def test_a_plan_is_that_of_the_linear_query_under_what_was_asked(
    item: dict[str, Any], linear: list[Any], weights: list[int], more: dict[str, Any]
) -> None:
    """Numbers, noise, charges and the hash, which recognises a release, are the same; the canonical form is its own."""
    asked = plan_of(composite(item, **more))
    behind = plan_of(query(select=linear, noise=SHARE | {"weights": weights}, **more))

    assert (asked.rows, asked.scale, asked.query_hash) == (behind.rows, behind.scale, behind.query_hash)
    assert asked.layout.labels() == behind.layout.labels()
    assert json.loads(asked.canonical)["select"] == [item]
    assert plan_of(json.loads(asked.canonical)) == asked
    assert len(asked.layout.estimated) == 1
    assert behind.layout.estimated == ()


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=2))
def test_weights_keep_their_proportions(weights: list[float]) -> None:
    """Weights are whole numbers, or stay as they are."""
    sums: list[dict[str, Any]] = [{"count": {}}, {"sum": AGE}, {"mean": SPEND}]
    found = document_of(*sums, noise=SHARE | {"weights": [*weights, 1]})["noise"]["weights"]
    assert found[0] / found[1] == pytest.approx(weights[0] / weights[1])
    assert sum(found[2:]) / found[0] == pytest.approx(1 / weights[0])


# Refusals


@pytest.mark.parametrize(
    ("items", "more", "field", "message"),
    [
        ([{"mean": AGE}], {"noise": {"sigma": 5}}, "noise.sigma", "of a mean follows from how many rows there are"),
        (
            [{"count": {}}, {"stddev": AGE}],
            {"noise": {"half_width": [1, 2], "confidence": 0.9}},
            "noise.half_width",
            "give a share or a rho",
        ),
        ([{"mean": AGE}, {"count": {}}], {"per_individual": {"l2_clip": 5}}, "per_individual.l2_clip", "rows bounds"),
        ([{"mean": AGE}], {"reduce": "max"}, "reduce", "is for counts and sums, and not for mean"),
        ([{"mean": AGE}], {"mechanism": "laplace"}, "mechanism", "which needs gaussian noise"),
        ([{"mean": AGE}, {"count": {}}], {"noise": SHARE | {"weights": [1]}}, "noise.weights", "must have 2 numbers"),
        ([{"mean": AGE}, {"mean": AGE}], {}, "select[1]", "repeats select[0]"),
        ([{"mean": AGE}, {"active": {"share": 0.5}}], {}, "select", "active stands alone"),
        ([{"mean": {"column": "country"}}], {}, "select[0].mean.column", "'country' is not numeric"),
        ([{"count": {}}, {"mean": {"column": "size"}}], {}, "select[1].mean.column", "there is no column 'size'"),
        (
            [{"variance": {"of": {"add": [{"col": "age"}, {"col": "country"}]}}}],
            {},
            "select[0].variance.of.add[1]",
            "must be a number; it is a category",
        ),
        ([{"stddev": {"of": {"clip": [{"col": "age"}, 5, 5]}}}], {}, "select[0].stddev.of", "allow one number"),
        (
            [
                {
                    "mean": {
                        "of": {
                            "predict": {"link": "identity", "features": [{"of": {"col": "age"}}], "parameters": [0.5]}
                        }
                    }
                }
            ],
            {},
            "select[0].mean.of",
            "give it some by clip",
        ),
        (
            [{"stddev": {"of": {"mul": [{"col": "spend"}, 1e20]}}}],
            {},
            "select[0].stddev.of",
            "no row can be counted beside it",
        ),
        ([{"quantile": {"column": "member", "probability": 0.5}}], {}, "select[0].quantile.column", "ask for the mean"),
        (
            [{"quantile": {"of": {"col": "member"}, "probability": 0.5}}],
            {},
            "select[0].quantile.of",
            "ask for the mean",
        ),
        (
            [{"quantile": AGE | {"probability": 0.5, "bins": 9, "edges": [0, 9]}}],
            {},
            "select[0].quantile.bins",
            "must be left out",
        ),
        ([{"quantile": AGE | {"probability": 0.5, "edges": [9, 0]}}], {}, "select[0]", "must be above the edge before"),
        ([{"quantile": AGE | {"probability": 0.5}}], {"group_by": ["age"]}, "select[0]", "is in group_by already"),
        ([{"ratio": {"of": {"count": {}}, "to": {"count": {}}}}], {}, "select[0].ratio.to", "is the item above"),
        (
            [{"ratio": {"of": {"count": {}}, "to": {"sum": {"column": "town"}}}}],
            {},
            "select[0].ratio.to.sum.column",
            "there is no column 'town'",
        ),
        ([DIFFERENCE], {}, "select[0].difference.by", "'member' is not in group_by"),
        (
            [{"difference": {"of": RATIO, "by": "member", "from": 0, "to": True}}],
            {"group_by": ["member"]},
            "select[0].difference.from",
            "0 is no declared value",
        ),
        (
            [{"difference": {"of": {"count": {}}, "by": "country", "from": "NO", "to": "NO"}}],
            {"group_by": ["country"]},
            "select[0].difference.to",
            "is the group that is subtracted",
        ),
        (
            [{"difference": {"of": {"mean": {"column": "sex"}}, "by": "country", "from": "NO", "to": "SE"}}],
            {"group_by": ["country"]},
            "select[0].difference.of.mean.column",
            "there is no column 'sex'",
        ),
        (
            [{"difference": {"of": {"count": {}}, "by": "item", "from": 0, "to": 1}}],
            {"from_": "visits", "group_by": ["item"]},
            "select[0].difference.by",
            "has more than 10000 values",
        ),
        ([{"mean": AGE}], {"noise": {"share": 1e-12}}, "noise.share", "leaves less than 2^-40 rho for this item"),
        (
            [{"count": {}}, {"mean": AGE}],
            {"noise": SHARE | {"weights": [1e15, 1]}},
            "noise.weights[1]",
            "leaves less than 2^-40 rho",
        ),
        (
            [{"linear": {"column": "age", "weights": {"indices": ["a"], "values": [1]}}}, {"mean": AGE}],
            {},
            "select[0].linear.weights.indices[0]",
            "must be a number",
        ),
        (
            [{"mean": {"of": {"mul": [{"col": "age"}, number]}}} for number in range(2, 40)],
            {},
            "select",
            "is worked out from 76 linear items, more than 64",
        ),
    ],
)
def test_what_cannot_be_worked_out_is_refused(
    items: list[dict[str, Any]], more: dict[str, Any], field: str, message: str
) -> None:
    """By the field that was asked, whatever linear item it is about."""
    named, said = refused(plan_of, composite(*items, **more))
    assert (named, message in said) == (field, True), said


def test_a_dataset_without_gaussian_noise_has_no_composite_items() -> None:
    """In words, whichever mechanism is asked for: one refusal does not lead to the next."""
    pure = PureAccounting()
    for mechanism in ({}, {"mechanism": "laplace"}):
        field, said = refused(plan_of, composite({"mean": AGE}, **mechanism), pricing=pure)
        assert (field, said.endswith("which needs gaussian noise; this dataset has none")) == ("mechanism", True)


def test_shortening_is_said_of_what_is_worked_out() -> None:
    """A weighted mean is another number than a mean."""
    said = {rule: shown_of(plan_of(composite({"mean": AGE}, rule=rule))).notes for rule in ("skip", "clip")}
    assert said == {
        "skip": (),
        "clip": ("An individual who is short of budget weighs less, in the sums and the counts alike.",),
    }


def test_above_ten_thousand_numbers_nothing_is_worked_out() -> None:
    """There are no labels either: an answer has the numbers, which a client may work out."""
    items: tuple[dict[str, Any], ...] = ({"mean": AGE}, {"count": {}})
    few = plan_of(composite(*items, group_by=["level"]))
    many = plan_of(composite(*items, group_by=["country", {"bin": {"column": "spend", "width": 0.1}}]))
    assert (few.dimension, len(shown_of(few).estimated)) == (18, 2)
    assert (many.dimension, len(many.layout.estimated), shown_of(many).estimated) == (45_000, 2, ())


def test_items_of_one_title_are_told_apart_by_their_places() -> None:
    """So are two medians of one column in other bins."""
    medians = [{"quantile": AGE | {"probability": 0.5, "bins": bins}} for bins in (10, 20)]
    titles = [item.title for item in plan_of(composite(*medians)).layout.estimated]
    assert titles == [f"select[{place}] quantile(age, 0.5)" for place in (0, 1)]
