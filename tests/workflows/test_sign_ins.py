"""Sign-ins of browsers: how long they last, and with what they end."""

import base64
from datetime import timedelta

import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import NotFound
from service.ledger.model.views import Principal
from service.workflows.principals import REMEMBERED_FOR, Principals
from service.workflows.sign_ins import CLOCKS_DIFFER, IDLE, LONGEST, RENEWED_AFTER, SignIns
from tests.factories import CLOCK
from tests.memory.store import MemoryStore

INSTANT = timedelta(microseconds=1)


class World:
    """Sign-ins over a store in memory, and a clock that can be moved."""

    def __init__(self) -> None:
        self.store, self.now = MemoryStore(), CLOCK
        pepper = Pepper(bytes(32))
        self.principals = Principals(store=self.store, pepper=pepper, clock=lambda: self.now)
        self.sign_ins = SignIns(store=self.store, principals=self.principals, pepper=pepper, clock=lambda: self.now)
        self.principal: Principal = self.principals.create(role="curator", name="cy")[0]
        self.token = self.sign_ins.begin(self.principal)


@pytest.fixture
def world() -> World:
    """A curator that has signed in."""
    return World()


def test_a_token_is_recognised_and_no_other(world: World) -> None:
    """Nothing of the token is kept but its keyed hash."""
    assert world.sign_ins.authenticate_all([world.token])[0] == world.principal
    for wrong in ("", world.token[:-1], world.token + "x"):
        assert world.sign_ins.authenticate_all([wrong])[0] is None
        assert world.sign_ins.remembered(wrong) is None
    (kept,) = world.store.sign_ins.kept.values()
    assert world.token.encode() not in kept.token_hash
    assert world.token not in repr(kept)


def test_a_token_has_256_bits_and_is_new_each_time(world: World) -> None:
    """Also for a principal that is signed in already."""
    tokens = [world.token, *(world.sign_ins.begin(world.principal) for _ in range(99))]
    assert {len(base64.urlsafe_b64decode(f"{token}=")) for token in tokens} == {32}
    assert len({*tokens}) == len(world.store.sign_ins.kept) == len(tokens)


def test_a_sign_in_ends_when_it_is_not_used(world: World) -> None:
    """Half an hour after its last use, to the instant."""
    world.now += IDLE - INSTANT
    assert world.sign_ins.authenticate_all([world.token])[0] is not None
    world.now += IDLE - INSTANT
    assert world.sign_ins.authenticate_all([world.token])[0] is not None
    world.now += IDLE
    assert world.sign_ins.authenticate_all([world.token])[0] is None


def test_a_sign_in_ends_after_half_a_day_however_it_is_used(world: World) -> None:
    """Uses extend it no further."""
    while world.now < CLOCK + LONGEST - RENEWED_AFTER:
        world.now += IDLE / 2
        if world.now < CLOCK + LONGEST:
            assert world.sign_ins.authenticate_all([world.token])[0] is not None
    world.now = CLOCK + LONGEST
    assert world.sign_ins.authenticate_all([world.token])[0] is None


def test_a_sign_in_under_a_clock_that_was_wrong_ends_when_it_is_put_right(world: World) -> None:
    """It would last for centuries; one of a machine whose clock is minutes ahead is good."""
    world.now = CLOCK - CLOCKS_DIFFER
    assert world.sign_ins.authenticate_all([world.token])[0] is not None
    world.now -= INSTANT
    assert world.sign_ins.authenticate_all([world.token])[0] is None
    world.now = CLOCK - timedelta(days=365 * 500)
    assert world.sign_ins.authenticate_all([world.token])[0] is None


def test_uses_are_written_at_most_once_a_minute(world: World) -> None:
    """The end moves only when it would move by a minute."""
    ends = set()
    for _ in range(120):
        world.now += timedelta(seconds=1)
        world.sign_ins.authenticate_all([world.token])[0]
        ends.add(world.store.sign_ins.kept[next(iter(world.store.sign_ins.kept))].expires_at)
    assert len(ends) == 2


def test_a_sign_in_is_remembered_for_a_second_and_ends_at_once_with_a_sign_out(world: World) -> None:
    """A request in the event loop reads no database meanwhile."""
    assert world.sign_ins.remembered(world.token) is None
    world.sign_ins.authenticate_all([world.token])[0]
    assert world.sign_ins.remembered(world.token) == world.principal
    world.now += REMEMBERED_FOR
    assert world.sign_ins.remembered(world.token) is None
    world.sign_ins.authenticate_all([world.token])[0]
    world.sign_ins.end(world.token)
    assert world.sign_ins.remembered(world.token) is None
    assert world.sign_ins.authenticate_all([world.token])[0] is None
    world.sign_ins.end(world.token)


def test_one_sign_out_leaves_other_browsers_signed_in(world: World) -> None:
    """Each has a token of its own."""
    other = world.sign_ins.begin(world.principal)
    world.sign_ins.end(world.token)
    assert world.sign_ins.authenticate_all([other])[0] == world.principal


def test_a_revoked_key_ends_its_sign_ins_at_once(world: World) -> None:
    """Also one that was recognised a moment ago; no new one begins."""
    world.sign_ins.authenticate_all([world.token])[0]
    world.principals.revoke(world.principal.id)
    assert world.sign_ins.remembered(world.token) is None
    assert world.sign_ins.authenticate_all([world.token])[0] is None


def test_a_principal_that_is_gone_cannot_sign_in(world: World) -> None:
    """It may have been erased since its key was shown."""
    world.store.principal_records.clear()
    with pytest.raises(NotFound):
        world.sign_ins.begin(world.principal)


def test_expired_sign_ins_are_dropped_when_another_begins(world: World) -> None:
    """The table does not grow for ever."""
    world.now += IDLE
    world.sign_ins.begin(world.principal)
    assert len(world.store.sign_ins.kept) == 1
