"""The datasets that a caller may see."""

from tests.api.route_table import REGISTRATION, ROWS
from tests.api.world import CSV, World


async def test_an_analysts_view_does_not_move_with_the_data(world: World) -> None:
    """A query, an upload and an erasure leave the same bytes, each."""
    before = (await world.call("analyst", "GET", "/v1/datasets/care")).content
    await world.ask("k")
    assert (await world.call("analyst", "GET", "/v1/datasets/care")).content == before
    rows = "/v1/datasets/care/tables/people/rows"
    assert (await world.call("curator", "POST", rows, headers=CSV, **ROWS)).status_code == 200
    assert (await world.call("analyst", "GET", "/v1/datasets/care")).content == before
    await world.call("curator", "DELETE", "/v1/datasets/care/individual?individual=bo")
    assert (await world.call("analyst", "GET", "/v1/datasets/care")).content == before


async def test_a_principal_of_one_dataset_sees_that_one(world: World) -> None:
    """The other is not listed, and not there."""
    assert (await world.call("curator", "POST", "/v1/datasets", json=REGISTRATION)).status_code == 201
    for role in ("analyst", "curator"):
        world.enrol(f"bound {role}", role, dataset="care")
        listed = (await world.call(f"bound {role}", "GET", "/v1/datasets")).json()
        assert [each["name"] for each in listed["items"]] == ["care"]
        assert (await world.call(f"bound {role}", "GET", "/v1/datasets/new")).status_code == 404
