"""Every round trip to the database that a route makes fails once, in three ways."""

import pytest

from tests.api.route_table import ROUTES, Route, served
from tests.faults.proxy import Cut
from tests.faults.sweep import CASES, CUTS, NOBODY, Swept

pytestmark = pytest.mark.slow

ASK = next(route for route in ROUTES if str(route) == "POST /v1/datasets/{dataset}/queries")


@pytest.fixture
def swept(database_url: str) -> Swept:
    """A world of the test's own: some routes leave more and more behind."""
    return Swept.of(database_url)


def test_no_route_escapes(swept: Swept) -> None:
    """The swept routes are those that the application serves."""
    with swept.opened(Cut.NEVER) as trial:
        assert served(trial.world.app) == {(route.method, route.template) for route, _ in CASES}


@pytest.mark.parametrize(("route", "role"), CASES, ids=str)
async def test_every_failure_is_refused_in_one_way_and_can_be_sent_again(swept: Swept, route: Route, role: str) -> None:
    """503 or the answer; the second delivery is served, and a query is executed once; the ledger verifies."""
    for cut in CUTS:
        round_trips = await swept.sweep(route, role, cut)
        assert (round_trips > 0) == (role != NOBODY or route.template == "/readyz")


@pytest.mark.parametrize("cut", [Cut.REPLIED, Cut.ERROR], ids=lambda cut: cut.name)
async def test_a_replica_that_has_loaded_nothing_is_no_different(swept: Swept, cut: Cut) -> None:
    """The load of the first query is swept too."""
    assert await swept.sweep_cold(ASK, "analyst", cut) > 10
