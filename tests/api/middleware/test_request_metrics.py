"""Requests are counted by the template of their path, whatever became of them."""

from service.api.app import HttpOptions
from service.api.middleware.request_context import UNMATCHED
from tests.api.route_table import ROUTES, served
from tests.api.tally import Tally
from tests.api.world import build_world


async def test_every_route_is_counted_by_its_template() -> None:
    """No key of an individual, no name of a dataset: the labels are known before any request."""
    tally = Tally()
    world = build_world(edge=HttpOptions(telemetry=tally))
    known = {f"{method} {path}" for method, path in served(world.app)} | {UNMATCHED}
    for route in ROUTES:
        for role in (None, *sorted(route.roles)):
            await route.call(world, role)
    for method, path in (("GET", "/nothing"), ("BREW", "/v1/queries"), ("DELETE", "/livez")):
        await world.client.request(method, path)
    await world.client.aclose()
    world.replica.close()
    assert {route.replace(":path}", "}") for route, _ in tally.ended} <= known
    assert tally.ended["POST /v1/datasets/{dataset}/queries", 200] == 1
    assert tally.ended["POST /v1/datasets/{dataset}/queries", 401] == 1
    assert tally.ended[UNMATCHED, 404] == 1
    assert tally.ended[UNMATCHED, 405] == 2
    assert tally.in_flight == 0
