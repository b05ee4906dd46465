"""The play with both mechanisms: it agrees with a service that is right, and names what differs."""

import numpy as np
import pytest
from clients.audit.tests.fake_service import FakeService

from sparing_audit.accountings import ACCOUNTINGS
from sparing_audit.mixed_game import MIXED_COMPARED, MixedGame

PEOPLE = 96


def played(kind: str, rule: str = "skip", mistake: str = "") -> MixedGame:
    """A play, with few victims."""
    service = FakeService(mistake=mistake)
    game = MixedGame(service, dataset="d", kind=kind, rule=rule, people=PEOPLE, rng=np.random.default_rng(2))
    game.play()
    assert service.stored == {}
    return game


@pytest.mark.parametrize("kind", ACCOUNTINGS)
def test_a_service_that_is_right_differs_in_nothing(kind: str) -> None:
    """Every comparison has been made, budgets are used up, and people were left out."""
    game = played(kind, rule="drop" if kind == "zcdp" else "skip")
    assert dict(game.mismatches.counts) == {}
    assert set(game.mismatches.compared) == set(MIXED_COMPARED)
    assert game.accounting == ACCOUNTINGS[kind]
    assert max(game.own.most) <= game.own.limit < max(game.own.most) * 33 / 31
    assert sum(game.own.left_out) > PEOPLE / 10
    assert {each.is_laplace for each in game.told} == ({True} if kind == "pure" else {True, False})


def test_under_pure_differential_privacy_a_budget_is_met_to_the_last_unit() -> None:
    """Its scales are powers of two, so that four quarters are the whole."""
    assert max(played("pure").own.least) == 2 * 2**40


MISTAKES = {
    "half the price of Laplace noise": "charges",
    "Laplace noise priced as a Gaussian": "charges",
    "a price two ten-thousandths too large": "charges",
    "another accounting": "accounting",
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_a_wrong_price_is_named(kind: str, mistake: str) -> None:
    """Also one that is too large, which would hide that others are too small."""
    assert MISTAKES[mistake] in played(kind, mistake=mistake).mismatches.counts
