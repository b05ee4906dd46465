"""The plays: the audit's filter follows a service that is right, and each difference is counted under its own name."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from clients.audit.tests.fake_service import FakeService, Stored, played

from sparing_audit.accountings import ACCOUNTINGS, OF_RULES
from sparing_audit.adversaries import Act
from sparing_audit.game import COMPARED, SHOWN_MAX, Game, Move
from sparing_audit.moves import begin, schedule
from sparing_audit.noise import UNITS_PER_RHO, Gaussian, Laplace
from sparing_audit.service import Query, Refused, Released
from sparing_audit.victims import drawn_victims

VICTIMS = 240
WHOLE = int(OF_RULES.amount * UNITS_PER_RHO)
RULES = [("skip", None), ("drop", None), ("clip", None)]
KINDS = [("drop" if kind == "zcdp" else "skip", kind) for kind in ACCOUNTINGS]


@pytest.mark.parametrize(("rule", "kind"), [*RULES, *KINDS])
def test_every_comparison_is_made_and_holds(rule: str, kind: str | None) -> None:
    """Under each rule and accounting; no total exceeds its limit, and people were left out."""
    game = played(rule=rule, kind=kind)
    spent = max(each.most for each in game.own.spent)

    assert dict(game.mismatches.counts) == {}
    assert set(game.mismatches.compared) == {*COMPARED, *(["retries"] if kind is None else [])}
    assert game.mismatches.compared["charges"] > 17 * (VICTIMS - 50)
    assert spent <= game.budget_units < spent * 33 / 31
    assert sum(game.own.left_out) > VICTIMS / 10
    if kind is not None:
        assert {isinstance(each.law, Laplace) for each in game.recorded} == (
            {True} if kind == "pure" else {True, False}
        )


def test_under_pure_differential_privacy_a_budget_is_met_to_the_last_unit() -> None:
    """Its scales are powers of two, so that four quarters are the whole."""
    assert max(each.least for each in played(kind="pure").own.spent) == 2 * 2**40


def test_losses_and_spent_totals_follow_from_the_answers() -> None:
    """The log ratios by the densities of both worlds; sums of squares to the rounding of charges."""
    game = played()
    losses, spent = np.zeros(VICTIMS), np.zeros(VICTIMS)
    for each in game.recorded:
        here, there = each.values - each.counted, each.values
        losses[each.places] += (there**2 - here**2) / (2 * each.law.size**2)
        spent[each.places] += each.counted**2 / (2 * each.law.size**2)
    assert game.losses == pytest.approx(losses, abs=1e-9)
    totals = np.array([each.least for each in game.own.spent]) / UNITS_PER_RHO
    assert spent == pytest.approx(totals, abs=len(game.recorded) / UNITS_PER_RHO)
    assert spent.max() == pytest.approx(OF_RULES.amount)


def shares(game: Game, name: str) -> list[float]:
    """The shares of their budgets that an adversary's victims have spent."""
    return [game.own.spent[place].most / WHOLE for place in game.victims.of(name).tolist()]


def test_the_adversaries_spend_the_budgets_that_they_mean_to() -> None:
    """Equality to the last unit, most to a millionth; those that stop or have lower limits do not.

    Under drop the unaffordable ends an account, and under clip it spends it.
    """
    game = played()
    assert set(shares(game, "equality at the budget")) == set(shares(game, "one huge")) == {1.0}
    assert min(shares(game, "many tiny")) > 1 - 1e-5
    assert min(shares(game, "stop when ahead")) < 0.9
    assert min(shares(game, "limits lowered when ahead")) < 0.9
    dropped, clipped = (shares(played(rule=rule), "unaffordable between affordable") for rule in ("drop", "clip"))
    assert 0 < min(dropped) <= max(dropped) <= 0.2
    assert min(clipped) > 1 - 1e-5


def test_each_act_is_done_to_victims_of_both_kinds() -> None:
    """In the data and blank; and all that was begun is ended."""
    acted: dict[Act, set[bool]] = {act: set() for act in Act}

    def watched(game: Game) -> Iterator[Move]:
        for move in schedule():
            yield move
            if move.func is begin:
                done = {
                    Act.PAUSE: np.array(game.own.is_paused),
                    Act.CORRECT: game.victims.is_corrected,
                    Act.LOWER: np.array(game.own.limits) < WHOLE,
                    Act.ERASE: game.victims.is_erased,
                }
                act = move.keywords["act"]
                acted[act].update(game.victims.is_in[done[act]].tolist())

    for seed in range(4):
        rng = np.random.default_rng(seed)
        game = Game(FakeService(), "d", drawn_victims(VICTIMS, rng), rng, rule="skip")
        game.play(watched(game))
        assert not any(game.own.is_paused)
        assert not game.victims.is_erased.any()
    assert acted == {act: {True, False} for act in Act}


MISTAKES = {
    "charge for half the noise": "charges",
    "Laplace noise priced as a Gaussian": "charges",
    "a price two ten-thousandths too large": "charges",
    "another accounting": "accounting",
    "another noise than was asked for": "budgets",
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_a_wrong_price_is_named(kind: str, mistake: str) -> None:
    """Also one that is too large, which would hide that others are too small."""
    assert MISTAKES[mistake] in played(mistake, victims=120, kind=kind).mismatches.counts


def test_a_refusal_ends_the_play() -> None:
    """A service has no reason to refuse any query of the schedule."""

    class Closed(FakeService):
        def ask_together(self, dataset: str, queries: Sequence[Query], *, analyst: int, keys: object) -> list[Released]:
            raise Refused(status=503, body={"detail": "closed for today"})

    rng = np.random.default_rng(1)
    with pytest.raises(Refused, match="closed for today"):
        Game(Closed(), "d", drawn_victims(VICTIMS, rng), rng, rule="skip").play(schedule())


DIFFERENCES: dict[str, tuple[Callable[[Stored], object], dict[str, int]]] = {
    "none": (lambda _: None, {}),
    "spent": (lambda stored: setattr(stored.people["v2"], "spent", 1), {"charges": 1, "own accounts": 2}),
    "charged": (lambda stored: setattr(stored.people["v5"], "charged", 1), {"active sets": 1}),
    "left out": (lambda stored: setattr(stored.people["v5"], "left_out", 1), {"active sets": 1}),
    "limit": (lambda stored: setattr(stored.people["v5"], "limit", WHOLE + 1), {"limits": 1}),
    "no account": (lambda stored: stored.people.pop("v5"), {"charges": 1, "active sets": 1, "limits": 1}),
    "ledger": (lambda stored: stored.ledger.update({1: (2, 1)}), {"ledger": 1}),
    "no entry": (lambda stored: stored.ledger.clear(), {"ledger": 1}),
    "another entry": (lambda stored: stored.ledger.update({2: (0, 0)}), {"ledger": 1}),
    "no receipts": (lambda stored: stored.people["v1"].receipts.clear(), {"own accounts": 2}),
    "another receipt": (lambda stored: stored.people["v2"].receipts.append((2, "charged", 1)), {"own accounts": 1}),
    "another outcome": (lambda stored: stored.people["v2"].receipts.append((1, "charged", 0)), {"own accounts": 1}),
}


@pytest.mark.parametrize(("change", "differences"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_each_difference_has_a_name(change: Callable[[Stored], object], differences: dict[str, int]) -> None:
    """By one unit, query or entry; a blank victim has spent nothing, though the audit follows what it would have spent.

    Of three victims of a query one is blank, one is charged, and the third asks for too much.
    """
    rng, service = np.random.default_rng(1), FakeService()
    victims = drawn_victims(120, rng)
    victims.is_in[:] = False
    victims.is_in[1:3] = True
    game = Game(service, "d", victims, rng, rule="skip")
    game.ask(np.arange(3), np.array([1, 1, 10**6]), Gaussian(100.0), analyst=0)
    change(service.stored["d"])
    game.compare_accounts()
    game.compare_ledger()
    game.compare_own_accounts()

    assert game.own.spent[0].least > 0
    assert dict(game.mismatches.counts) == differences
    assert game.mismatches.compared["charges"] == 120


def test_an_account_is_missed_unless_its_owner_is_erased() -> None:
    """And the first differences are kept in words, while all are counted."""
    rng, service = np.random.default_rng(1), FakeService()
    game = Game(service, "d", drawn_victims(120, rng), rng, rule="skip")
    service.stored["d"].people.clear()
    game.victims.is_erased[:110] = True
    game.compare_accounts()
    assert game.mismatches.counts["limits"] == game.mismatches.compared["limits"] == 10
    first = game.mismatches.first["limits"]
    assert len(first) == SHOWN_MAX
    assert first[0] == f"v110 {game.victims.adversary[110]} after query 0: -1, and not {WHOLE}"
