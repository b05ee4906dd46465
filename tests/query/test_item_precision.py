"""A precision for each select item: the forms of a request, a share in parts, and one number for unlike items."""

import json
from fractions import Fraction
from math import frexp, ldexp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.charge import UNITS_PER_RHO
from service.core.half_widths import half_width_steps
from service.engine.terms import terms_of
from service.query.canonical import canonical_bytes
from service.query.item_precision import (
    ItemHalfWidths,
    ItemPrecision,
    ItemWorstCases,
    by_item,
    item_precision_of,
    refuse_uneven,
)
from service.query.language import Query
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.query.problems import QueryProblem
from tests.query.samples import BUDGET_UNITS, CAPACITY, SCHEMA, refused

COUNT: dict[str, Any] = {"count": {}}
SPEND: dict[str, Any] = {"sum": {"column": "spend"}}
BOTH = [COUNT, SPEND]
TWO = "must have 2 numbers, one for each select item"


def query(noise: dict[str, Any], select: list[dict[str, Any]] | None = None, **rest: Any) -> Query:
    """A request of two items, or of others."""
    document = {"version": 1, "select": BOTH if select is None else select, "noise": noise} | rest
    return parse_query(json.dumps(document).encode())


def noise_of(asked: Query) -> dict[str, Any]:
    """The noise as the canonical form writes it."""
    noise: dict[str, Any] = json.loads(canonical_bytes(asked))["noise"]
    return noise


def precision_of(asked: Query, **facts: Any) -> ItemPrecision:
    """The precision of its items."""
    return item_precision_of(asked.noise, **{"count": len(asked.select), "budget_units": BUDGET_UNITS} | facts)


@pytest.mark.parametrize(
    ("noise", "meant"),
    [
        ({"share": 0.05}, {"share": 0.05, "weights": [1, 1]}),
        ({"rho": 0.5}, {"rho": 0.5, "weights": [1, 1]}),
        ({"share": 0.05, "weights": [3, 1]}, {"share": 0.05, "weights": [3, 1]}),
        ({"sigma": [5, 2000]}, {"sigma": [5, 2000]}),
        ({"sigma": 5}, {"sigma": 5}),
    ],
)
def test_a_share_is_divided_among_several_items_and_says_so(noise: dict[str, Any], meant: dict[str, Any]) -> None:
    """The canonical form has the parts; an earlier one without them means one sigma for all."""
    asked = by_item(query(noise))
    assert noise_of(asked) == meant
    assert asked.is_by_item == (meant != {"sigma": 5})
    assert noise_of(query(noise)) == noise


@pytest.mark.parametrize(
    ("noise", "plain"),
    [
        ({"sigma": [5]}, {"sigma": 5}),
        ({"half_width": [10], "confidence": 0.9}, {"half_width": 10, "confidence": 0.9}),
        ({"share": 0.05, "weights": [3]}, {"share": 0.05}),
        ({"rho": 0.05, "weights": [3]}, {"rho": 0.05}),
    ],
)
def test_a_list_of_one_item_is_its_number(noise: dict[str, Any], plain: dict[str, Any]) -> None:
    """Byte for byte the query of one item as it always was, clip and all."""
    for select in ([COUNT], [SPEND]):
        listed = by_item(query(noise, select, per_individual={"l2_clip": [2.5], "rows": 3}))
        assert canonical_bytes(listed) == canonical_bytes(
            query(plain, select, per_individual={"l2_clip": 2.5, "rows": 3})
        )
        assert not listed.is_by_item
        unclipped = query(plain, select)
        assert by_item(unclipped) is unclipped


def test_several_items_have_a_clip_each() -> None:
    """One number has no unit that fits both."""
    with pytest.raises(QueryProblem, match=r"per_individual\.l2_clip.*list of 2 numbers"):
        by_item(query({"sigma": [5, 2000]}, per_individual={"l2_clip": 3}))
    assert by_item(query({"sigma": 5}, per_individual={"l2_clip": [3, 4]})).is_by_item


@pytest.mark.parametrize(
    ("noise", "wrong"),
    [
        ({"sigma": [5, 6, 7]}, f"noise.sigma {TWO}, not 3"),
        ({"half_width": [5], "confidence": 0.5}, f"noise.half_width {TWO}, not 1"),
        ({"share": 0.5, "weights": [1, 1, 1]}, f"noise.weights {TWO}, not 3"),
        ({"half_width": [5, 6], "confidence": 1e-10}, "noise.confidence is too small for an interval"),
        ({"rho": 1e-13, "weights": [1, 1]}, "noise.rho must be at least 2^-40"),
        ({"share": 0.5, "weights": [1, 1e-15]}, "noise.weights[1] leaves less than 2^-40 rho for this item"),
    ],
)
def test_a_precision_that_cannot_be_is_refused_by_its_field(noise: dict[str, Any], wrong: str) -> None:
    """Numbers that do not fit the items, and parts of nothing."""
    assert " ".join(refused(precision_of, query(noise))).startswith(wrong)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5), st.floats(1e-4, 1))
def test_the_parts_of_a_share_are_within_it(weights: list[float], share: float) -> None:
    """Rounded down, so that no individual is charged more than the share."""
    select = [COUNT, *({"sum": {"column": f"c{number}"}} for number in range(len(weights) - 1))]
    precision = precision_of(query({"share": share, "weights": weights}, select))
    assert isinstance(precision, ItemWorstCases)
    units = Fraction(share) * BUDGET_UNITS
    assert units - len(weights) - 1 <= sum(precision.units) <= units
    for part, weight in zip(precision.units, weights, strict=True):
        assert part <= units * Fraction(weight) / sum(map(Fraction, weights)) < part + 2


@given(reach=st.fractions(Fraction(1, 10**6), 10**12), units=st.integers(1, 2**50))
def test_a_worst_case_gives_the_least_sigma_of_24_bits(reach: Fraction, units: int) -> None:
    """The next smaller one would cost more."""
    sigma = ItemWorstCases(field="noise.share", units=(units,)).sigma(0, reach, 28)
    price = reach * (UNITS_PER_RHO // 2)
    assert price <= units * Fraction(sigma) ** 2
    mantissa, exponent = frexp(sigma)
    assert (mantissa * 2**25).is_integer()
    assert price > units * Fraction(ldexp(mantissa * 2**24 - 1, exponent - 24)) ** 2


@given(st.floats(1e-6, 1e9), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_a_half_width_is_kept_to_in_whole_steps(half_width: float, confidence: float) -> None:
    """The stated number of steps times a step is within it, and about as large."""
    precision = precision_of(query({"half_width": [half_width, 1], "confidence": confidence}))
    assert isinstance(precision, ItemHalfWidths)
    size = Fraction(precision.sigma(0, Fraction(1), 28)) / 2**28
    within = half_width_steps(2.0**28, confidence) * size
    assert Fraction(half_width) * (1 - Fraction(1, 2**50)) <= within <= Fraction(half_width)


def test_one_number_for_unlike_items_is_refused_with_the_numbers_that_are_meant() -> None:
    """In the proportion of the bounds, the number for the least of them."""
    for noise in ({"sigma": 5}, {"half_width": 5, "confidence": 0.95}):
        with pytest.raises(QueryProblem, match=r"give one for each item, such as \[5, 93800\]"):
            refuse_uneven(query(noise), [1.0, 18_757.0])
        refuse_uneven(query(noise), [1.0, 4.0])
    divided: list[dict[str, Any]] = [{"sigma": [5, 5]}, {"half_width": [5, 6], "confidence": 0.95}]
    for other in [*divided, {"share": 0.1}, {"rho": 0.1}]:
        refuse_uneven(query(other), [1.0, 18_750.0])


ODD = [5e-324, 1e-300, 1e-30, 1e-9, 0.1, 1, 3.3, 1e6, 1e15, 1e30, 1e100]
WEIGHTS = [("DK", 7), ("SE", -1.5e-9)]
ITEMS: list[dict[str, Any]] = [
    COUNT,
    SPEND,
    {"sum": {"column": "balance"}},
    {"histogram": {"column": "area"}},
    {"linear": {"column": "country", "weights": [{"indices": [name], "values": [n]} for name, n in WEIGHTS]}},
    {"sum": {"of": {"sub": [{"col": "age"}, {"col": "age"}]}}},
    {"sum": {"of": {"mul": [{"col": "spend"}, {"col": "balance"}]}}},
]


@st.composite
def odd_queries(draw: st.DrawFn) -> dict[str, Any]:
    """Several items and any precision that their fields admit."""
    select = draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=4, unique_by=str))
    numbers = st.lists(st.sampled_from(ODD), min_size=len(select), max_size=len(select))
    clips = st.lists(st.sampled_from([1e-30, 1e-3, 1, 1e30]), min_size=len(select), max_size=len(select))
    confidence = st.sampled_from([1e-300, 1e-12, 0.5, 1 - 1e-16])
    noise = st.one_of(
        st.fixed_dictionaries({"sigma": numbers}),
        st.fixed_dictionaries({"half_width": numbers, "confidence": confidence}),
        st.fixed_dictionaries({"share": st.sampled_from([1e-300, 1e-12, 0.01, 1]), "weights": numbers}),
        st.fixed_dictionaries({"rho": st.sampled_from(ODD), "weights": numbers}),
    )
    document = {"version": 1, "select": select, "noise": draw(noise)}
    return document | draw(st.fixed_dictionaries({"per_individual": st.none() | clips.map(lambda x: {"l2_clip": x})}))


@settings(max_examples=300)
@given(odd_queries())
def test_any_precision_is_a_plan_that_the_engine_takes_or_a_problem(document: dict[str, Any]) -> None:
    """Nothing overflows, and no item comes to have no step."""
    try:
        asked = by_item(parse_query(json.dumps(document).encode()))
        plan = compile_query(asked, SCHEMA, capacity=CAPACITY, budget_units=BUDGET_UNITS)
    except QueryProblem as problem:
        assert problem.errors  # noqa: PT017 - what is raised is the claim
        return
    assert terms_of(plan, {name: column.coding for name, column in plan.rows.columns.items()}, rows_max=1)
    assert plan.scale.worst_case_units > 0


MOMENTS: dict[str, Any] = {"moments": {"features": [{"of": {"col": "balance"}}]}}


@pytest.mark.parametrize("item", [COUNT, MOMENTS], ids=["count", "moments"])
@pytest.mark.parametrize(
    ("noise", "clip", "field"),
    [
        ({"sigma": [5, 6]}, 2.5, "noise.sigma"),
        ({"half_width": [5, 6], "confidence": 0.9}, 2.5, "noise.half_width"),
        ({"rho": 0.5, "weights": [1, 2]}, 2.5, "noise.weights"),
        ({"share": 0.5, "weights": [1, 2]}, 2.5, "noise.weights"),
        ({"sigma": 5}, [2.5, 3], "per_individual.l2_clip"),
    ],
    ids=["sigma", "half width", "rho", "share", "clip"],
)
def test_several_numbers_for_one_item_are_refused(item: dict[str, Any], noise: Any, clip: Any, field: str) -> None:
    """Moments and gradients took no notice of the list of clips, and ended in an error for one of sigmas."""
    with pytest.raises(QueryProblem, match="must have 1 numbers, one for each select item, not 2") as found:
        by_item(query(noise, [item], per_individual={"l2_clip": clip}))
    assert [error.field for error in found.value.errors] == [field]
