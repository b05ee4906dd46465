"""The approximations by the central limit: what they say, how far it is from the truth, and that they are no bounds."""

import math

import numpy as np
import pytest

from service.accounting.conversions import delta_of_mu
from sparing.research.central_limit import (
    central_limit_mu_approximation,
    central_limit_mus_approximation,
    upper_mu_approximation,
)
from sparing.research.noise_grid import OwnSteps, grid_of_equal_ratios
from sparing.research.privacy_loss import Steps, composed_losses
from sparing.research.subsampled_rdp import subsampled_divergences

THOUSAND = Steps(1.0, 0.01, 1000)


def test_the_values_that_the_page_has() -> None:
    """At q = .01, mu = 1 and 1,000 steps, mu rises with epsilon, so that no single one is the composition's."""
    removing, _ = composed_losses([THOUSAND], delta=1e-5)
    found = [upper_mu_approximation(removing.delta, [epsilon]) for epsilon in (0.01, 0.8, 3.0)]
    assert found == pytest.approx([0.4067, 0.4296, 0.5133], abs=5e-4)
    assert upper_mu_approximation(removing.delta, [0.01, 0.8, 3.0]) == pytest.approx(found[-1], rel=1e-8)
    assert central_limit_mu_approximation([THOUSAND]) == pytest.approx(0.01 * math.sqrt(1000 * math.expm1(1)))


def test_it_is_no_bound() -> None:
    """At epsilon 1.618 the central limit says delta 1e-5, and in truth it is more than twice that."""
    mu = central_limit_mu_approximation([THOUSAND])
    removing, _ = composed_losses([THOUSAND], delta=1e-5)
    assert float(delta_of_mu(1.6177, mu)) == pytest.approx(1e-5, rel=1e-3)
    assert removing.delta(1.6177) > 2e-5
    assert removing.epsilon(1e-5) == pytest.approx(1.8283, abs=1e-3)


def test_many_small_steps_are_near_to_it() -> None:
    """The limit: the farther on, the nearer."""
    distances = []
    for count in (100, 10_000):
        steps = [Steps(0.2, 1 / math.sqrt(count), count)]
        removing, _ = composed_losses(steps, delta=1e-5)
        truth = removing.epsilon(1e-5)
        mu = central_limit_mu_approximation(steps)
        distances.append(abs(float(delta_of_mu(truth, mu)) / 1e-5 - 1))
    assert distances[1] < distances[0] / 3
    assert distances[1] < 0.1


def test_of_a_full_batch_it_is_exact() -> None:
    """And the upper mu too: a Gaussian's own curve, from above."""
    steps = [Steps(0.3, 1.0, 4), Steps(0.8, 1.0, 1)]
    assert central_limit_mu_approximation(steps) == pytest.approx(1.0)
    assert central_limit_mu_approximation([]) == 0
    removing, _ = composed_losses(steps, delta=1e-5)
    assert upper_mu_approximation(removing.delta, [0.5, 1.0, 3.0, 4.0]) == pytest.approx(1.0, abs=1e-3)


def test_the_own_steps_of_individuals() -> None:
    """They are the same by their counts, and alone."""
    own = OwnSteps(grid_of_equal_ratios(0.1, 1.0, intervals=4), 3)
    for norms in ([0.0, 0.5, 1.0], [0.0, 0.2, 1.0], [0.3, 0.9, 1.0]):
        own.record(np.array(norms), sigma=1.0)
    for rate in (1.0, 0.1):
        found = central_limit_mus_approximation(own, rate=rate)
        for counts, mu in zip(own.counts, found, strict=True):
            steps = [Steps(float(own.grid.charged[cell]), rate, int(counts[cell])) for cell in np.flatnonzero(counts)]
            assert mu == pytest.approx(central_limit_mu_approximation(steps), rel=1e-12)
        alone = OwnSteps(own.grid, 1)
        alone.counts[:] = own.counts[1]
        assert central_limit_mus_approximation(alone, rate=rate)[0].tobytes() == found[1].tobytes()


def test_no_gain_from_sampling_in_one_number() -> None:
    """D_a / a tends to mu^2 / 2: a subsampled step has no smaller mu of GDP, and no smaller rho of zCDP, than mu's."""
    orders = [10, 100, 1000, 10_000]
    rhos = subsampled_divergences(np.array([1.0]), rate=0.01, orders=orders)[0] / np.array(orders)
    assert (np.diff(rhos) > 0).all()
    assert 0.499 < rhos[-1] < 0.5


def test_what_is_refused() -> None:
    """A curve that is looked at nowhere, or that no mu is above; steps that are none."""
    with pytest.raises(ValueError, match="somewhere"):
        upper_mu_approximation(lambda _: 0.0, [])
    with pytest.raises(ValueError, match="no mu"):
        upper_mu_approximation(lambda _: 2.0, [1.0])
    with pytest.raises(ValueError, match="negative"):
        upper_mu_approximation(lambda _: 0.5, [-1.0])
    with pytest.raises(ValueError, match="mu"):
        central_limit_mu_approximation([Steps(-1.0, 0.1, 1)])
    with pytest.raises(ValueError, match="rate"):
        central_limit_mus_approximation(OwnSteps(grid_of_equal_ratios(0.1, 1.0, intervals=4), 1), rate=2.0)
