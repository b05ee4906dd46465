"""SIGSTOP and SIGCONT: a process stopped in its turn commits nothing when it wakes up."""

import pytest

from tests.faults.killing import Servers
from tests.faults.scenario import staged
from tests.faults.stopping import stop_at, stop_under_load
from tests.rotation import some_of, times

STOPS = times(1, 3)
MOMENTS = times(5, 20)


@pytest.mark.parametrize(
    "place", some_of(["lock-held", "active-set", "rows-inserted", "before-commit", "acknowledged"], 2)
)
def test_a_stopped_replica_commits_nothing_stale(servers: Servers, place: str) -> None:
    """The other one executes its key; the sleeper's attempt is refused, or shows what was durable before it slept."""
    with staged(servers.database_url, questions=2 * STOPS) as stage:
        assert stop_at(stage, servers, place, STOPS) == STOPS
        assert len(stage.audit(servers.witness).entries) == 2 * STOPS


def test_replicas_that_stand_still_at_any_moment(servers: Servers) -> None:
    """Safety throughout, and every key is answered in the end."""
    with staged(servers.database_url, questions=60) as stage:
        assert stop_under_load(stage, servers, MOMENTS, seed=1) == MOMENTS
        history = stage.audit(servers.witness)
    assert {attempt.key for attempt in history.attempts} == {reply.key for reply in history.replies}
