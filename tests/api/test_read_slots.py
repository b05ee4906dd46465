"""An analyst's read has slots: it begins in them and leaves when they end, and frees them if its client goes."""

import asyncio
from typing import Any

import pytest

from service.workflows.replica import ReplicaOptions
from service.writer.admission.admission import Admission
from service.writer.admission.scheduler import ACTS_WAITING_MAX, START_NS
from tests.api.slotted import MS, SLOT, Client, Slotted
from tests.api.world import COUNT, build_world
from tests.waiting import until_async

PREVIEW = "/v1/datasets/care/queries/preview"


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/allowances", "/v1/datasets", "/v1/datasets/care"])
async def test_a_read_begins_in_its_slot_and_leaves_when_that_ends(
    slotted: Slotted, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read before the slot has come; nothing is sent before it has ended."""
    begun: list[int] = []
    for name in ("releases", "allowances", "datasets", "dataset"):
        real = getattr(slotted.world.replica.analysts, name)

        def noted(*given: Any, real: Any = real, **named: Any) -> Any:
            begun.append(slotted.time.ns)
            return real(*given, **named)

        monkeypatch.setattr(slotted.world.replica.analysts, name, noted)
    client = Client(slotted.world, "GET", path)
    client.body()
    await slotted.arrived(1)
    await slotted.at(10)
    assert begun == []
    await slotted.at(10 + START_NS / MS)
    await until_async(lambda: begun != [])
    assert begun == [slotted.zero + SLOT + START_NS]
    await slotted.at(19.999)
    assert client.sent == []
    await slotted.at(20)
    await client.task
    assert client.status == 200


async def test_a_larger_listing_costs_more(slotted: Slotted) -> None:
    """By its limit as it is written; an odd spelling counts as the largest, and the usual limit as 100."""
    costs = {}
    for number, limit in enumerate(("limit=1", "", "limit=100", "limit=1000", "limit=0999.0", "limit=%2B1")):
        client = Client(slotted.world, "GET", "/v1/queries", query=limit)
        before = slotted.admission.memory.kept_bytes
        client.body()
        await slotted.arrived(number + 1)
        costs[limit] = slotted.admission.memory.kept_bytes - before
        client.go()
        await client.task
    assert costs["limit=1"] < costs[""] == costs["limit=100"] < costs["limit=1000"]
    assert costs["limit=0999.0"] == costs["limit=%2B1"] == costs["limit=1000"]


async def test_a_client_that_goes_before_its_slot_frees_it(slotted: Slotted) -> None:
    """Its memory is free at once, nothing is sent, and the next request has the slot."""
    gone, other = (Client(slotted.world, "GET", "/v1/allowances") for _ in range(2))
    for number, client in enumerate((gone, other)):
        client.body()
        await slotted.arrived(number + 1)
    held = slotted.admission.memory.kept_bytes
    gone.go()
    await gone.task
    assert slotted.admission.memory.kept_bytes == held // 2
    await slotted.at(10.5)
    await slotted.at(20)
    await other.task
    assert (gone.sent, other.status) == ([], 200)
    assert slotted.events == ["arrived", "arrived", "cancelled", "begun"]
    assert slotted.admission.memory.requests == 0


async def test_a_request_is_scheduled_when_it_is_whole(slotted: Slotted) -> None:
    """A body that comes in pieces is read to its end first, and no piece is lost between two slots."""
    client = Client(slotted.world, "POST", PREVIEW)
    client.body(COUNT[:20], more=True)
    await slotted.settled()
    await slotted.at(10.5)
    await slotted.at(25)
    assert slotted.events == []
    client.body(COUNT[20:])
    await slotted.arrived(1)
    await slotted.at(30.5)
    await slotted.at(40)
    await client.task
    assert client.status == 200
    assert client.document["dimension"] == 1


async def test_half_a_request_has_no_turn(slotted: Slotted) -> None:
    """Its client goes in the middle of the body: nothing was reserved for it."""
    client = Client(slotted.world, "POST", PREVIEW)
    client.body(COUNT[:20], more=True)
    await slotted.settled()
    client.go()
    await client.task
    assert (client.sent, slotted.events, slotted.admission.memory.requests) == ([], [], 0)


async def test_what_is_refused_while_it_waits_is_busy_at_the_end_of_that_slot(slotted: Slotted) -> None:
    """429; its memory is given back."""
    client = Client(slotted.world, "GET", "/v1/queries")
    client.body()
    await slotted.arrived(1)
    (request,) = slotted.dispatcher._schedule._arriving
    request.leave_before_ns = slotted.zero + SLOT
    await slotted.at(10.5)
    assert client.sent == []
    await slotted.at(20)
    await client.task
    assert (client.status, client.document["type"]) == (429, "urn:sparing:problem:busy")
    assert slotted.events == ["arrived", "refused"]
    assert slotted.admission.memory.requests == 0


OWN_READS = [
    ("individual", "/v1/me/budgets"),
    ("individual", "/v1/me/receipts"),
    ("individual", "/v1/me/record/care"),
    ("individual", "/v1/me/erasure/care"),
    ("auditor", "/v1/datasets/care/ledger"),
]


@pytest.mark.parametrize(("role", "path"), OWN_READS)
async def test_a_read_of_an_individual_or_auditor_begins_in_a_free_slot(slotted: Slotted, role: str, path: str) -> None:
    """An analyst's read has two slots: the other begins after them, and is held from there on. It moves no slot."""
    analysts = Client(slotted.world, "GET", "/v1/queries")
    analysts.body()
    await slotted.arrived(1)
    await slotted.at(10.5)
    client = Client(slotted.world, "GET", path, role=role)
    client.body()
    await slotted.settled()
    await slotted.at(19.999)
    assert client.sent == []
    assert len(slotted.dispatcher._acts) == 1
    await slotted.at(20)
    await analysts.task
    await slotted.at(20 + START_NS / MS)
    assert len(slotted.dispatcher._acts) == 0
    await slotted.at(69.999)
    assert client.sent == []
    await slotted.at(70)
    await client.task
    assert client.status == 200
    assert slotted.events == ["arrived", "begun"]


async def test_an_individual_who_goes_before_the_free_slot_is_forgotten(slotted: Slotted) -> None:
    """Nothing is read, and nothing is sent."""
    client = Client(slotted.world, "GET", "/v1/me/budgets", role="individual")
    client.body()
    await until_async(lambda: len(slotted.dispatcher._acts) == 1)
    client.go()
    await client.task
    assert (client.sent, len(slotted.dispatcher._acts)) == ([], 0)


async def test_an_individual_with_too_many_reads_is_busy(slotted: Slotted) -> None:
    """429, for the one that sends them."""
    crowd = [Client(slotted.world, "GET", "/v1/me/budgets", role="individual") for _ in range(ACTS_WAITING_MAX // 2)]
    for client in crowd:
        client.body()
    await until_async(lambda: len(slotted.dispatcher._acts) == len(crowd))
    refused = Client(slotted.world, "GET", "/v1/me/budgets", role="individual")
    refused.body()
    await slotted.settled()
    await slotted.at(60)
    await refused.task
    assert (refused.status, refused.document["type"]) == (429, "urn:sparing:problem:busy")
    for client in crowd:
        client.go()
    await asyncio.gather(*(client.task for client in crowd))


async def test_without_slots_a_read_begins_at_once_within_the_bound_on_memory() -> None:
    """Beyond it, it is refused."""
    admission = Admission()
    world = build_world(options=ReplicaOptions(admission=admission))
    assert (await world.call("analyst", "GET", "/v1/queries")).status_code == 200
    assert admission.memory.requests == 0
    admission.memory.bytes_max = 10
    refused = await world.call("analyst", "GET", "/v1/queries")
    assert refused.status_code == 422
    assert "have 5;" in refused.json()["detail"]
    await world.close()
