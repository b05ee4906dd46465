"""A service whose clock is wrong by years says so, keeps its keys and sign-ins, and charges nothing."""

from datetime import UTC, datetime, timedelta

from tests.api.world import build_world

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


async def test_a_wrong_clock_is_told_in_words_and_a_right_one_needs_no_restart() -> None:
    """By every route that takes a key, with 503 and when to retry; what needs no clock is answered."""
    times = [NOW]
    world = build_world(clock=lambda: times[0])
    before = await world.call("auditor", "GET", "/v1/datasets/care/ledger")
    times[0] = NOW + timedelta(days=500 * 365)
    refused = [
        await world.ask("again"),
        await world.call("curator", "POST", "/v1/principals", json={"role": "auditor", "name": "new"}),
        await world.call("individual", "GET", "/v1/me/budgets"),
        await world.call("auditor", "GET", "/v1/datasets/care/ledger"),
    ]
    told = "The service's clock is wrong by years, and nothing is done until it is right; tell the operator."
    for answer in refused:
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert (answer.json()["type"], answer.json()["title"]) == ("urn:sparing:problem:clock-implausible", told)
    ready = await world.call(None, "GET", "/readyz")
    assert (ready.status_code, ready.json()["title"]) == (503, "Not ready: clock-implausible.")
    assert (await world.call(None, "GET", "/livez")).status_code == 200
    times[0] = NOW
    assert (await world.call(None, "GET", "/readyz")).status_code == 200
    assert (await world.call("auditor", "GET", "/v1/datasets/care/ledger")).json() == before.json()
    assert (await world.ask("again")).status_code == 200
    await world.close()
