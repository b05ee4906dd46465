"""Every round trip to the database that a route makes fails once, in one of three ways, or in all of them."""

from dataclasses import replace

import pytest

from tests.api.route_table import PAGES, ROUTES, Route, served
from tests.faults.proxy import Cut
from tests.faults.sweep import CASES, CUTS, NOBODY, Swept
from tests.rotation import one_of, some_of

UPLOAD = next(route for route in ROUTES if route.template.endswith("/rows"))
ASK = next(route for route in ROUTES if str(route) == "POST /v1/datasets/{dataset}/queries")


@pytest.fixture
def swept(database_url: str) -> Swept:
    """A world of the test's own: some routes leave more and more behind."""
    return Swept.of(database_url)


def test_no_route_escapes(swept: Swept) -> None:
    """The swept routes are those that the application serves, but for the pages, which never touch the database."""
    with swept.opened(Cut.NEVER) as trial:
        assert served(trial.world.app) - PAGES == {(route.method, route.template) for route, _ in CASES}


@pytest.mark.parametrize(("route", "role"), some_of(CASES, 6), ids=str)
async def test_every_failure_is_refused_in_one_way_and_can_be_sent_again(swept: Swept, route: Route, role: str) -> None:
    """503 or the answer; the second delivery is served, and a query is executed once; the ledger verifies."""
    for cut in one_of(CUTS, CASES.index((route, role))):
        round_trips = await swept.sweep(route, role, cut)
        assert (round_trips > 0) == (role != NOBODY or route.template == "/readyz")


@pytest.mark.parametrize("cut", one_of([Cut.REPLIED, Cut.ERROR]), ids=lambda cut: cut.name)
async def test_a_replica_that_has_loaded_nothing_is_no_different(swept: Swept, cut: Cut) -> None:
    """The load of the first query is swept too."""
    assert await swept.sweep_cold(ASK, "analyst", cut) > 10


@pytest.mark.parametrize("cut", one_of(CUTS, CUTS.index(Cut.REPLIED)), ids=lambda cut: cut.name)
async def test_an_upload_with_a_key_is_stored_once_whatever_fails(swept: Swept, cut: Cut) -> None:
    """Also where the reply to its COMMIT is lost: the second delivery gets its report, and nothing is stored twice."""
    keyed = replace(UPLOAD, headers={**UPLOAD.headers, "Idempotency-Key": "k"})
    round_trips = await swept.sweep(keyed, "curator", cut)
    assert round_trips > 5
    stored = swept.count("keyed_uploads")
    assert stored == swept.deliveries
    assert swept.count("individuals") == stored + 5
