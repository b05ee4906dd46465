"""Exceptions and cut connections at every point of a query's way: a refusal that says nothing, and no harm done."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import orjson
from fastapi import FastAPI

from service.failpoints import POINTS, arm, disarm
from tests.api.world import created_app
from tests.faults.history import Attempt
from tests.faults.scenario import QUESTIONS, Stage, fresh_at, in_turn, open_replica

REFUSALS = {500: "urn:sparing:problem:internal-error", 503: "urn:sparing:problem:unavailable"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of the application."""

    upload_bytes_max: int = 2**20


def ask_over_asgi(stage: Stage, app: FastAPI, key: str, question: str) -> httpx.Response | None:
    """One query through the whole application, without a socket; None when the answer broke off."""

    async def call() -> httpx.Response | None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {stage.analyst_key}", "Idempotency-Key": key}
        async with httpx.AsyncClient(transport=transport, base_url="http://sparing", headers=headers) as client:
            try:
                path = f"/v1/datasets/{stage.dataset}/queries"
                return await client.post(path, content=orjson.dumps(QUESTIONS[question].query))
            except (AssertionError, httpx.TransportError):
                return None

    started = time.monotonic()
    response = asyncio.run(call())
    status = None if response is None else response.status_code
    stage.attempts.append(
        Attempt(
            key=key,
            question=question,
            started=started,
            seen_at=time.monotonic(),
            status=status,
            body=response.content if response is not None and status == 200 else b"",
            complete=False,
        )
    )
    return response


@contextmanager
def drilled(point: str, action: str) -> Iterator[None]:
    """With one drill armed."""
    arm({"CHAOS": "1", "CHAOS_AT": f"{point}:{action}"}, host="127.0.0.1")
    try:
        yield
    finally:
        disarm()


def break_at(stage: Stage, point: str, action: str) -> None:
    """Ask with the drill, look at the refusal, and ask again without it: the key is answered, executed once."""
    key, question = f"{action}-{point}", in_turn(fresh_at(point), POINTS.index(point), 0, count=1)
    with drilled(point, action), open_replica(stage.database_url) as (_, replica):
        app = created_app(replica)
        refused = ask_over_asgi(stage, app, key, question)
        stored = stage.stored(key)
        if refused is not None and refused.status_code != 200:
            problem = refused.json()
            assert problem["type"] == REFUSALS[refused.status_code]
            assert problem.keys() == {"type", "title", "status", "detail", "request_id"}
        again = ask_over_asgi(stage, app, key, question)
    assert again is not None
    assert again.status_code == 200
    if stored is not None:
        assert again.content == stored.body
    if refused is not None and refused.status_code == 200:
        assert again.content.startswith(refused.content)
