"""Each check accepts its own law, and rejects what is a little off it: the power of the audit."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from clients.audit.tests.fake_service import FakeService, played
from tests.rotation import times

from sparing_audit.accountings import ACCOUNTINGS, OF_RULES
from sparing_audit.adversaries import ADVERSARIES, ASKERS
from sparing_audit.checks import (
    accounting_checks,
    bound_check,
    canary_check,
    completed,
    loss_check,
    noise_checks,
    promise_checks,
    reuse_check,
    rule_checks,
)
from sparing_audit.game import COMPARED, Game, Recorded
from sparing_audit.laws import Booleans, Doubles
from sparing_audit.moves import offered, turns
from sparing_audit.noise import NOTHING, UNITS_PER_RHO, Gaussian, Laplace, Range
from sparing_audit.own_filter import Outcome
from sparing_audit.victims import drawn_victims

RHO, MU = OF_RULES.amount, OF_RULES.deviation
VICTIMS = 8192
RUNS = 40
PEOPLE = 720
QUERY = Recorded(
    sequence=0,
    places=np.arange(500),
    asked=np.zeros(500),
    outcomes=[Outcome(0, NOTHING, "untouched")] * 500,
    values=np.zeros(500),
    law=Gaussian(4096.0),
    grid_error=0.0,
)


def drawn_losses(rho: float, seed: int, *, victims: int = VICTIMS) -> tuple[Doubles, Booleans]:
    """Losses of a budget `rho` spent whole."""
    rng = np.random.default_rng(seed)
    is_in = rng.random(victims) < 0.5
    return np.where(is_in, rho, -rho) + math.sqrt(2 * rho) * rng.standard_normal(victims), is_in


def rejections(rho: float, *, of: float = RHO) -> int:
    """The number of forty runs that the law of losses rejects."""
    return sum(not loss_check(*drawn_losses(rho, seed), of).passed for seed in range(RUNS))


def test_a_loss_that_is_five_percent_too_large_is_always_rejected() -> None:
    """At mu = 4, in 40 of 40 runs, and the right one in none.

    At mu = 1 as many victims rarely show 5 %, and always 15 %: therefore the audit's budget is large.
    """
    assert [rejections(factor * RHO) for factor in (1.0, 1.05)] == [0, RUNS]
    right, five, more = (rejections(factor * 0.5, of=0.5) for factor in (1.0, 1.05, 1.15))
    assert (right, more) == (0, RUNS)
    assert five < RUNS / 10


@pytest.mark.parametrize(
    ("factor", "victims", "runs", "passes"),
    [
        (0.5, VICTIMS, RUNS, True),
        (1.0, VICTIMS, RUNS, True),
        (1.25, VICTIMS, RUNS, False),
        (1.0, 240, times(200, 1000), True),
        (2.0, 240, times(200, 1000), False),
    ],
)
def test_a_delta_that_is_too_large_is_rejected(factor: float, victims: int, runs: int, passes: bool) -> None:
    """Few victims are not rejected by chance: one of 240 has now and then a loss expected once in a thousand."""
    losses = (drawn_losses(factor * RHO, seed, victims=victims) for seed in range(runs))
    assert {check.passed for each in losses for check in promise_checks(OF_RULES, *each)} == {passes}


def test_the_lower_bound_is_below_the_truth_and_rejects_twice_the_budget() -> None:
    """In eight runs each; a budget spent twice has a mu of 5.7, of which the guesses betray more than 4."""
    right, twice = ([bound_check(*drawn_losses(rho, seed), MU) for seed in range(8)] for rho in (RHO, 2 * RHO))
    assert {check.passed for check in right} == {True}
    assert {check.passed for check in twice} == {False}
    assert min(check.measured for check in right) > 2.8
    assert bound_check(np.zeros(VICTIMS), drawn_losses(RHO, 1)[1], MU).measured == 0  # all losses are the same


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.05, False), (0.95, False)])
def test_canaries_estimate_mu(factor: float, passes: bool) -> None:
    """To 4.5 * 2 / sqrt(victims), which is a fortieth of mu."""
    rng = np.random.default_rng(6)
    is_in = rng.random(VICTIMS) < 0.5
    answers = 4096 * (is_in * factor * MU + rng.standard_normal(VICTIMS))
    check = canary_check(replace(QUERY, values=answers), is_in, name="canaries", mu=MU)
    assert check.passed == passes
    assert f"{factor * MU:.1f}" in check.words


def recorded(make: Callable[[int], Doubles], count: int = 50, grid_error: float = 0.0) -> list[Recorded]:
    """Queries about 500 blank victims, whose answers are noise of the given making, in standard deviations."""
    query = replace(QUERY, grid_error=grid_error)
    return [replace(query, values=np.rint(4096 * make(number))) for number in range(count)]


def test_gaussian_noise_passes_and_each_other_kind_is_named() -> None:
    """Noise of the right size; 3 % too small; with heavy tails; repeated; in pairs; off the grid."""
    rng, is_in = np.random.default_rng(7), np.zeros(500, dtype=np.bool_)
    draw, once = rng.standard_normal, rng.standard_normal(500)

    def failed(records: list[Recorded]) -> set[str]:
        checks = [*noise_checks(records, is_in, rng), reuse_check(records, is_in)]
        return {check.name for check in checks if not check.passed}

    assert failed(recorded(lambda _: draw(500))) == set()
    assert failed(recorded(lambda _: 0.97 * draw(500))) == {"noise size"}
    assert failed(recorded(lambda _: rng.standard_t(5, 500) * math.sqrt(3 / 5))) >= {"noise law"}
    assert failed(recorded(lambda number: once if number in {3, 30} else draw(500))) == {"noise reused"}
    assert failed(recorded(lambda _: np.repeat(draw(250), 2))) >= {"noise reused"}
    assert failed(recorded(lambda _: draw(500), grid_error=0.5)) == {"noise steps"}


@pytest.fixture(scope="module")
def game() -> Game:
    """A play against a service that is right."""
    return played(victims=480, seed=9)


def test_all_checks_are_made_for_all_and_for_each_adversary(game: Game) -> None:
    """Each says what it measured. A comparison that was never made does not pass: it has shown nothing."""
    checks = list(rule_checks(game))
    assert {check.name for check in checks} >= {*COMPARED, "left out", "noise size", "delta", "lower bound"}
    assert {check.adversary for check in checks if check.name == "loss law"} == {None, *ADVERSARIES}
    assert all(check.words and not math.isnan(check.measured) for check in checks)
    assert [check for check in checks if not check.passed] == []

    kept = game.mismatches.compared.pop("retries")
    failed = {check.name for check in rule_checks(game) if not check.passed}
    game.mismatches.compared["retries"] = kept
    assert failed == {"retries"}


def test_losses_are_completed_where_a_budget_is_not_spent_whole(game: Game) -> None:
    """By the rest alone: where all is spent, nothing changes."""
    drawn = completed(game) - game.losses
    rest = RHO - np.array([each.most for each in game.own.spent]) / UNITS_PER_RHO

    assert drawn[rest == 0] == pytest.approx(np.zeros(int((rest == 0).sum())))
    assert np.abs(drawn[rest > 1]).min() > 0
    assert np.abs(drawn).max() < RHO + 6 * math.sqrt(2 * RHO)


OF_LOSSES = {
    "gdp": {"delta"},
    "zcdp": {"delta", "divergence", "mean loss"},
    "rdp": {"delta", "divergence"},
    "pure": {"delta", "certainty"},
}


@pytest.mark.parametrize("kind", ACCOUNTINGS)
def test_a_service_that_is_right_passes_under_each_accounting(kind: str) -> None:
    """By every check of its accounting, over all and for each adversary."""
    checks = list(accounting_checks(played(victims=PEOPLE, seed=0, kind=kind)))
    assert [check for check in checks if not check.passed] == []
    for adversary in (None, *ASKERS):
        assert {check.name for check in checks if check.adversary == adversary} >= OF_LOSSES[kind]


@dataclass(frozen=True)
class HalfGaussian(Gaussian):
    """The law at half its price."""

    def charge(self, length: int) -> Range:
        return half(super().charge(length))


@dataclass(frozen=True)
class HalfLaplace(Laplace):
    """Laplace noise at half its price."""

    def charge(self, length: int) -> Range:
        return half(super().charge(length))


def half(charge: Range) -> Range:
    """Rounded up."""
    return Range(-(-charge.least // 2), -(-charge.most // 2))


@pytest.mark.parametrize("kind", ACCOUNTINGS)
def test_half_of_every_price_shows_in_the_losses_alone(kind: str) -> None:
    """The power of the checks of losses by themselves: the audit's own filter asks for half of every price too.

    No comparison differs, and every victim loses twice its budget; the hockey stick of one order is far from tight.
    """
    accounting, rng = ACCOUNTINGS[kind], np.random.default_rng(3)
    victims, service = drawn_victims(3 * PEOPLE, rng, ASKERS), FakeService("charge for half the noise", seed=3)
    game = Game(service, "d", victims, rng, rule="skip", accounting=accounting)
    offers = [
        (length, HalfLaplace(law.size, accounting) if isinstance(law, Laplace) else HalfGaussian(law.size))
        for length, law in offered(accounting)
    ]
    game.play(turns(list(offers)))
    found = {check.name for check in accounting_checks(game) if not check.passed}
    assert found == OF_LOSSES[kind] - ({"delta"} if kind == "rdp" else set())


@pytest.mark.parametrize("kind", ACCOUNTINGS)
@pytest.mark.parametrize(
    ("mistake", "wanted"),
    [("half the Laplace noise", {"noise size", "noise law"}), ("left out and added", {"left out"})],
)
def test_too_little_noise_and_what_was_left_out_show_in_the_answers(kind: str, mistake: str, wanted: set[str]) -> None:
    """By the size and the law of the noise, or along what was left out."""
    game = played(mistake, victims=PEOPLE, seed=0, kind=kind)
    assert wanted <= {check.name for check in accounting_checks(game) if not check.passed}


@pytest.mark.parametrize("kind", ["gdp", "zcdp", "rdp"])
def test_a_gaussian_of_the_whole_budget_passes_and_one_of_its_double_is_rejected(kind: str) -> None:
    """Losses N(B, 2B) attain the curves: with some thousand victims each check of losses tells twice of them apart."""
    for factor, wanted in ((1, set[str]()), (2, OF_LOSSES[kind])):
        checks = promise_checks(ACCOUNTINGS[kind], *drawn_losses(factor * ACCOUNTINGS[kind].amount, 5))
        assert {check.name for check in checks if not check.passed} == wanted
