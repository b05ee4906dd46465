"""Each check accepts its own law, and rejects what is a little off it: the power of the audit."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from clients.audit.tests.fake_service import FakeService
from numpy.typing import NDArray
from tests.rotation import times

from sparing_audit.adversaries import ADVERSARIES
from sparing_audit.checks import (
    MU,
    bound_check,
    canary_check,
    checks_of,
    completed,
    delta_check,
    loss_check,
    noise_checks,
)
from sparing_audit.comparison import COMPARED, Recorded
from sparing_audit.game import RHO, Game
from sparing_audit.service import UNITS_PER_RHO, Doubles
from sparing_audit.victims import drawn_victims

VICTIMS = 8192
RUNS = 40


def drawn_losses(rho: float, seed: int, *, victims: int = VICTIMS) -> tuple[Doubles, NDArray[np.bool_]]:
    """Losses of a budget `rho` spent whole."""
    rng = np.random.default_rng(seed)
    is_in = rng.random(victims) < 0.5
    return np.where(is_in, rho, -rho) + math.sqrt(2 * rho) * rng.standard_normal(victims), is_in


def rejections(check: Callable[[Doubles, NDArray[np.bool_]], bool], rho: float) -> int:
    """The number of forty runs that a check rejects."""
    return sum(not check(*drawn_losses(rho, seed)) for seed in range(RUNS))


def test_a_loss_that_is_five_percent_too_large_is_always_rejected() -> None:
    """At mu = 4, in 40 of 40 runs, and the right one in none."""

    def passed(losses: Doubles, is_in: NDArray[np.bool_]) -> bool:
        return loss_check(losses, is_in).passed

    assert [rejections(passed, factor * RHO) for factor in (1.0, 1.05)] == [0, RUNS]


def test_a_small_budget_would_have_less_power() -> None:
    """At mu = 1 as many victims rarely show 5 %, and always 15 %: therefore the audit's budget is large."""

    def passed(losses: Doubles, is_in: NDArray[np.bool_]) -> bool:
        return loss_check(losses, is_in, rho=0.5).passed

    right, five, more = (rejections(passed, factor * 0.5) for factor in (1.0, 1.05, 1.15))
    assert right == 0
    assert five < RUNS / 10
    assert more == RUNS


def test_a_delta_that_is_too_large_is_rejected() -> None:
    """Means within delta pass; those of a budget a quarter larger do not."""

    def passed(losses: Doubles, is_in: NDArray[np.bool_]) -> bool:
        return delta_check(losses, is_in).passed

    assert [rejections(passed, factor * RHO) for factor in (0.5, 1.0, 1.25)] == [0, 0, RUNS]


def test_few_victims_are_not_rejected_by_chance() -> None:
    """One of 240 has now and then a loss that is expected once in a thousand; a budget spent twice is seen."""
    right, twice = (
        [delta_check(*drawn_losses(rho, seed, victims=240)).passed for seed in range(times(200, 1000))]
        for rho in (RHO, 2 * RHO)
    )
    assert all(right)
    assert not any(twice)


def test_the_lower_bound_is_below_the_truth_and_rejects_twice_the_budget() -> None:
    """In eight runs each; a budget spent twice has a mu of 5.7, of which the guesses betray more than 4."""
    right, twice = ([bound_check(*drawn_losses(rho, seed)) for seed in range(8)] for rho in (RHO, 2.0 * RHO))

    assert all(check.passed for check in right)
    assert not any(check.passed for check in twice)
    assert min(check.measured for check in right) > 2.8


def test_the_lower_bound_of_no_information_is_nothing() -> None:
    """Losses that are all the same bound nothing."""
    _, is_in = drawn_losses(RHO, 1)
    assert bound_check(np.zeros(VICTIMS), is_in).measured == 0


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.05, False), (0.95, False)])
def test_canaries_estimate_mu(factor: float, passes: bool) -> None:
    """To 4.5 * 2 / sqrt(victims), which is a fortieth of mu."""
    rng = np.random.default_rng(6)
    is_in = rng.random(VICTIMS) < 0.5
    sigma, length = 10.0, 10.0 * MU
    answers = is_in * factor * length + sigma * rng.standard_normal(VICTIMS)
    check = canary_check(answers, is_in, length, sigma, name="canaries", mu=MU)

    assert check.passed == passes
    assert f"{factor * MU:.1f}" in check.words


def recorded(count: int, make: Callable[[int], Doubles]) -> list[Recorded]:
    """Queries about 500 blank victims, whose answers are noise of the given making, in standard deviations."""
    return [
        Recorded(
            sequence=number,
            places=np.arange(500),
            asked=np.zeros(500),
            counted=np.zeros(500),
            outcomes=(),
            values=np.rint(4096 * make(number)),
            sigma=4096.0,
            grid=1.0,
        )
        for number in range(count)
    ]


def failed(records: list[Recorded]) -> set[str]:
    """The checks of the noise that fail."""
    return {check.name for check in noise_checks(records, np.zeros(500, dtype=np.bool_)) if not check.passed}


def test_gaussian_noise_passes_and_each_other_kind_is_named() -> None:
    """Noise of the right size; 3 % too small; with heavy tails; repeated; in pairs."""
    rng = np.random.default_rng(7)
    draw, once = rng.standard_normal, rng.standard_normal(500)

    assert failed(recorded(50, lambda _: draw(500))) == set()
    assert failed(recorded(50, lambda _: 0.97 * draw(500))) == {"noise size"}
    assert failed(recorded(50, lambda _: rng.standard_t(5, 500) * math.sqrt(3 / 5))) >= {"noise law"}
    assert failed(recorded(50, lambda number: once if number in {3, 30} else draw(500))) == {"noise reused"}
    assert failed(recorded(50, lambda _: np.repeat(draw(250), 2))) >= {"noise reused"}


def test_noise_off_the_grid_is_named() -> None:
    """By a half of a step."""
    (record,) = recorded(1, lambda _: np.random.default_rng(8).standard_normal(500))
    assert "noise steps" in failed([replace(record, values=record.values + 0.5)])


@pytest.fixture(scope="module")
def game() -> Game:
    """A play against a service that is right."""
    rng = np.random.default_rng(9)
    victims = drawn_victims(480, rng)
    found = Game(FakeService(), dataset="audit", rule="skip", query_rule=None, victims=victims, rng=rng)
    found.play()
    return found


def test_all_checks_are_made_for_all_and_for_each_adversary(game: Game) -> None:
    """And each says what it measured."""
    checks = checks_of(game, np.random.default_rng(1))
    by_adversary = {check.adversary for check in checks if check.name == "loss law"}

    assert {check.name for check in checks} >= {*COMPARED, "left out", "noise size", "delta", "lower bound"}
    assert by_adversary == {None, *ADVERSARIES}
    assert all(check.words and not math.isnan(check.measured) for check in checks)
    assert [check for check in checks if not check.passed] == []


def test_losses_are_completed_where_a_budget_is_not_spent_whole(game: Game) -> None:
    """By the rest alone: where all is spent, nothing changes."""
    drawn = completed(game, np.random.default_rng(2)) - game.losses
    rest = RHO - np.array(game.own.spent) / UNITS_PER_RHO

    assert drawn[rest == 0] == pytest.approx(np.zeros(int((rest == 0).sum())))
    assert np.abs(drawn[rest > 1]).min() > 0
    assert np.abs(drawn).max() < RHO + 6 * math.sqrt(2 * RHO)


def test_a_comparison_that_was_never_made_does_not_pass(game: Game) -> None:
    """An audit that looked at nothing has shown nothing."""
    kept = game.mismatches.compared["retries"]
    game.mismatches.compared["retries"] = 0
    names = {check.name for check in checks_of(game, np.random.default_rng(1)) if not check.passed}
    game.mismatches.compared["retries"] = kept
    assert names == {"retries"}
