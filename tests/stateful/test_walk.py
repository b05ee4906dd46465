"""Random walks over roles, datasets, keys and cookies: never a 5xx, and never more than a credential's principal may.

A walk without simultaneous requests is drawn from its number alone, and so is what it reaches. Where requests race, a
repetition can differ in the first to come, so that such walks assert what holds for every order. The gate takes ten
thousand steps, `make soak` a million.
"""

from collections.abc import Callable
from typing import Any

import pytest

from service.api import auth
from service.api.auth import RouteGuard
from service.api.problems import unauthorized
from service.workflows.curator import Curators
from service.workflows.principals import Principals
from service.workflows.sign_ins import SignIns
from tests.api.route_table import ROUTES
from tests.rotation import fresh, times
from tests.stateful import walk
from tests.stateful.walk import walked

pytestmark = [
    pytest.mark.timeout(times(300, 3000)),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # pyarrow, of a row not in UTF-8
]

REACHING, STEPS_REACHING = range(1, 9), 1_200
SHARDS, WALKS, STEPS = times(4, 8), times(1, 50), times(1_750, walk.STEPS)


async def test_every_operation_succeeds_on_the_way() -> None:
    """Walks that seek what has not succeeded yet, one request after the other, until nothing is left."""
    left = {str(route) for route in ROUTES if route.status < 300}
    for number in REACHING:
        answered = await walked(number, STEPS_REACHING, has_crowds=False, seeks_successes=True)
        left -= {name for name, status in answered if status < 300}
        if not left:
            break
    assert left == set()


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_no_step_fails_or_goes_too_far(shard: int) -> None:
    """With requests at the same time too; the ledgers are whole at the end of each walk."""
    for number in fresh(SHARDS * WALKS)[shard::SHARDS]:
        answered = await walked(number, STEPS)
        assert answered.total() >= STEPS


async def _let_all_in(self: RouteGuard, request: Any) -> Any:
    principal = await auth.authenticated(request, auth.current_replica(request))
    if principal is None:
        raise unauthorized()
    return principal


def _fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError


def _stay(*_: Any) -> None:
    """Nothing ends."""


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        (RouteGuard, "admit", _let_all_in),
        (SignIns, "end", _stay),
        (Principals, "revoke", _stay),
        (Curators, "acts", _fail),
        (auth, "OWN_SITE", {"elsewhere"}),
    ],
)
async def test_a_walk_finds_a_mistake(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, mistake: Callable[..., Any]
) -> None:
    """A guard without roles, a sign-out or a revocation without effect, a route that fails, a refused own page."""
    monkeypatch.setattr(owner, name, mistake)
    with pytest.raises(AssertionError, match="the last answer"):
        await walked(1, STEPS)
