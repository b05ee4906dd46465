"""Authentication: API keys are recognised, remembered for a second, and forgotten at once when revoked here."""

from datetime import timedelta
from uuid import UUID

import pytest

from service.testing.store import MemoryStore
from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import InvalidRequest, NotFound
from service.workflows.model.rows import PrincipalRecord
from service.workflows.principals import REMEMBERED_FOR, Principals
from tests.factories import CLOCK


class LookupCountingStore(MemoryStore):
    """A store that counts look-ups of principals."""

    looked_up = 0

    def principal(self, principal_id: UUID) -> PrincipalRecord | None:
        self.looked_up += 1
        return super().principal(principal_id)


class World:
    """Principals over a counting store, and a clock that can be moved."""

    def __init__(self) -> None:
        self.store = LookupCountingStore()
        self.now = CLOCK
        self.principals = Principals(store=self.store, pepper=Pepper(bytes(32)), clock=lambda: self.now)


def test_a_key_is_recognised_and_no_other() -> None:
    """A wrong secret, an unknown id and a malformed key all give None."""
    world = World()
    principal, key = world.principals.create(role="analyst", name="ana")
    assert world.principals.authenticate(key) == principal
    for wrong in (key[:-1], key + "x", "sparing_" + "0" * 32 + "_x", "sparing__", "", "bearer", key.replace("_", "-")):
        assert world.principals.authenticate(wrong) is None
        assert world.principals.remembered(wrong) is None


def test_a_recognised_key_is_remembered_for_a_moment_only() -> None:
    """Within a second the database is not asked; later, and before the first time, memory gives None."""
    world = World()
    principal, key = world.principals.create(role="analyst", name="ana")
    assert world.principals.remembered(key) is None
    world.principals.authenticate(key)
    before = world.store.looked_up
    assert world.principals.remembered(key) == principal
    assert world.principals.remembered(key[:-1]) is None
    world.now += REMEMBERED_FOR
    assert world.principals.remembered(key) is None
    world.now -= REMEMBERED_FOR + timedelta(seconds=1)
    assert world.principals.remembered(key) is None
    assert world.store.looked_up == before


def test_a_key_revoked_here_stops_at_once() -> None:
    """Revoking forgets the key; revoking it again raises NotFound."""
    world = World()
    principal, key = world.principals.create(role="analyst", name="ana")
    world.principals.authenticate(key)
    world.principals.revoke(principal.id)
    assert world.principals.remembered(key) is None
    assert world.principals.authenticate(key) is None
    with pytest.raises(NotFound):
        world.principals.revoke(principal.id)


@pytest.mark.parametrize(
    ("field", "wish"),
    [
        ("name", {"role": "analyst", "name": ""}),
        ("name", {"role": "analyst", "name": "a\nb"}),
        ("individual", {"role": "individual", "name": "i", "dataset": "d"}),
        ("individual", {"role": "analyst", "name": "a", "individual": "i"}),
        ("dataset", {"role": "individual", "name": "i", "individual": "i"}),
        ("dataset", {"role": "analyst", "name": "a", "dataset": "nothing"}),
        ("allowance_rho", {"role": "curator", "name": "c", "allowance_rho": 1}),
        ("allowance_rho", {"role": "analyst", "name": "a", "allowance_rho": -1}),
    ],
)
def test_a_principal_that_makes_no_sense_names_the_field(field: str, wish: dict[str, object]) -> None:
    """No principal is created."""
    world = World()
    with pytest.raises(InvalidRequest) as refusal:
        world.principals.create(**wish)  # type: ignore[arg-type]  # that is the point
    assert refusal.value.errors[0].field == field
    assert world.principals.listed(cursor=None, limit=10).items == ()
