"""The promises of each accounting: a service that is right keeps them, and one that charges half does not.

`lulled` is the power of the checks of losses by themselves: a service at half price, and an audit whose own filter asks
for half of every price too, so that no comparison differs and every victim loses twice its budget.
"""

from functools import cache

import numpy as np
import pytest
from clients.audit.tests.fake_service import FakeService

from sparing_audit.accountings import ACCOUNTINGS, Range
from sparing_audit.askers import ASKERS
from sparing_audit.mixed_game import MixedGame
from sparing_audit.promises import loss_checks, mixed_checks

PEOPLE = 720
OF_LOSSES = {
    "gdp": {"delta"},
    "zcdp": {"delta", "divergence", "mean loss"},
    "rdp": {"delta", "divergence"},
    "pure": {"delta", "certainty"},
}


@cache
def played(kind: str, mistake: str = "", *, is_lulled: bool = False) -> MixedGame:
    """A play; of a lulled audit's the charges are halved as those of the service."""
    service, people = FakeService(mistake=mistake), 3 * PEOPLE if is_lulled else PEOPLE
    game = MixedGame(service, dataset="d", kind=kind, rule="skip", people=people, rng=np.random.default_rng(0))
    if is_lulled:
        game.offered = [
            (length, noise, Range(-(-charge.least // 2), -(-charge.most // 2)))
            for length, noise, charge in game.offered
        ]
    game.play()
    return game


def failed(game: MixedGame) -> set[str]:
    """The checks of a play that failed."""
    return {check.name for check in mixed_checks(game) if not check.passed}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ACCOUNTINGS)
def test_a_service_that_is_right_passes(kind: str) -> None:
    """By every check of its accounting, over all and for each adversary."""
    checks = mixed_checks(played(kind))
    assert [check for check in checks if not check.passed] == []
    for adversary in (None, *ASKERS):
        assert {check.name for check in checks if check.adversary == adversary} >= OF_LOSSES[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ACCOUNTINGS)
def test_half_of_every_price_shows_in_the_losses_alone(kind: str) -> None:
    """The checks of losses fail, and no comparison does; the hockey stick of one order is far from tight."""
    found = failed(played(kind, "half of every price", is_lulled=True))
    assert found == OF_LOSSES[kind] - ({"delta"} if kind == "rdp" else set())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ACCOUNTINGS)
@pytest.mark.parametrize("mistake", ["half the Laplace noise", "left out and counted"])
def test_too_little_noise_and_what_was_left_out_show_in_the_answers(kind: str, mistake: str) -> None:
    """By the size and the law of the noise, or along what was left out."""
    wanted = {"noise size", "noise law"} if mistake == "half the Laplace noise" else {"left out"}
    assert wanted <= failed(played(kind, mistake))


@pytest.mark.parametrize(("kind", "amount"), [("gdp", 0.5), ("zcdp", 0.5), ("rdp", 0.125)])
def test_a_gaussian_of_the_whole_budget_passes_and_one_of_its_double_is_rejected(kind: str, amount: float) -> None:
    """Losses N(B, 2B) attain the curves: with some thousand victims each check of losses tells twice of them apart."""
    rng = np.random.default_rng(5)
    is_in = rng.random(8192) < 0.5
    for factor, wanted in ((1, set[str]()), (2, OF_LOSSES[kind])):
        rho = factor * amount
        losses = np.where(is_in, rho, -rho) + np.sqrt(2 * rho) * rng.standard_normal(8192)
        checks = loss_checks(ACCOUNTINGS[kind], amount, losses, is_in)
        assert {check.name for check in checks if not check.passed} == wanted
