"""Cancelling a query by its key, on slots of 10 ms whose time the test sets."""

import json

import pytest

from tests.api.slotted import MS, Client, Slotted
from tests.waiting import until_async

ASK = "/v1/datasets/care/queries"
COUNT = b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":30.0}}'


async def asked(slotted: Slotted, key: str, *, path: str = ASK, body: bytes = COUNT) -> Client:
    """A query that waits for its slots."""
    client = Client(slotted.world, "POST", path, key=key)
    client.body(body)
    await slotted.arrived(slotted.events.count("arrived") + 1)
    return client


async def answered(slotted: Slotted, client: Client) -> int | None:
    """The status of a response; slots pass until it has left."""
    while client.status is None:
        await slotted.at((slotted.time.ns - slotted.zero) / MS + 10)
    return client.status


async def cancelled(slotted: Slotted, key: str, *, path: str = ASK) -> Client:
    """A cancellation, whose response waits to leave with the next slot."""
    alarms = len(slotted.time.alarms)
    client = Client(slotted.world, "DELETE", path, key=key)
    client.body()
    await until_async(lambda: len(slotted.time.alarms) > alarms)
    return client


async def test_a_query_that_waits_is_cancelled_and_its_key_is_free(slotted: Slotted) -> None:
    """Both requests hear of it; nothing is charged; asked again, the key is answered."""
    waiting = await asked(slotted, "mine")
    cancelling = await cancelled(slotted, "mine")

    assert await answered(slotted, cancelling) == 204
    assert await answered(slotted, waiting) == 410
    assert waiting.document["type"] == "urn:sparing:problem:query-cancelled"
    assert slotted.events == ["arrived", "cancelled"]
    assert slotted.world.store.head(1).seq == 1
    assert slotted.admission.memory.requests == 0

    assert await answered(slotted, await asked(slotted, "mine")) == 200
    assert slotted.world.store.head(1).seq == 2


async def test_a_query_that_has_begun_is_answered(slotted: Slotted) -> None:
    """Its slots have come: it is too late, and the answer is charged."""
    begun = await asked(slotted, "mine")
    await slotted.at(10.5)
    assert slotted.events == ["arrived", "begun"]
    cancelling = Client(slotted.world, "DELETE", ASK, key="mine")
    cancelling.body()

    assert await answered(slotted, cancelling) == 409
    assert cancelling.document["type"] == "urn:sparing:problem:query-not-waiting"
    assert await answered(slotted, begun) == 200
    assert slotted.world.store.head(1).seq == 2


@pytest.mark.parametrize(
    ("key", "path", "status"), [("other", ASK, 409), ("mine", "/v1/datasets/nowhere/queries", 404), (" ", ASK, 400)]
)
async def test_the_query_of_that_key_and_dataset_alone_is_meant(
    slotted: Slotted, key: str, path: str, status: int
) -> None:
    """Anything else leaves it waiting."""
    waiting = await asked(slotted, "mine")
    cancelling = await cancelled(slotted, key, path=path)

    assert await answered(slotted, cancelling) == status
    assert await answered(slotted, waiting) == 200
    assert slotted.events == ["arrived", "begun"]


async def test_the_query_of_another_analyst_is_left_alone(slotted: Slotted) -> None:
    """A key that another analyst uses names another query."""
    waiting = await asked(slotted, "mine")
    slotted.world.enrol("analyst", "analyst")
    cancelling = await cancelled(slotted, "mine")

    assert await answered(slotted, cancelling) == 409
    assert await answered(slotted, waiting) == 200


async def test_a_batch_is_cancelled_as_a_whole(slotted: Slotted) -> None:
    """By the key of any of its queries: they are one unit of the schedule."""
    entries = [{"idempotency_key": key, "query": json.loads(COUNT)} for key in ("one", "two")]
    waiting = await asked(slotted, "", path=f"{ASK}/batch", body=json.dumps({"queries": entries}).encode())
    cancelling = await cancelled(slotted, "two")

    assert await answered(slotted, cancelling) == 204
    assert await answered(slotted, waiting) == 200
    assert [each["type"] for each in waiting.document["answers"]] == ["urn:sparing:problem:query-cancelled"] * 2
    assert slotted.world.store.head(1).seq == 1
