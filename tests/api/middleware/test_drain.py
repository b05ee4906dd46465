"""A service that is leaving says so, refuses what is new, and answers what it has."""

import asyncio

from service.api.app import HttpOptions
from service.api.middleware.request_context import DrainState
from service.workflows.writer.submission import PendingAnswer
from tests.api.world import COUNT, build_world


async def test_new_requests_are_refused_and_probes_answered() -> None:
    """503 `draining` with Retry-After and the end of the connection; /readyz says why, /livez stays."""
    drain_state = DrainState()
    world = build_world(edge=HttpOptions(drain_state=drain_state))
    assert (await world.ask("before", COUNT.replace(b"20.0", b"21.0"))).status_code == 200
    drain_state.drain()
    refused = await world.ask("after")
    assert refused.status_code == 503
    assert refused.json()["type"] == "urn:sparing:problem:draining"
    assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
    assert refused.headers["x-not-started"] == "1"
    ready = await world.client.get("/readyz")
    assert (ready.status_code, ready.json()["detail"]) == (503, "Not ready: draining.")
    assert (await world.client.get("/livez")).status_code == 200
    assert len(world.replica.auditors.ledger("care", cursor=None, limit=10).items) == 2
    await world.client.aclose()
    world.replica.close()


def test_watchers_are_told_when_a_drain_begins() -> None:
    """With every signal, and not before the first."""
    told: list[bool] = []
    drain_state = DrainState(lambda: told.append(drain_state.draining))
    assert told == []
    drain_state.drain()
    drain_state.drain()
    assert told == [True, True]


async def test_what_was_accepted_is_answered() -> None:
    """With the end of its connection."""
    drain_state = DrainState()
    world = build_world(edge=HttpOptions(drain_state=drain_state))
    submit = world.replica.analysts.submit
    slow: list[PendingAnswer] = []

    def submitted(*call: object) -> object:
        pending = submit(*call)  # type: ignore[arg-type]
        pending.add_done_callback(lambda _: drain_state.drain())  # before the client gets the answer
        slow.append(pending)
        return pending

    world.replica.analysts.submit = submitted  # type: ignore[method-assign,assignment]
    answer = asyncio.create_task(world.ask("k", COUNT.replace(b"20.0", b"21.0")))
    response = await answer
    assert response.status_code == 200
    assert response.content == slow[0].result().body
    assert response.headers["connection"] == "close"
    await world.client.aclose()
    world.replica.close()
