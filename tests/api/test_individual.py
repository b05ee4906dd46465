"""An individual's own account."""

import pytest

from service.core.units import rho_of_units
from tests.api.world import World

SPENT = str(rho_of_units(-(-(2**40) // 800)))  # one count at sigma 20: 1 / (2 * 20^2), rounded up to a unit


async def test_the_own_account_and_nobody_elses(world: World) -> None:
    """One budget, of the dataset that the principal belongs to."""
    (mine,) = (await world.call("individual", "GET", "/v1/me/budgets")).json()
    assert set(mine) >= {
        "dataset",
        "budget_rho",
        "spent_rho",
        "remaining_rho",
        "share_spent",
        "budget_epsilon",
        "delta",
    }
    assert (mine["dataset"], mine["budget_rho"], mine["spent_rho"]) == ("care", "1", SPENT)
    for path in ("/v1/me/budgets?individual=bo", "/v1/me/budgets?dataset=x"):
        assert (await world.call("individual", "GET", path)).json() == [mine]


async def test_each_query_has_a_receipt(world: World) -> None:
    """What was asked, when, at what charge."""
    page = (await world.call("individual", "GET", "/v1/me/receipts")).json()
    (receipt,) = page["items"]
    assert set(receipt) >= {"query_id", "asked", "at", "charged_rho", "outcome"}
    assert (receipt["query_id"], receipt["outcome"], page["next"]) == (world.query_id, "charged", None)


async def test_a_limit_can_be_lowered_and_never_raised(world: World) -> None:
    """Down, not up again, and paused for good."""
    path = "/v1/me/budgets/care/lower"
    lowered = await world.call("individual", "POST", path, json={"limit_rho": "0.5"})
    assert (lowered.status_code, lowered.json()["budget_rho"]) == (200, "0.5")
    raised = await world.call("individual", "POST", path, json={"limit_rho": "0.6"})
    assert (raised.status_code, raised.json()["errors"][0]["field"]) == (422, "limit_rho")
    paused = (await world.call("individual", "POST", path, json={"pause": True})).json()
    assert (paused["remaining_rho"], paused["budget_rho"]) == ("0", paused["spent_rho"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"pause": False}, "body"),
        ({"pause": True, "limit_rho": "0.1"}, "body"),
        ({"pause": "yes"}, "pause"),
        ({"limit_rho": "-1"}, "limit_rho"),
        ({"limit_rho": "NaN"}, "limit_rho"),
        ({"limit_rho": "x"}, "limit_rho"),
        ({"limit_rho": "0.5", "individual": "bo"}, "individual"),
        ([], "body"),
    ],
)
async def test_a_wish_that_is_not_clear_is_refused(world: World, body: object, field: str) -> None:
    """Either a limit or a pause, by name."""
    response = await world.call("individual", "POST", "/v1/me/budgets/care/lower", json=body)
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]


async def test_an_erased_individual_is_told_nothing(world: World) -> None:
    """The key still opens, and there is nothing behind it."""
    await world.call("curator", "DELETE", "/v1/datasets/care/individuals/ada")
    for path in ("/v1/me/budgets", "/v1/me/receipts"):
        assert (await world.call("individual", "GET", path)).status_code == 404
