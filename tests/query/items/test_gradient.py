"""Moments and gradients as plans: scale, labels, parameters in steps, and what is refused."""

import json
from fractions import Fraction
from math import isclose, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.items.gradient import CLIP_BITS
from service.query.model_parameters import ARGUMENT_MAX
from service.query.product_plan import WIDE_ENTRIES, WIDE_ROWS, rows_in_products
from service.query.runs import BLOCK_ROWS, RUN_ENTRIES
from service.query.stated import shown_of
from tests.query.samples import plan_of, query, refused

FEATURES: list[dict[str, Any]] = [{"of": {"mul": [{"col": "age"}, 0.01]}, "fill": 0}, {"one_hot": "country"}]
LOGISTIC: dict[str, Any] = {
    "loss": "logistic",
    "target": {"col": "member"},
    "features": FEATURES,
    "parameters": [0.5, 0, -1, 2],
}
SQUARED: dict[str, Any] = LOGISTIC | {"loss": "squared", "target": {"col": "level"}, "residual_clip": 4}
SOFTMAX: dict[str, Any] = LOGISTIC | {"loss": "softmax", "target": "country", "parameters": [[0.5, 0, -1, 2]] * 3}


def moments(**more: Any) -> dict[str, Any]:
    """A query for second moments."""
    return query(select=[{"moments": {"features": FEATURES}}]) | more


def gradient(model: dict[str, Any] = LOGISTIC, /, **more: Any) -> dict[str, Any]:
    """A query for a gradient."""
    return query(select=[{"gradient": model}]) | more


def test_moments_have_a_number_for_each_pair_of_features() -> None:
    """Row by row of the triangle; the natural bound is that of the features at their bounds."""
    found = plan_of(moments())
    assert found.dimension == 10
    names = ["(age * 0.01)", "country = NO", "country = SE", "country = DK"]
    pairs = [*((names[0], name) for name in names), (names[1], names[1])]
    assert found.answered.labels()[:5] == [{"select": "moments", "feature": one, "with": other} for one, other in pairs]
    assert shown_of(found).axes == [{"select": [{"select": "moments", "offset": 0, "size": 10, "features": names}]}]
    squares, fourths = 1.2**2 + 1, 1.2**4 + 1
    assert isclose(found.scale.l2_charged, sqrt((squares**2 + fourths) / 2), rel_tol=1e-3)
    assert (found.scale.grid_log2, found.has_one_norm, found.scale.clip_binds) == (-20, False, False)


@pytest.mark.parametrize(
    ("model", "classes", "bound"),
    [(LOGISTIC, 1, 1), (SQUARED, 1, 4), (SOFTMAX, 3, sqrt(2))],
    ids=["logistic", "squared", "softmax"],
)
def test_a_gradient_has_a_number_for_each_class_and_feature(model: dict[str, Any], classes: int, bound: float) -> None:
    """The natural bound is the largest error times the longest features."""
    found = plan_of(gradient(model))
    assert found.dimension == 4 * classes
    first = {"select": "gradient", "class": "NO"} if classes > 1 else {"select": "gradient"}
    assert found.answered.labels()[0] == first | {"feature": "(age * 0.01)"}
    assert isclose(found.scale.l2_charged, bound * sqrt(1.2**2 + 1), rel_tol=1e-3)
    assert shown_of(found).axes[0]["select"][0].get("classes") == (["NO", "SE", "DK"] if classes > 1 else None)  # type: ignore[index]


@given(clip=st.floats(1e-4, 10), ratio=st.floats(1e-2, 1e3), largest=st.floats(1e-6, 1e6), numbers=st.data())
def test_the_steps_suit_the_clip_and_the_parameters(
    clip: float, ratio: float, largest: float, numbers: st.DataObject
) -> None:
    """An error has 2^8 steps within the clip beside the longest features; every argument is below 2^52 steps."""
    drawn = numbers.draw(st.lists(st.floats(-largest, largest), min_size=4, max_size=4))
    asked = gradient(LOGISTIC | {"parameters": drawn}, per_individual={"l2_clip": clip}, noise={"sigma": ratio * clip})
    found = plan_of(asked)
    assert found.layout.items[0].product is not None
    assert found.layout.items[0].product.model is not None
    features, model = found.layout.items[0].product.features, found.layout.items[0].product.model
    error = Fraction(clip) ** 2 / (features.squares_max * Fraction(4) ** features.step_log2)
    assert min(error, Fraction(1)) >= Fraction(4) ** (model.error_log2 + CLIP_BITS)
    assert found.scale.grid_log2 == features.step_log2 + model.error_log2
    assert found.scale.charged_squared_steps * Fraction(4) ** found.scale.grid_log2 <= Fraction(clip) ** 2
    assert int(np.abs(model.parameters).sum()) * features.peak < 4 * ARGUMENT_MAX
    for parameter, step in zip(drawn, model.parameters.ravel().tolist(), strict=True):
        unit = Fraction(2) ** model.parameter_log2
        assert abs(Fraction(parameter) - step * unit) <= unit / 2


MANY_FEATURES = [{"of": {"mul": [{"col": "age"}, n / 60_000]}} for n in range(59_000, 60_000)]


def test_many_features_are_counted_in_larger_steps() -> None:
    """So that the squared norm of a square of them fits 64 bits."""
    few, all_of_them = (
        plan_of(query(select=[{"moments": {"features": each}}], noise={"sigma": 1e6}), capacity=1000)
        for each in (MANY_FEATURES[-2:], MANY_FEATURES)
    )
    assert all_of_them.scale.grid_log2 > few.scale.grid_log2
    assert 2**58 < all_of_them.scale.charged_squared_steps <= 2**61


def test_norms_before_the_clip_fit_64_bits_too() -> None:
    """A clip makes no norm smaller before it is taken: of many features the steps are larger with a clip as without."""
    asked = moments(select=[{"moments": {"features": MANY_FEATURES}}], noise={"sigma": 1e5})
    found = plan_of(asked | {"per_individual": {"l2_clip": 1e5}}, capacity=1000)
    assert found.layout.items[0].product is not None
    features = found.layout.items[0].product.features
    assert (features.squares_max**2 + features.fourths_max) // 2 <= 2**61


def test_the_canonical_form_is_a_query_of_its_own() -> None:
    """Read again, it is the same plan."""
    for asked in (moments(), gradient(), gradient(SQUARED), gradient(SOFTMAX)):
        first = plan_of(asked)
        again = plan_of(json.loads(first.canonical))
        assert (again.canonical, again.layout.items[0].product) == (first.canonical, first.layout.items[0].product)


def test_so_many_individuals_are_worked_on_as_stay_in_cache() -> None:
    """At least one, whatever the number of features, and 256 of up to 4,096."""
    assert rows_in_products(64) == RUN_ENTRIES // 64
    assert rows_in_products(1) == BLOCK_ROWS
    assert rows_in_products(1025) == rows_in_products(4096) == WIDE_ROWS
    assert rows_in_products(2**16) == WIDE_ENTRIES // 2**16
    assert rows_in_products(2 * WIDE_ENTRIES) == 1


MANY = [{"of": {"mul": [{"col": "age"}, n / 100_000]}} for n in range(800, 910)]
MOST = "1e+10 products of two numbers for a dataset's capacity; select fewer features or classes"
ALONE = "stands alone: ask the other items in a query of their own"
COUNT: dict[str, Any] = {"count": {}}
SMALL = "is too small beside the declared bounds"
TELLS = "a one_hot feature tells groups apart"
EACH = "one for each"
FOUR = f"must have 4 numbers, {EACH} feature"
BOOLEAN = "must be a boolean column;"
BIN = {"bin": {"column": "age", "width": 60}}
UNBOUNDED = {key: value for key, value in SQUARED.items() if key != "residual_clip"}


@pytest.mark.parametrize(
    ("asked", "field", "message"),
    [
        (moments(select=[COUNT, {"moments": {"features": FEATURES}}]), "select", f"moments {ALONE}"),
        (gradient(select=[{"gradient": LOGISTIC}, COUNT]), "select", f"gradient {ALONE}"),
        (moments() | {"from": "visits"}, "from", "moments is about individuals, and this is a table of events"),
        (moments(group_by=["country"]), "group_by", f"must be left out with moments; {TELLS}"),
        (gradient(LOGISTIC | {"parameters": [1, 2]}), "parameters", f"{FOUR}, not 2"),
        (gradient(LOGISTIC | {"parameters": [[1, 2, 3, 4]]}), "parameters", "must be one list of numbers for logistic"),
        (
            gradient(SOFTMAX | {"parameters": [1, 2, 3, 4]}),
            "parameters",
            f"must be 3 lists, {EACH} value of the target",
        ),
        (gradient(SOFTMAX | {"parameters": [[1, 2, 3, 4], [1], [1]]}), "parameters[1]", f"{FOUR}, not 1"),
        (gradient(LOGISTIC | {"residual_clip": 1}), "residual_clip", "must not be given for logistic"),
        (gradient(UNBOUNDED), "residual_clip", "is required: a residual has no bound of its own"),
        (gradient(LOGISTIC | {"target": "country"}), "target", f"{BOOLEAN} for the values of 'country' use softmax"),
        (gradient(SQUARED | {"target": "country"}), "target", "must be a number; 'country' is none"),
        (gradient(LOGISTIC | {"target": BIN}), "target", "must be a value, not groups: logistic predicts one number"),
        (gradient(per_individual={"l2_clip": 1e-9}), "per_individual.l2_clip", SMALL),
        (moments(per_individual={"l2_clip": 1e-4}), "per_individual.l2_clip", SMALL),
        (moments(select=[{"moments": {"features": MANY}}]), "select", f"makes 1.2e+10 of at most {MOST}"),
        (gradient(noise={"sigma": 1e9}), "noise.sigma", None),
        (gradient(noise={"sigma": 1e-9}), "noise.sigma", None),
        (gradient(LOGISTIC | {"parameters": [1e31, 0, 0, 0]}), "parameters[0]", "must be at most 1e+30"),
        (gradient(LOGISTIC | {"loss": "hinge"}), "loss", None),
        (gradient(LOGISTIC | {"features": []}), "features", "must not be empty"),
        (gradient(LOGISTIC | {"features": [{"fill": 0}]}), "features[0]", None),
    ],
)
def test_what_will_not_do_is_refused_with_its_field(asked: dict[str, Any], field: str, message: str | None) -> None:
    """By public numbers alone."""
    found = refused(plan_of, asked)
    kind = next(iter(asked["select"][0]))
    inner = field.split("[", maxsplit=1)[0] in {"parameters", "residual_clip", "target", "loss", "features"}
    assert found[0] == (f"select[0].{kind}.{field}" if inner else field)
    assert message is None or found[1] == message
