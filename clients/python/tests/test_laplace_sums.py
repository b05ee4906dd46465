"""Quantiles of sums of Laplace noise, and the numbers worked out from answers with it that hold what was counted."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.python.tests.released import item_axis, released, standard_error
from sparing import Answer, combine, consistent_tables, ratios
from sparing._laplace_sums import laplace_sum_quantile, noise_quantile, widest_quantile
from sparing._normal import two_sided_quantile

GROUPS = 200
SCALE = 20.0
CONFIDENCES = st.floats(0.01, 1 - 1e-6)


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999, 1 - 1e-7])
def test_one_and_two_summands_have_known_quantiles(confidence: float) -> None:
    """Beyond x lies e^-x of one, and of two of one scale (1 + x / 2) e^-x."""
    one, two = laplace_sum_quantile([3.0], confidence) / 3, laplace_sum_quantile([2.0, 2.0], confidence) / 2
    beyond = 1 - confidence
    assert math.exp(-one) == pytest.approx(beyond, rel=1e-6)
    assert beyond * (1 - 2.0**-10) <= (1 + two / 2) * math.exp(-two) <= beyond


@given(CONFIDENCES)
def test_two_scales_have_their_known_quantile(confidence: float) -> None:
    """Beyond x lies (e^-x - c^2 e^(-x / c)) / (1 - c^2) of the scales 1 and c."""
    other = 0.5
    x = laplace_sum_quantile([1.0, other], confidence)
    found = (math.exp(-x) - other**2 * math.exp(-x / other)) / (1 - other**2)
    assert (1 - confidence) * (1 - 2.0**-10) <= found <= (1 - confidence) * (1 + 1e-9)


def test_many_summands_are_nearly_normal() -> None:
    """And so is one small summand beside a normal number; the bound is never below."""
    many = laplace_sum_quantile([1.0] * 400, 0.95) / math.sqrt(800)
    beside = laplace_sum_quantile([0.125], 0.95, sigma=1.0) / math.hypot(1, 0.125 * math.sqrt(2))
    for found in (many, beside):
        assert two_sided_quantile(0.95) < found < two_sided_quantile(0.95) * 1.01


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.sampled_from([0.0, 0.3, 2.0]), CONFIDENCES)
def test_no_sum_is_wider_than_the_widest(scales: list[float], sigma: float, confidence: float) -> None:
    """In standard deviations; small scales are rounded up, by which the sum is a little wider."""
    kept = [max(scale, max(*scales, sigma) / 8) for scale in scales]
    deviation = math.sqrt(2 * math.fsum(scale * scale for scale in kept) + sigma * sigma)
    assert laplace_sum_quantile(kept, confidence, sigma=sigma) <= deviation * widest_quantile(confidence) * 1.002


def test_bad_arguments_are_refused() -> None:
    """By name."""
    for scales, confidence in (([], 0.5), ([0.0], 0.5), ([math.inf], 0.5), ([1.0], 0.0), ([1.0], 1.0)):
        with pytest.raises(ValueError, match="scales and confidence are out of range"):
            laplace_sum_quantile(scales, confidence)
    for sigma in (-1.0, math.inf):
        with pytest.raises(ValueError, match="sigma must not be negative"):
            laplace_sum_quantile([1.0], 0.5, sigma=sigma)


def answered(truth: np.ndarray, rng: np.random.Generator, *, is_grouped: bool = True) -> Answer:
    """A count with Laplace noise, by group or of all."""
    labels = [{"g": group, "select": "count"} if is_grouped else {"select": "count"} for group in range(len(truth))]
    axes = ([{"column": "g", "size": len(truth)}] if is_grouped else []) + [{"select": [item_axis("count")]}]
    values = np.rint(truth + rng.laplace(0, SCALE, len(truth)))
    answer = released(values.tolist(), labels, axes=tuple(axes), sigma=SCALE * math.sqrt(2), grid=1.0)
    return replace(answer, mechanism="laplace", scale=SCALE)


def test_numbers_worked_out_from_laplace_answers_hold_as_often_as_they_say() -> None:
    """Each by itself and all at once; normal quantiles, which are too short, would be found out."""
    rng, truth = np.random.default_rng(5), np.full(GROUPS, 30.0)
    held: dict[str, list[bool]] = {"each": [], "at once": [], "table": [], "ratio": [], "normal": []}
    for _ in range(60):
        first, second = answered(truth, rng), answered(truth, rng)
        whole = answered(truth[:1] * 3_000, rng, is_grouped=False)
        both = combine([first, second])
        held["each"] += [30 in each for each in both.intervals(0.99)]
        held["at once"].append(all(30 in each for each in both.intervals(0.95, simultaneous=True)))
        held["table"] += [30 in each.interval(0.99) for each in consistent_tables([first]).tables[0]]
        held["ratio"] += [30 / 90_000 in each.interval(0.99) for each in ratios(first, whole)]
        normal = two_sided_quantile(0.99) * SCALE
        held["normal"] += [abs(value - 30) <= normal for value in both.values]
    for name, least in (("each", 0.99), ("at once", 0.95), ("table", 0.99), ("ratio", 0.99)):
        assert np.mean(held[name]) >= least - 3 * standard_error(least, len(held[name])), name
    assert np.mean(held["normal"]) < 0.99 - 3 * standard_error(0.99, len(held["normal"]))


def test_normal_noise_keeps_its_quantile() -> None:
    """Nothing is lost where no noise is Laplace noise."""
    assert noise_quantile(0.95, has_laplace=False) == two_sided_quantile(0.95)
    assert noise_quantile(0.95, has_laplace=True) == pytest.approx(-math.log(0.05) / math.sqrt(2))
