"""A play against a service that is right: the audit's filter follows it, and the losses are those of the answers."""

import math

import numpy as np
import pytest
from clients.audit.tests.fake_service import FakeService

from sparing_audit.adversaries import Act
from sparing_audit.comparison import COMPARED
from sparing_audit.game import RHO, Game
from sparing_audit.service import UNITS_PER_RHO, Query, Refused, Released
from sparing_audit.victims import drawn_victims

VICTIMS = 240


def played(
    rule: str = "skip", query_rule: str | None = None, service: FakeService | None = None, seed: int = 4
) -> Game:
    """A whole play."""
    rng = np.random.default_rng(seed)
    game = Game(
        FakeService() if service is None else service,
        dataset="audit",
        rule=rule,
        query_rule=query_rule,
        victims=drawn_victims(VICTIMS, rng),
        rng=rng,
    )
    game.play()
    return game


@pytest.mark.parametrize(("rule", "query_rule"), [("skip", None), ("drop", None), ("skip", "clip")])
def test_every_comparison_is_made_and_holds(rule: str, query_rule: str | None) -> None:
    """Under each rule, thousands of times."""
    game = played(rule, query_rule)

    assert game.mismatches.counts.total() == 0
    assert [name for name in COMPARED if game.mismatches.compared[name] == 0] == []
    assert game.mismatches.compared["charges"] > 40 * (VICTIMS - 50)


def test_the_losses_are_the_log_ratios_of_the_answers() -> None:
    """Worked out once more from the records, by the densities of both worlds."""
    game = played()
    again = np.zeros(VICTIMS)
    for each in game.recorded:
        here, there = each.values - each.counted, each.values
        again[each.places] += (there**2 - here**2) / (2 * each.sigma**2)
    assert game.losses == pytest.approx(again, abs=1e-9)


def test_the_adversaries_spend_the_budgets_that_they_mean_to() -> None:
    """Equality to the last unit, most to a millionth; those that stop or have lower limits do not."""
    game = played()
    whole = RHO * UNITS_PER_RHO
    spent = {
        name: np.array([game.own.spent[place] for place in game.victims.of(name).tolist()]) / whole
        for name in ("equality at the budget", "one huge", "many tiny", "stop when ahead", "limits lowered when ahead")
    }
    assert (spent["equality at the budget"] == 1).all()
    assert (spent["one huge"] == 1).all()
    assert spent["many tiny"].min() > 1 - 1e-5
    assert spent["stop when ahead"].min() < 0.9
    assert spent["limits lowered when ahead"].min() < 0.9
    assert max(game.own.spent) <= whole


def test_under_drop_the_unaffordable_ends_an_account_and_under_clip_it_spends_it() -> None:
    """By the same adversary."""
    whole = RHO * UNITS_PER_RHO
    name = "unaffordable between affordable"
    dropped, clipped = played("drop"), played("skip", "clip")
    for game, low, high in ((dropped, 0.0, 0.2), (clipped, 1 - 1e-5, 1.0)):
        shares = np.array([game.own.spent[place] for place in game.victims.of(name).tolist()]) / whole
        assert low < shares.min() <= shares.max() <= high


def test_each_act_is_done_to_victims_of_both_kinds() -> None:
    """In the data and blank; and all that was begun is ended."""
    acted: dict[str, set[str]] = {}

    class Watched(FakeService):
        def lower(self, dataset: str, limits: dict[str, int]) -> None:  # type: ignore[override]
            acted.setdefault("lower", set()).update(limits)
            super().lower(dataset, limits)

        def pause(self, dataset: str, people: list[str]) -> None:  # type: ignore[override]
            acted.setdefault("pause", set()).update(people)
            super().pause(dataset, people)

        def erase(self, dataset: str, people: list[str]) -> None:  # type: ignore[override]
            acted.setdefault("erase", set()).update(people)
            super().erase(dataset, people)

        def correct(self, dataset: str, values: dict[str, int | None]) -> None:  # type: ignore[override]
            acted.setdefault("correct", set()).update(values)
            super().correct(dataset, values)

    kinds: dict[str, set[bool]] = {}
    for seed in range(4):
        acted.clear()
        game = played(service=Watched(), seed=seed)
        for act, keys in acted.items():
            kinds.setdefault(act, set()).update(bool(game.victims.is_in[int(key[1:])]) for key in keys)
        assert not any(game.own.is_paused)
        assert not game.victims.is_erased.any()
    assert kinds == {act: {True, False} for act in ("lower", "pause", "erase", "correct")}
    assert len(Act) == len(kinds)


def test_a_service_that_changes_the_noise_is_noticed() -> None:
    """A sigma other than the one asked for is a difference of its own."""

    class Louder(FakeService):
        def ask(self, dataset: str, query: Query, *, analyst: int, key: str, reuse: bool) -> Released:
            answer = super().ask(dataset, query, analyst=analyst, key=key, reuse=reuse)
            return Released(id="", sequence=answer.sequence, values=answer.values, sigma=2 * answer.sigma, grid=1.0)

    assert played(service=Louder()).mismatches.counts["budgets"] > 0


def test_a_refusal_ends_the_play() -> None:
    """A service has no reason to refuse any query of the schedule."""

    class Closed(FakeService):
        def ask_together(self, *_: object, **__: object) -> list[Released]:
            raise Refused("closed for today")

    with pytest.raises(Refused, match="closed for today"):
        played(service=Closed())


def test_sums_of_squares_are_the_spent_totals() -> None:
    """The losses are made of the vectors that were charged, to the rounding of charges."""
    game = played()
    spent = np.zeros(VICTIMS)
    for each in game.recorded:
        spent[each.places] += each.counted**2 / (2 * each.sigma**2)
    assert spent == pytest.approx(np.array(game.own.spent) / UNITS_PER_RHO, abs=len(game.recorded) / UNITS_PER_RHO)
    assert spent.max() <= RHO
    assert math.isclose(spent.max(), RHO)
