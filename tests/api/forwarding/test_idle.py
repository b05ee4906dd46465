"""Connections are kept for one principal each, not for long, and not in any number."""

from uuid import UUID

from service.api.forwarding.connection import PeerConnection
from service.api.forwarding.idle import IDLE_S, KEPT_MAX, IdleConnections
from tests.api.neighbours import Clock

A, B, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
REPLICA = UUID(int=9)


def test_the_one_put_back_last_is_taken_and_only_for_its_principal_and_replica() -> None:
    """No other principal has it; each is taken once."""
    idle, (first, second) = IdleConnections(Clock()), [PeerConnection() for _ in range(2)]
    for connection in (first, second):
        idle.put((REPLICA, A), connection)
    assert idle.take((REPLICA, B)) is None
    assert idle.take((OTHER, A)) is None
    assert [idle.take((REPLICA, A)) for _ in range(3)] == [second, first, None]
    assert len(idle._since) == 0


def test_one_that_is_old_or_lost_is_closed_instead() -> None:
    """It is closed when it is asked for, and when another is put back."""
    clock = Clock()
    idle, (old, lost, asked) = IdleConnections(clock), [PeerConnection() for _ in range(3)]
    idle.put((REPLICA, A), old)
    clock.now_s += IDLE_S
    idle.put((REPLICA, B), lost)
    assert (len(idle._since), old.is_lost) == (1, True)
    lost.close()
    assert idle.take((REPLICA, B)) is None
    idle.put((REPLICA, A), asked)
    clock.now_s += IDLE_S
    assert idle.take((REPLICA, A)) is None
    assert (asked.is_lost, len(idle._since)) == (True, 0)


def test_beyond_so_many_the_first_is_closed() -> None:
    """A principal that asks much at once takes no files for good."""
    idle, made = IdleConnections(Clock()), [PeerConnection() for _ in range(KEPT_MAX + 1)]
    for number, connection in enumerate(made):
        idle.put((REPLICA, UUID(int=number)), connection)
    assert (len(idle._since), made[0].is_lost, made[1].is_lost) == (KEPT_MAX, True, False)
