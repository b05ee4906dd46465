"""Kill -9 at every point of a query's way, with one replica, and with two that share the dataset."""

import pytest

from tests.faults.killing import PLACES, Servers, kill_at_ticks, kill_one_by_one, kill_under_load
from tests.faults.scenario import PEOPLE, staged
from tests.rotation import TURN, one_of, times

KILLS = times(1, 10)
"""At each place; two replicas die as often again, in the gate at one place."""
QUESTIONS = 4
"""For limits of which the first question exhausts some and not others."""


@pytest.mark.parametrize("place", PLACES)
def test_one_replica_dies_and_nothing_is_lost_or_doubled(servers: Servers, place: str) -> None:
    """Before COMMIT nothing is there, after it everything; the next process gives the same bytes or executes once."""
    with staged(servers.database_url, questions=max(KILLS, QUESTIONS)) as stage:
        assert kill_one_by_one(stage, servers, place, KILLS) == KILLS
        history = stage.audit(servers.witness)
    assert len(history.replies) == KILLS
    assert len({attempt.key for attempt in history.attempts}) == KILLS


@pytest.mark.parametrize("place", one_of(PLACES, PLACES.index("before-commit")))
def test_two_replicas_keep_dying_under_load(servers: Servers, place: str) -> None:
    """There is one order, in real time; every answer seen is stored, every key is answered in the end."""
    with staged(servers.database_url, questions=60) as stage:
        assert kill_under_load(stage, servers, place, KILLS, seed=TURN + 1) == KILLS
        history = stage.audit(servers.witness)
    assert {attempt.key for attempt in history.attempts} == {reply.key for reply in history.replies}


@pytest.mark.parametrize("place", one_of(["summed", "before-commit", "acknowledged", "half-sent"]))
def test_a_replica_dies_at_tick_after_tick(servers: Servers, place: str) -> None:
    """Each goes on with the runs that were begun: the first ticks are those of the ledger, and each comes once."""
    with staged(servers.database_url, questions=QUESTIONS) as stage:
        kill_at_ticks(stage, servers, place, 2)
        history = stage.audit(servers.witness)
    ticks = [entry for entry in history.entries if entry.tick]
    assert [entry.tick for entry in ticks] == [1, 2, 3]
    assert 0 < len(ticks[0].added) < len(ticks[1].added) < PEOPLE
    assert history.curves[-1].values == tuple(entry.value for entry in ticks)
