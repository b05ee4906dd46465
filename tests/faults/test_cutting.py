"""Commits whose outcome the service cannot see: before COMMIT is passed on, within it, and after it."""

import pytest

from tests.faults.cutting import CUTS, cut_in_a_crowd, cut_one_by_one
from tests.faults.proxy import Cut
from tests.faults.scenario import staged
from tests.rotation import TURN, times

ALONE = times(40, 160)
"""For each of five cuts; a read past an unclear proposal is no failure each time."""
TOGETHER = times(10, 200)
CLIENTS = 4


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.name)
def test_an_unseen_commit_is_resolved_by_reading(database_url: str, cut: Cut) -> None:
    """No second noise for what is durable, one execution for what is not; no individual is charged twice."""
    with staged(database_url, questions=ALONE) as stage:
        durable = cut_one_by_one(stage, cut, ALONE)
        assert len(stage.audit().replies) == ALONE
    assert durable == (0 if cut in (Cut.BEFORE, Cut.WITHIN) else ALONE)  # without its end nothing is committed


def test_unseen_commits_of_many_answers_at_once(database_url: str) -> None:
    """Four clients insist on their keys; every key ends with one reply, and the order agrees with real time."""
    with staged(database_url, questions=CLIENTS * TOGETHER) as stage:
        assert cut_in_a_crowd(stage, TOGETHER, clients=CLIENTS, seed=TURN + 1) == TOGETHER
        assert len(stage.audit().replies) == CLIENTS * TOGETHER
