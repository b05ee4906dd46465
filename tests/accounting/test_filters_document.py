"""The numbers of docs/filters.md, recomputed."""

import math
import re
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import ndtr

from service.accounting.accountings import GAUSSIAN, PURE, Accounting, ConcentratedAccounting, RenyiAccounting
from service.accounting.monitor import GRID_LOG2, monitor_of, squared_steps
from service.core.charge import UNITS_PER_RHO
from service.core.laplace import laplace_worst_case_units

PAGE: Final = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")
ACCOUNTINGS: Final[list[Accounting]] = [
    GAUSSIAN,
    ConcentratedAccounting(),
    ConcentratedAccounting(conversion="simple"),
    *(RenyiAccounting(order=order) for order in (16, 17.809, 32)),
    PURE,
]
DELTA: Final = Decimal("1e-5")
NORMAL: Final = NormalDist()


def row(name: str) -> list[str]:
    """The cells of a table's row, without its name."""
    (line,) = re.findall(rf"^\| {re.escape(name)} \|(.+)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in str(line).split("|")]


def test_budgets_and_replaced_records() -> None:
    """To the digits that are printed."""
    budgets = [each.budget_units(epsilon=Decimal(1), delta=DELTA) for each in ACCOUNTINGS]
    replaced = [each.epsilon_replace_one(units, DELTA) for each, units in zip(ACCOUNTINGS, budgets, strict=True)]

    assert row("budget") == [f"{units / UNITS_PER_RHO:.10f}" for units in budgets]
    assert row("epsilon when a record is replaced") == [f"{each:.4f}" for each in replaced]


def test_prices_of_laplace_noise() -> None:
    """At a scale of many steps, to the digits that are printed; rounded up, a ten-thousandth at most."""
    scale = 2.0**20
    for accounting in (PURE, ConcentratedAccounting(), RenyiAccounting(order=32), GAUSSIAN):
        name = accounting.name.removesuffix(".0")
        (line,) = re.findall(rf"^\| {name} \|[^|]+\|((?: [\d.]+ \|){{4}})$", PAGE, re.MULTILINE)
        for t, shown in zip((0.01, 0.1, 0.5, 1.0), str(line).split("|"), strict=False):
            units = laplace_worst_case_units(round(t * scale) ** 2, scale, accounting.laplace_prices)
            digits = len(shown.strip().partition(".")[2])
            assert units / UNITS_PER_RHO == pytest.approx(float(shown), rel=2e-4, abs=10.0**-digits)


def test_from_seven_equal_answers_on_a_gaussian_is_better() -> None:
    """Variances of k counts: 2 k^2 of Laplace noise under pure, k / (2 B) under gdp."""
    each = UNITS_PER_RHO / (2 * GAUSSIAN.budget_units(epsilon=Decimal(1), delta=DELTA))
    assert f"and {each:.2f} k with Gaussian noise" in PAGE
    assert [2 * k**2 < k * each for k in range(1, 9)] == [True] * 6 + [False] * 2


def subsampled(rate: float, sigma: float, order: int) -> float:
    """The Rényi divergence of a Poisson-subsampled Gaussian at a whole order, by its binomial sum."""
    terms = [
        math.lgamma(order + 1)
        - math.lgamma(each + 1)
        - math.lgamma(order - each + 1)
        + (order - each) * math.log1p(-rate)
        + each * math.log(rate)
        + (each * each - each) / (2 * sigma**2)
        for each in range(order + 1)
    ]
    return float(np.logaddexp.reduce(terms)) / (order - 1)


def test_all_orders_admit_less_than_the_best_one() -> None:
    """Steps of an individual at .75 of the clip within the budgets of 1,000 steps at the clip."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon  # noqa: PLC0415 - it takes a second

    orders = sorted({round(each) for each in np.geomspace(2, 64, 16)})
    planned = [1000 * subsampled(0.01, 1, order) for order in orders]
    own = [subsampled(0.01, 1 / 0.75, order) for order in orders]
    _, best = compute_epsilon(orders, planned, 1e-5)
    by_all = min(most / each for most, each in zip(planned, own, strict=True))
    by_best = planned[orders.index(best)] / own[orders.index(best)]

    assert f"{int(by_all):,} steps by all orders, {int(by_best):,} by the best one" in PAGE


def test_subsampling_costs_more_at_the_same_signal() -> None:
    """A full batch with noise sigma / q has the same signal."""
    sampled, full = subsampled(0.01, 2, 32), 32 / (2 * (2 / 0.01) ** 2)
    figures = [f"{each:.2e}".replace("e-0", "e-") for each in (sampled, full)]

    assert sampled > full
    assert f"a step costs {figures[0]}, and the full batch with the same signal {figures[1]}" in PAGE


def weights(ticks: int) -> NDArray[np.float64]:
    """C(2k, k) / 4^k, which a person adds who was exhausted k ticks before."""
    k = np.arange(1, ticks)
    return np.append(1.0, np.cumprod((2 * k - 1) / (2 * k)))


def width_of_curve(ticks: int, charge: float, chance: float, paths: int = 4_000) -> tuple[float, float]:
    """Between the level that errors pass at some tick, and the one that the last stays below; and its deviation."""
    added = weights(ticks)
    sigma = math.sqrt(np.sum(added**2) / (2 * charge))
    noise = np.random.default_rng(7).normal(0, sigma, (paths, ticks))
    size = 2 * ticks
    errors = np.fft.irfft(np.fft.rfft(noise, size, axis=1) * np.fft.rfft(added, size), size, axis=1)[:, :ticks]
    deviation = sigma * math.sqrt(np.sum(added**2))
    above = float(np.quantile(errors.max(axis=1), 1 - chance))
    return above - float(NORMAL.inv_cdf(chance)) * deviation, deviation


def width_of_alarm(ticks: int, epsilon: float, share: float, chance: float) -> float:
    """The width that looks of scale 1 / ((1 - share) epsilon) need, at a threshold of scale 1 / (share epsilon)."""
    place = (np.arange(4_000) + 0.5) / 4_000
    threshold = np.where(place < 0.5, np.log(2 * place), -np.log(2 * (1 - place))) / (share * epsilon)
    look = 1 / ((1 - share) * epsilon)

    def rings(distance: float, looks: int) -> float:
        """The chance that some look is above the threshold, of a number so far below it."""
        gap = (distance + threshold) / look
        below = np.where(gap > 0, 1 - np.exp(-np.abs(gap)) / 2, np.exp(-np.abs(gap)) / 2)
        return float(np.mean(1 - below**looks))

    early = optimize.brentq(lambda distance: rings(distance, ticks) - chance, -1e5, 1e5)
    late = optimize.brentq(lambda distance: 1 - rings(-distance, 1) - chance, -1e5, 1e5)
    return float(early + late)


def test_an_alarm_is_less_exact_than_the_curve_of_ticks() -> None:
    """At one charge and the same chances to be wrong, with the best of four ways to divide epsilon; to 3 %."""
    charge, chance = 0.001, 0.05
    epsilons = {  # of pure DP, which costs the charge
        "zcdp": optimize.brentq(lambda epsilon: epsilon * math.tanh(epsilon / 2) - charge, 1e-6, 1),
        "gdp": math.log(1 / NORMAL.cdf(-math.sqrt(2 * charge) / 2) - 1),
    }
    alone, ratios = {}, []
    for place, ticks in enumerate((16, 128, 1024)):
        curve, deviation = width_of_curve(ticks, charge, chance)
        assert float(row("curve")[place]) == pytest.approx(curve, rel=0.03)
        for name, epsilon in epsilons.items():
            alarm = min(width_of_alarm(ticks, epsilon, share, chance) for share in (0.35, 0.4, 0.45, 0.5))
            assert float(row(f"alarm under {name}")[place]) == pytest.approx(alarm, rel=0.01)
            ratios.append(alarm / curve)
            alone[name, ticks] = 4 / epsilon / deviation  # two Laplace variables of scale 2 / epsilon
    assert min(ratios) == pytest.approx(1.5, abs=0.06)
    assert max(ratios) == pytest.approx(2.9, abs=0.09)
    assert f"{alone['zcdp', 1024]:.1f} times less exact under zcdp at 1,024 ticks, and {alone['zcdp', 16]:.1f}" in PAGE


def curve_of_gaussian(epsilon: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
    """The delta of mu-GDP at each real epsilon."""
    return ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)


def test_the_price_of_the_residue_filter() -> None:
    """Randomised response, of which every pure step is a post-processing, and then the Gaussian: at each epsilon."""
    step, left = 0.1, math.sqrt(2 * GAUSSIAN.budget_units(epsilon=Decimal(1), delta=DELTA) / UNITS_PER_RHO)
    usual = math.exp(step) / (1 + math.exp(step))
    epsilons = np.linspace(-3, 3, 60_001)

    def excess(mu: float) -> float:
        """By how much the step and a Gaussian of this mu are above what is left."""
        after = usual * curve_of_gaussian(epsilons - step, mu) + (1 - usual) * curve_of_gaussian(epsilons + step, mu)
        return float((after - curve_of_gaussian(epsilons, left)).max()) - 1e-12

    residue = optimize.brentq(excess, 0.1, left * (1 - 1e-9))
    residue_price = (left**2 - residue**2) / 2
    pure_price = 2 * NORMAL.inv_cdf(1 / (1 + math.exp(step))) ** 2
    assert excess(residue * 1.001) > 1e-6 > excess(residue * 0.999)
    told = f"Where mu {left:.3f} is left, a pure step of .1 costs {residue_price:.5f} so, and {pure_price:.5f} by"
    assert told.replace(" 0.", " .") in PAGE
    laplace = laplace_worst_case_units(round(step * 2**20) ** 2, 2.0**20, GAUSSIAN.laplace_prices) / UNITS_PER_RHO
    assert f"({laplace:.5f} if it is Laplace noise)".replace("0.", ".") in PAGE


def test_the_advantage_of_two_analysts() -> None:
    """One answer at sigma 1 against one half gives 2 Phi(1/2) - 1."""
    assert f"their advantage is {math.erf(0.5 / math.sqrt(2)):.4f}".replace("0.", ".") in PAGE


def test_the_naive_reading_is_exceeded_as_often_as_the_page_says() -> None:
    """The loss is a Brownian motion with drift 1 and variance 2 in what is spent, looked at in 4,000 steps.

    Steps between which the loss may be above unseen make the share smaller, so that it is held against a band.
    """
    rng = np.random.default_rng(20260128)
    spent = np.geomspace(1e-4, 100, 4_000)
    gained = np.diff(spent, prepend=0)
    told = re.search(r"with a probability of (\.\d+), (\.\d+) and (\.\d+) where delta is \.1, \.01 and \.001", PAGE)
    assert told is not None
    paths, above = 20_000, np.zeros((3, 20_000), dtype=np.bool_)
    deltas = np.array([0.1, 0.01, 0.001])
    noise = np.zeros(paths)
    for rho, step in zip(spent, gained, strict=True):
        noise += rng.normal(0, math.sqrt(2 * step), paths)  # the loss less what is spent
        above |= noise > 2 * np.sqrt(rho * np.log(1 / deltas))[:, None]
    shares = above.mean(axis=1)
    for share, figure, delta in zip(shares, map(float, told.groups()), deltas, strict=True):
        error = math.sqrt(figure * (1 - figure) / paths)
        assert abs(share - figure) < 4 * error + 0.03 * figure
        assert share > 3 * delta


@pytest.mark.parametrize("ticks", [16, 1024])
def test_the_errors_of_the_monitors_curve(ticks: int) -> None:
    """Sigma, the error of the last running count, and that of independent counts of everybody at the same price."""
    monitor = monitor_of({"rho": "0.001", "ticks": ticks, "share": 0.1}, budget_units=UNITS_PER_RHO)
    total = squared_steps(ticks) * 4.0**GRID_LOG2
    curve, independent = monitor.sigma * math.sqrt(total), math.sqrt(ticks / 0.002)

    assert row(f"{ticks:,} ticks") == [f"{monitor.sigma:.2f}", f"{curve:.1f}", f"{independent:.0f}"]
    assert ticks == 16 or f"add up to {total:.2f} over 1,024 ticks, so that sigma is {monitor.sigma:.2f}" in PAGE
