"""Random walks over roles, datasets, keys and cookies: never a 5xx, and never more than a credential's principal may.

Fifty thousand steps in a run of the tests, a million in `make soak`. A walk is drawn from its number alone; where
requests at the same time race, a repetition can differ in who comes first.
"""

from collections import Counter
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
from tests.rotation import TURN, times
from tests.stateful.walk import STEPS, walked

pytestmark = [pytest.mark.slow, pytest.mark.timeout(times(300, 3000))]

WALKS, SHARDS = times(5, 50), times(4, 8)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyarrow, of a broken row not in UTF-8
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_no_step_fails_or_goes_too_far(shard: int) -> None:
    """Every operation has succeeded on the way, and the ledgers are whole at the end of each walk."""
    answered: Counter[tuple[str, int]] = Counter()
    wanted = {str(route) for route in ROUTES if route.status < 300}
    for place in range(2 * WALKS):
        succeeded = {route for route, status in answered if status < 300}
        if place >= WALKS and wanted <= succeeded:  # a rare operation may need a walk more
            break
        answered += await walked((TURN * SHARDS + shard) * WALKS + place)
    assert sum(answered.values()) >= STEPS * WALKS
    assert wanted <= {route for route, status in answered if status < 300}


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
        await walked(1)
