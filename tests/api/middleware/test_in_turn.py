"""The principal whose turns a request shares, as far as the process knows it without its database."""

from collections.abc import Callable, Hashable

import pytest
from fastapi import Request

from service.api.middleware.in_turn import PROBING, WITHOUT_CREDENTIAL, owner_of
from service.api.turns import STRANGERS, Turns
from tests.api.world import World


class CountedTurns(Turns):
    """Turns that count how often one was waited for."""

    waits = 0

    async def wait(self, owner_of: Callable[[], Hashable]) -> None:
        self.waits += 1
        await super().wait(owner_of)


def _owner(world: World, path: str = "/v1/session", **headers: str) -> Hashable:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "app": world.app, "method": "GET", "path": path, "headers": raw, "query_string": b""}
    return owner_of(Request({**scope, "server": ("localhost", 80)}))


async def test_a_principal_recognised_lately_has_turns_of_its_own(world: World) -> None:
    """So it has where its key must be looked up again."""
    principals, key = world.replica.principals, world.keys["analyst"]
    principal = principals.remembered(key)
    assert principal is not None
    assert _owner(world, authorization=f"Bearer {key}") == principal.id
    principals.remembered = lambda _: None  # type: ignore[method-assign, assignment]
    assert _owner(world, authorization=f"Bearer {key}") == key


@pytest.mark.parametrize(
    ("path", "headers", "owner"),
    [
        ("/v1/session", {}, WITHOUT_CREDENTIAL),
        ("/livez", {}, PROBING),
        ("/readyz", {"authorization": "Bearer sp_unknown"}, STRANGERS),
        ("/v1/session", {"cookie": "sparing_session=x"}, STRANGERS),
        ("/v1/session", {"cookie": "sparing_session=x", "sec_fetch_site": "cross-site"}, STRANGERS),
    ],
    ids=["without a credential", "a probe", "an unknown key", "an unknown sign-in", "another site's request"],
)
async def test_all_others_share_turns_by_kind(world: World, path: str, headers: dict[str, str], owner: str) -> None:
    """A crowd of one kind takes none of another's."""
    assert _owner(world, path, **headers) == owner


async def test_a_stranger_has_a_second_turn_once_its_key_was_looked_up(world: World) -> None:
    """Hundreds are looked up together, and all of them would go on in one round of the event loop."""
    turns = CountedTurns()
    world.app.state.places.here().turns = turns
    for key, waits in {world.keys["analyst"]: 1, "sp_unknown": 2}.items():
        turns.waits = 0
        await world.client.get("/v1/session", headers={"Authorization": f"Bearer {key}"})
        assert turns.waits == waits
