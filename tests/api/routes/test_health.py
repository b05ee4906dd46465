"""The operator's probes."""

import pytest

from tests.api.world import World


async def test_live_and_ready_without_a_key(world: World) -> None:
    """No key, no data."""
    assert (await world.client.get("/livez")).json() == {"status": "live"}
    assert (await world.client.get("/readyz")).json() == {"status": "ready"}


async def test_not_ready_tells_public_codes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with the codes; the process stays alive."""
    monkeypatch.setattr(world.store, "problems", lambda: ["database-away", "fenced"])
    response = await world.client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["type"] == "urn:sparing:problem:not-ready"
    assert response.json()["detail"] == "Not ready: database-away, fenced."
    assert response.headers["retry-after"] == "1"
    assert (await world.client.get("/livez")).status_code == 200
