"""Taking a query off the wire and waiting for its answer."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.problems import Refusal
from service.api.query_requests import checked_key, wait_for_answer
from service.workflows.model.analyst_views import StoredAnswer
from service.workflows.model.errors import AllowanceExceeded
from service.workflows.writer.submission import PendingAnswer
from tests.api.slotted import MS, Client, Slotted, settled
from tests.api.world import COUNT

ANSWER = StoredAnswer(query_id=UUID(int=1), sequence=1, body=b"{}", values=lambda: np.zeros(1))


@given(key=st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=128))
def test_printable_ascii_is_a_key(key: str) -> None:
    """Any of it that is not all blank."""
    if key.strip():
        assert checked_key(key) == key


@given(key=st.text(max_size=200))
def test_nothing_else_is(key: str) -> None:
    """The refusal is a 400, and says which of the two it is."""
    if key.strip() and key.isascii() and key.isprintable() and len(key) <= 128:
        assert checked_key(key) == key
        return
    with pytest.raises(Refusal) as refused:
        checked_key(key)
    assert refused.value.status == 400
    assert refused.value.slug == ("idempotency-key-invalid" if key.strip() else "idempotency-key-missing")


async def test_the_answer_arrives_from_another_thread() -> None:
    """A future of the writer's, awaited."""
    future = PendingAnswer(1)
    asyncio.get_running_loop().call_later(0.01, future.set_result, ANSWER)
    assert await wait_for_answer(future) is ANSWER


async def test_all_the_answers_of_a_commit_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come one after the other from another thread, each to its own waiting request."""
    loop, wakings = asyncio.get_running_loop(), 0
    call_soon_threadsafe = loop.call_soon_threadsafe

    def counted(*call: Any) -> Any:
        nonlocal wakings
        wakings += 1
        return call_soon_threadsafe(*call)

    futures = [PendingAnswer(1) for _ in range(50)]
    waiting = [asyncio.ensure_future(wait_for_answer(future)) for future in futures]
    await asyncio.sleep(0)
    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    for number, future in enumerate(futures):
        future.set_result(replace(ANSWER, sequence=number))
    assert [answer.sequence for answer in await asyncio.gather(*waiting)] == list(range(50))
    assert wakings == 1


def test_an_answer_for_a_loop_that_has_ended_does_no_harm() -> None:
    """The writer that settles it must not be told of a loop's end."""
    future = PendingAnswer(1)

    async def give_up() -> None:
        waiting = asyncio.ensure_future(wait_for_answer(future))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(give_up())
    future.set_result(ANSWER)
    assert future.result() is ANSWER


async def test_a_caller_that_goes_away_takes_nothing_with_it() -> None:
    """The wait is cancelled, the query is not: it is charged and stored, to be fetched under its key."""
    future = PendingAnswer(1)
    waiting = asyncio.create_task(wait_for_answer(future))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not future.cancelled()
    future.set_result(ANSWER)
    await asyncio.sleep(0.01)


async def test_a_refusal_without_a_waiting_client_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The event loop would write its text into the log."""
    future = PendingAnswer(1)
    waiting = asyncio.create_task(wait_for_answer(future))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with caplog.at_level(logging.DEBUG), pytest.raises(asyncio.CancelledError):
        await waiting
    future.set_exception(AllowanceExceeded("secret"))
    await asyncio.sleep(0.01)
    assert "secret" not in caplog.text


async def test_a_refusal_reaches_the_caller() -> None:
    """As it was raised."""
    future = PendingAnswer(1)
    future.set_exception(AllowanceExceeded())
    with pytest.raises(AllowanceExceeded):
        await wait_for_answer(future)


ASK = "/v1/datasets/care/queries"


def count(sigma: int) -> bytes:
    """A count with a value of its own."""
    return COUNT.replace(b"20.0", b"%d.0" % sigma)


def batch(size: int) -> bytes:
    """A batch of new counts."""
    entries = (b'{"idempotency_key":"b%d","query":%s}' % (n, count(100 + n)) for n in range(size))
    return b'{"queries":[' + b",".join(entries) + b"]}"


@pytest.fixture
async def slotted() -> AsyncIterator[Slotted]:
    """A fresh world at the beginning of a slot, with one entry in its ledger."""
    made = Slotted()
    yield made
    await made.world.client.aclose()
    made.world.replica.close()


@pytest.mark.parametrize(("path", "body"), [(ASK, count(30)), (f"{ASK}/batch", batch(5))], ids=["query", "batch"])
async def test_a_client_that_goes_before_its_slot_has_asked_nothing(slotted: Slotted, path: str, body: bytes) -> None:
    """No entry, no memory, no response; the next query has the slot and the next sequence number."""
    gone, other = Client(slotted.world, "POST", path), Client(slotted.world, "POST", ASK, key="other")
    gone.body(body)
    await slotted.arrived(1)
    other.body(count(40))
    await slotted.arrived(2)
    await slotted.at(9.9)
    gone.go()
    await gone.task
    await slotted.at(10.5)
    await slotted.at(20)
    await other.task
    assert (gone.sent, other.status, other.document["sequence"]) == ([], 200, 2)
    assert slotted.world.store.head(1).seq == 2
    assert slotted.events == ["arrived", "arrived", "cancelled", "begun"]
    assert slotted.admission.memory.requests == 0


@pytest.mark.parametrize("goes_at_ms", [10, 10.3, 12])
@pytest.mark.parametrize(("path", "body", "size"), [(ASK, count(30), 1), (f"{ASK}/batch", batch(5), 5)])
async def test_a_client_that_goes_after_its_slot_has_come_is_answered_all_the_same(
    slotted: Slotted, path: str, body: bytes, size: int, goes_at_ms: float
) -> None:
    """The entries are there, whenever the writer comes to them; the next query has the next sequence number."""
    gone = Client(slotted.world, "POST", path)
    gone.body(body)
    await slotted.arrived(1)
    await slotted.at(9.9)
    slotted.time.pass_to(slotted.zero + int(goes_at_ms * MS))
    gone.go()
    await settled()
    for now_ms in (12, 20, 30, 40):
        await slotted.at(now_ms)
    await gone.task
    assert slotted.world.store.head(1).seq == 1 + size
    assert slotted.events == ["arrived", "begun"]
    assert slotted.admission.memory.requests == 0
