"""The operator's probes."""

import pytest

from tests.api.world import TABLES, World

REGISTRATION = {"guarantee": {"rho": "1"}, "capacity": 10, "tables": TABLES}


async def test_live_and_ready_without_a_key(world: World) -> None:
    """No key, no data."""
    assert (await world.client.get("/livez")).json() == {"status": "live"}
    assert (await world.client.get("/readyz")).json() == {"status": "ready", "closed": {}, "datasets": {}, "shards": {}}


async def test_not_ready_tells_public_codes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with the codes; the process stays alive."""
    monkeypatch.setattr(world.store, "problems", lambda: ["database-away", "fenced"])
    response = await world.client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["type"] == "urn:sparing:problem:not-ready"
    assert response.json()["detail"] == "Not ready: database-away, fenced."
    assert response.headers["retry-after"] == "1"
    assert (await world.client.get("/livez")).status_code == 200


async def test_a_closed_dataset_is_counted_and_named_to_its_own(world: World) -> None:
    """Without a key, or with a bad one, a number by code; with a key, the datasets that it may use."""
    await world.call("curator", "POST", "/v1/datasets", json={**REGISTRATION, "name": "town"})
    world.replica.registry.guard(world.replica.registry.record("town")).close_for_damage()
    closed = {"status": "ready", "closed": {"ledger-damaged": 1}, "shards": {}}
    for headers in ({}, {"Authorization": "Bearer nobody"}, {"Cookie": "sparing_session=x"}):
        response = await world.client.get("/readyz", headers=headers)
        assert (response.status_code, response.json()) == (200, closed | {"datasets": {}})
    told = (await world.call("curator", "GET", "/readyz")).json()
    assert told == closed | {"datasets": {"care": "open", "town": "ledger-damaged"}}
    told = (await world.call("individual", "GET", "/readyz")).json()
    assert told == closed | {"datasets": {"care": "open"}}
