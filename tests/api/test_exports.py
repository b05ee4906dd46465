"""Exports on their way out: each holds memory while it is sent, and beyond the bound the next is refused."""

import asyncio
import threading
from collections.abc import MutableMapping
from typing import Any

import pytest

from service.ledger.model.views import BudgetRow, Page
from service.writer.admission.transfers import EXPORT_BYTES, Transfers
from tests.api.world import World
from tests.waiting import until_async

PATH = "/v1/datasets/care/budgets/export"


async def test_an_export_beyond_the_memory_is_refused_and_one_after_it_is_sent(world: World) -> None:
    """429 with Retry-After, before a byte of a file; nothing is held once the file has left."""
    world.replica.transfers = transfers = Transfers(2 * EXPORT_BYTES)
    with transfers.holding("another", EXPORT_BYTES):
        answer = await world.call("curator", "GET", PATH)
        assert (answer.status_code, answer.headers["content-type"]) == (429, "application/problem+json")
        assert answer.json()["type"].endswith("busy")
        assert int(answer.headers["retry-after"]) >= 1
    assert (await world.call("curator", "GET", PATH)).status_code == 200
    assert transfers.kept_bytes == 0


async def test_one_export_has_room_under_any_bound(world: World) -> None:
    """Also where an export would hold more."""
    world.replica.transfers = Transfers(2**20)
    assert (await world.call("curator", "GET", PATH)).status_code == 200


async def test_a_refused_export_gives_its_memory_back(world: World) -> None:
    """The export is of a dataset that does not exist."""
    assert (await world.call("curator", "GET", "/v1/datasets/nowhere/budgets/export")).status_code == 404
    assert world.replica.transfers.kept_bytes == 0


@pytest.mark.parametrize("is_read", [True, False], ids=["and reads", "and reads no further"])
async def test_the_memory_of_an_export_is_held_until_its_client_goes_away(
    world: World, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    """In the middle of the file: while the next page is read from the database, and while the connection is full."""
    monkeypatch.setattr("service.workflows.curator.PAGE_ROWS", 2)
    transfers, budgets, gate = world.replica.transfers, world.replica.curators.budgets, threading.Event()

    reached = threading.Event()

    def gated(dataset: str, *, cursor: str | None, limit: int) -> Page[BudgetRow]:
        if cursor is not None:
            reached.set()
            gate.wait(30)  # in a failed test too
        return budgets(dataset, cursor=cursor, limit=limit)

    monkeypatch.setattr(world.replica.curators, "budgets", gated)
    client = Client(is_reading=is_read)
    served = asyncio.ensure_future(world.app(client.scope(world.keys["curator"]), client.receive, client.send))
    await client.begun.wait()
    if is_read:
        await until_async(reached.is_set)
    assert transfers.kept_bytes == EXPORT_BYTES
    client.gone.set()
    await served
    assert transfers.kept_bytes == 0
    gate.set()


class Client:
    """Takes the beginning of a response, and leaves when told."""

    def __init__(self, *, is_reading: bool) -> None:
        self.begun, self.gone = asyncio.Event(), asyncio.Event()
        self._is_reading, self._requests = is_reading, [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive(self) -> dict[str, Any]:
        """The request, then that it is gone."""
        if self._requests:
            return self._requests.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take a message, or be as a full connection until it is gone."""
        if message["type"] == "http.response.body" and message["body"]:
            self.begun.set()
            if not self._is_reading:
                await self.gone.wait()

    @staticmethod
    def scope(key: str) -> dict[str, Any]:
        """The scope of a request for a file."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": PATH,
            "raw_path": PATH.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {key}".encode()), (b"host", b"sparing")],
            "client": ("127.0.0.1", 1),
            "server": ("sparing", 80),
            "state": {},
        }
