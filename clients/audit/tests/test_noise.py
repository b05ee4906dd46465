"""The laws of noise as the audit knows them: prices, losses and statistics, against sums and noise drawn otherwise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing_audit.accountings import ACCOUNTINGS
from sparing_audit.laws import Doubles, even_p
from sparing_audit.noise import NOTHING, UNITS_PER_RHO, Gaussian, Laplace, Law

PURE = ACCOUNTINGS["pure"]
SCALES = [0.3, 1.0, 2.5, 40.0]
SIGMAS = st.one_of(st.integers(1, 5000).map(float), st.floats(0.3, 1e6))


@pytest.mark.parametrize(
    ("sigma", "length", "units"),
    [(100, 1, 54975582), (100, 1000, 54975581388800), (1000, 1, 549756), (12345.678, 1, 3607)],
)
def test_charges_are_those_of_the_theory_note(sigma: float, length: int, units: int) -> None:
    """Section 4."""
    assert Gaussian(sigma).charge(length).least == units


@given(SIGMAS, st.integers(1, 2**40), st.integers(-5, 2**50))
def test_a_charge_is_rounded_up_and_inverted(sigma: float, length: int, room: int) -> None:
    """2^40 length^2 / (2 sigma^2), for the double that sigma is; the longest vector fits, and the next does not."""
    law = Gaussian(sigma)
    charge, longest = law.charge(length), law.longest(room)
    assert 0 <= charge.least - Fraction(length**2 * 2**40) / (2 * Fraction(sigma) ** 2) < 1
    assert charge.least == charge.most
    assert law.charge(longest).least <= max(room, 0) < law.charge(longest + 1).least


@pytest.mark.parametrize("kind", ACCOUNTINGS)
def test_a_charge_is_the_ceiling_and_a_ten_thousandth_more_at_most(kind: str) -> None:
    """The charge of pure differential privacy is one number; nothing costs nothing, and the price rises."""
    law = Laplace(7.25, ACCOUNTINGS[kind])
    charge, units = law.charge(3), float(ACCOUNTINGS[kind].laplace_amount(Fraction(3) / Fraction(7.25))) * UNITS_PER_RHO
    assert 0 <= charge.least - units < 1.001
    assert charge.most - charge.least <= (0 if kind == "pure" else units / 10_000 + 1)
    charges = [law.charge(steps).least for steps in (0, 1, -2, 3, 40, 500)]
    assert charges[0] == NOTHING.least
    assert charges == sorted(set(charges))


def probability(k: int, scale: float) -> float:
    """The probability of round(Lap(scale)) = k, by the distribution function."""

    def beyond(x: float) -> float:
        return 0.5 * math.exp(-x / scale)

    return 1 - 2 * beyond(0.5) if k == 0 else beyond(abs(k) - 0.5) - beyond(abs(k) + 0.5)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("counted", [1.0, -3.0])
def test_a_loss_is_the_log_of_a_ratio_of_probabilities(scale: float, counted: float) -> None:
    """And never above the price of pure differential privacy, however large an answer is."""
    law, steps = Laplace(scale, PURE), np.arange(-6.0, 7.0)
    expected = [math.log(probability(k - int(counted), scale) / probability(k, scale)) for k in range(-6, 7)]
    assert law.losses(steps, np.full(13, counted)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    far = law.losses(np.array([-1e9, 1e9]), np.full(2, counted))
    assert np.abs(far).max() == pytest.approx(abs(counted) / scale)


def test_the_mean_loss_of_one_step_is_below_that_of_discrete_noise() -> None:
    """At a scale of one step it is .3679 at most, and of discrete Laplace noise .4621."""
    losses = Laplace(1.0, PURE).losses(np.arange(-60.0, 61.0), np.ones(121))
    mean = sum(probability(k - 1, 1.0) * loss for k, loss in enumerate(losses.tolist(), start=-60))
    assert mean < math.exp(-1) < 0.4621


@pytest.mark.parametrize("scale", SCALES)
def test_sizes(scale: float) -> None:
    """The mean of |k|, its variance and the mean of k^2, as sums."""
    law = Laplace(scale, PURE)
    weights = {k: probability(k, scale) for k in range(-int(40 * scale) - 9, int(40 * scale) + 10)}
    mean, square = (math.fsum(abs(k) ** power * weight for k, weight in weights.items()) for power in (1, 2))
    assert law.statistics(np.array([1.0]), np.random.default_rng(1))[0] == pytest.approx(1 / mean, rel=1e-6)
    assert (law.spread, law.variance) == pytest.approx((square / mean**2 - 1, square / scale**2), rel=1e-6)


@pytest.mark.parametrize("law", [*(Laplace(scale, PURE) for scale in SCALES), Gaussian(30.0)])
def test_statistics_are_even_under_the_law_and_not_beside_it(law: Law) -> None:
    """A size that is 15 % too small, and discrete noise of a small scale, are rejected; sizes have the mean 1."""
    rng = np.random.default_rng(3)
    draw = rng.laplace if isinstance(law, Laplace) else rng.normal

    def statistics(noise: Doubles) -> tuple[float, float]:
        sizes, evens = law.statistics(noise, rng)
        return abs(float(sizes.mean()) - 1) / math.sqrt(law.spread / sizes.size), even_p(evens)

    off, p = statistics(np.rint(draw(0, law.size, 40_000)))
    assert (off < 4, p > 1e-4) == (True, True)
    off, p = statistics(np.rint(draw(0, 0.85 * law.size, 40_000)))
    assert (off > 4, p < 1e-4) == (True, True)
    if law.size <= 1:
        geometric = rng.geometric(-math.expm1(-1 / law.size), (2, 40_000))
        assert statistics((geometric[0] - geometric[1]).astype(np.float64))[1] < 1e-4
