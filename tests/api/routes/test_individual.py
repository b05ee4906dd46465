"""An individual's own account."""

import io
import json

import numpy as np
import pytest

from service.api.responses import NPZ
from service.core.charge import rho_of_units
from tests.api.world import World

SPENT = str(rho_of_units(-(-(2**40) // 800)))  # one count at sigma 20: 1 / (2 * 20^2), rounded up to a unit


async def test_the_own_account_and_no_other(world: World) -> None:
    """One budget, of the dataset that the principal belongs to."""
    (mine,) = (await world.call("individual", "GET", "/v1/me/budgets")).json()
    assert (mine["dataset"], mine["budget_rho"], mine["spent_rho"]) == ("care", "1", SPENT)
    assert (mine["queries_charged"], mine["queries_left_out"]) == (1, 0)
    for path in ("/v1/me/budgets?individual=bo", "/v1/me/budgets?dataset=x"):
        refused = await world.call("individual", "GET", path)
        assert (refused.status_code, "care" in refused.text, "bo" in refused.text) == (422, False, False)


async def test_the_own_record_comes_as_json_or_as_npz(world: World) -> None:
    """By what is accepted; in npz the record is text, and any vectors are beside it."""
    path = "/v1/me/record/care"
    plain = await world.call("individual", "GET", path)
    assert (plain.headers["content-type"], plain.headers["vary"]) == ("application/json", "Accept")
    binary = await world.call("individual", "GET", path, headers={"Accept": f"application/json;q=0.5, {NPZ}"})
    assert (binary.headers["content-type"], binary.headers["vary"]) == (NPZ, "Accept")
    with np.load(io.BytesIO(binary.content)) as arrays:
        assert json.loads(str(arrays["record"])) == plain.json()
        assert list(arrays) == ["record"]
    other = await world.call("individual", "GET", path, headers={"Accept": "text/html"})
    assert other.content == plain.content


async def test_a_limit_can_be_lowered_and_never_raised(world: World) -> None:
    """Down, and not up again, by a pause and its end either."""
    path = "/v1/me/budgets/care/lower"
    lowered = await world.call("individual", "POST", path, json={"limit_rho": "0.5"})
    assert (lowered.status_code, lowered.json()["budget_rho"]) == (200, "0.5")
    raised = await world.call("individual", "POST", path, json={"limit_rho": "0.6"})
    assert (raised.status_code, raised.json()["errors"][0]["field"]) == (422, "limit_rho")
    below = await world.call("individual", "POST", path, json={"limit_rho": "0.001"})
    assert below.status_code == 422
    (error,) = below.json()["errors"]
    assert error == {"field": "limit_rho", "message": f"must be at least {SPENT}, which is spent already"}
    await world.call("individual", "POST", path, json={"pause": True})
    resumed = await world.call("individual", "POST", "/v1/me/budgets/care/resume")
    assert (resumed.status_code, resumed.json()) == (200, lowered.json())


async def test_a_pause_is_a_state_that_ends(world: World) -> None:
    """Pausing twice and resuming twice are as good as once; nothing but the pause changes, and curators see it."""
    before = (await world.call("individual", "GET", "/v1/me/budgets")).json()[0]
    assert before["paused"] is False
    for path, body, paused in (
        ("lower", {"pause": True}, True),
        ("lower", {"pause": True}, True),
        ("resume", None, False),
        ("resume", None, False),
    ):
        response = await world.call("individual", "POST", f"/v1/me/budgets/care/{path}", json=body)
        assert (response.status_code, response.json()) == (200, before | {"paused": paused})
        assert (await world.call("individual", "GET", "/v1/me/budgets")).json() == [response.json()]
        rows = (await world.call("curator", "GET", "/v1/datasets/care/budgets")).json()["items"]
        assert {row["key"]: row["paused"] for row in rows}["ada"] is paused
        summary = (await world.call("curator", "GET", "/v1/datasets/care/budgets/summary")).json()
        assert summary["paused"] == paused


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
    """Not even as a principal: the key opens no more, at once, and neither name nor key is left in the list of them."""
    assert (await world.call("individual", "GET", "/v1/me/budgets")).status_code == 200
    await world.call("curator", "DELETE", "/v1/datasets/care/individual?individual=ada")
    for path in ("/v1/me/budgets", "/v1/me/receipts"):
        assert (await world.call("individual", "GET", path)).status_code == 401
    listed = (await world.call("curator", "GET", "/v1/principals")).json()["items"]
    (erased,) = [row for row in listed if row["role"] == "individual" and row["individual"] is None]
    assert (erased["name"], erased["revoked_at"] is not None) == ("erased", True)
    assert not [row for row in listed if row["individual"] == "ada"]
