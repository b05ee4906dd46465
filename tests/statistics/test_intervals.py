"""Half widths against the real sampler: plans are compiled, their noise is drawn, and what is covered is counted."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from service.core.noise import rounded_gaussian
from service.query.plan import Plan
from tests.core.injected import seeded
from tests.query.samples import half_width_95, plan_of, query

DRAWS = 400_000
SIGMAS = [0.3, 0.5, 1.0, 3.0, 20.0]  # grid steps
Z = 1.959963984540054


def compiled(**fields: Any) -> Plan:
    """The plan of a query of people."""
    return plan_of(query(**fields))


def covered(plan: Plan, half_width: float) -> float:
    """How much of the plan's noise is within a distance, in query units: what is counted takes no part in it."""
    noise = rounded_gaussian(DRAWS, plan.scale.law.size_steps, seeded(61)) * 2.0**plan.scale.grid_log2
    return float((np.abs(noise) <= half_width).mean())


def exactly(plan: Plan, half_width: float) -> float:
    """The part of the law within a distance, summed step by step."""
    reach = math.floor(half_width / 2.0**plan.scale.grid_log2)
    edges = (np.arange(-reach, reach + 2) - 0.5) / plan.scale.law.size_steps
    return float(np.diff(stats.norm.cdf(edges)).sum())


def is_as_stated(share: float, probability: float) -> bool:
    """Tell whether a share of the draws is the probability, but for five standard errors and one draw."""
    error = math.sqrt(probability * (1 - probability) / DRAWS)
    return abs(share - probability) <= 5 * error + 1 / DRAWS


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_stated_half_width_covers_what_was_counted(sigma: float) -> None:
    """At least 95 per cent of the draws and as many as the law says; one person less covers too few."""
    plan = compiled(noise={"sigma": sigma})
    width = half_width_95(sigma=plan.scale.size, grid_log2=plan.scale.grid_log2)

    assert plan.scale.grid_log2 == 0
    assert width == int(width)
    assert exactly(plan, width) >= 0.95
    assert is_as_stated(covered(plan, width), exactly(plan, width))
    assert covered(plan, width) >= 0.95
    assert covered(plan, width - 1) < 0.95


@pytest.mark.parametrize(("sigma", "share"), [(0.3, 0.9044), (0.5, 0.6827), (1.0, 0.8664), (3.0, 0.9332)])
def test_the_normal_quantile_alone_would_be_rejected(sigma: float, share: float) -> None:
    """It was stated as 95 per cent before; at sigma 20 the two happen to hold the same steps."""
    plan = compiled(noise={"sigma": sigma})

    assert covered(plan, Z * sigma) == pytest.approx(share, abs=3e-3)
    assert not is_as_stated(covered(plan, Z * sigma), 0.95)


@pytest.mark.parametrize("confidence", [0.68, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("half_width", [1.0, 2.9, 10.0, 40.0])
def test_noise_asked_for_by_a_half_width_keeps_to_it(half_width: float, confidence: float) -> None:
    """It keeps to it as often as was asked for, no less and no more: the noise is the largest that does."""
    plan = compiled(noise={"half_width": half_width, "confidence": confidence})

    assert exactly(plan, half_width) == pytest.approx(confidence, abs=1e-12)
    assert is_as_stated(covered(plan, half_width), confidence)


def test_the_quantile_alone_would_give_too_much_noise() -> None:
    """2.9 people at 95 per cent were sigma 1.48 before, which keeps to two of them nine times in ten."""
    plan = compiled(noise={"sigma": 2.9 / Z})

    assert covered(plan, 2.9) == pytest.approx(0.909, abs=3e-3)
    assert not is_as_stated(covered(plan, 2.9), 0.95)


@pytest.mark.parametrize("noise", [{"sigma": 30.0}, {"half_width": 50.0, "confidence": 0.95}])
def test_on_a_fine_grid_too(noise: dict[str, Any]) -> None:
    """A sum of a real column, whose steps are a small part of sigma."""
    plan = compiled(select=[{"sum": {"column": "spend"}}], noise=noise)

    assert plan.scale.grid_log2 < -10
    assert is_as_stated(covered(plan, half_width_95(sigma=plan.scale.size, grid_log2=plan.scale.grid_log2)), 0.95)


@pytest.mark.parametrize(
    "noise", [{"sigma": [3.3, 700]}, {"half_width": [10, 5000], "confidence": 0.95}, {"share": 0.1, "weights": [3, 1]}]
)
def test_the_half_width_of_each_item_covers_its_numbers(noise: dict[str, Any]) -> None:
    """At least 95 per cent of the draws of each; one sigma laid over both covers another share of either."""
    plan = compiled(select=[{"count": {}}, {"sum": {"column": "spend"}}], noise=noise)
    draws = rounded_gaussian(DRAWS, plan.scale.law.size_steps, seeded(67))

    shares = []
    for place, sigma in enumerate(plan.scale.sigmas):
        told = plan.noise.of_item(place)
        numbers = draws * told["grid"]
        shares.append(float((np.abs(numbers) <= told["half_width_95"]).mean()))
        assert np.std(numbers) == pytest.approx(sigma, rel=5e-3)
        assert is_as_stated(shares[-1], 0.95)
        other = plan.noise.of_item(1 - place)["half_width_95"]
        assert not is_as_stated(float((np.abs(numbers) <= other).mean()), 0.95)
    assert len(shares) == 2
