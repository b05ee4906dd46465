"""Worlds that differ in one person, over three shards: what others receive, which shards work, and what a loss shows.

The one person has a shard alone, so that a shard that holds nobody, or of which nobody has anything left, does as much
as any other, and its death shows as little.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import httpx
import orjson
import pytest

from service.api.app import HttpOptions
from service.ledger.model.errors import Busy
from service.ledger.ports.shards import Lane, ShardLost
from service.workflows.replica import Replica
from service.writer.shards.divided import DividedShards
from service.writer.shards.shard import ShardRelease, Turn
from tests.api.world import created_app
from tests.leaks.divided import SHARDS, DividedWorld, divided_dataset, divided_slot_of_one, lived_divided
from tests.leaks.worlds import JSON, KINDS, PLACED, ReplicaExchange, parts_in, price_of, public_parts
from tests.memory.shards import MemoryShardChannel, MemoryShards
from tests.rotation import some_of
from tests.waiting import settled

ONE = "p39"
ATTEMPTS = 1000
LOST = ("absent", "present", "exhausted", "most rows")
QUERY = {"version": 1, "select": [{"active": {"share": 0.02}}], "noise": {"sigma": 20.0}, "reuse": False}
Plant = Callable[[pytest.MonkeyPatch], None]


@lru_cache(maxsize=2)
def without(*, is_last: bool) -> DividedWorld:
    """The world to which all others are compared: the person is not there, or left an empty slot."""
    return lived_divided(ONE, "absent" if is_last else "erased", is_last=is_last)


@pytest.mark.parametrize(("kind", "is_last"), some_of(PLACED, 3))
def test_one_person_moves_nothing_but_the_values(kind: str, is_last: bool) -> None:
    """Every exchange is equal, every shard is called as often for each, and all others are charged the same.

    Values differ by that person's own vector alone.
    """
    ours, theirs = lived_divided(ONE, kind, is_last=is_last), without(is_last=is_last)
    assert public_parts(ours.exchanges) == public_parts(theirs.exchanges)
    assert ours.calls == theirs.calls
    slot = divided_slot_of_one(is_last=is_last)
    for mine, other in zip(ours.entries, theirs.entries, strict=True):
        (paid, left_out), (paid_there, left_out_there) = parts_in(mine), parts_in(other)
        assert paid.pop(slot, 0) == price_of(mine, mine.steps() - other.steps())
        assert (paid, left_out - {slot}) == (paid_there, left_out_there)
    others = {key: units for key, units in ours.accounts.items() if key != ONE}
    assert others == {key: units for key, units in theirs.accounts.items() if key != ONE}


def test_each_shard_takes_part_in_every_answer() -> None:
    """Those without people too."""
    theirs = without(is_last=True)
    answers = [calls for calls in theirs.calls if any(calls)]
    assert sum("answer_part" in calls[0] for calls in answers) >= 13
    assert all(calls[0] == calls[1] == calls[2] for calls in answers if "answer_part" in calls[0])


def parts_of_those_with_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the shortcut: a shard that holds nobody is not asked."""
    real = DividedShards._all

    def leaky(self: DividedShards, lane: Lane, call: str, *arguments: object, **named: object) -> list[Any]:
        if call != "answer_part":
            return real(self, lane, call, *arguments, **named)
        return self._some(peopled(self), lane, call, lambda _: (arguments, named))

    monkeypatch.setattr(DividedShards, "_all", leaky)


def peopled(shards: DividedShards) -> list[int]:
    """The shards that hold anybody."""
    channels = [(number, each) for number, each in shards._channels.items() if isinstance(each, MemoryShardChannel)]
    return [n for n, each in channels if each.shard is not None and each.shard.memory.people.present.any()]


def test_a_shard_that_is_not_asked_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded leak: the answers are right, and the calls differ."""
    parts_of_those_with_people(monkeypatch)
    ours, theirs = lived_divided(ONE, "present"), lived_divided(ONE, "absent")
    assert public_parts(ours.exchanges) == public_parts(theirs.exchanges)
    assert ours.calls != theirs.calls


# A lost shard


async def refused(replica: Replica, backend: MemoryShards) -> list[ReplicaExchange]:
    """The refusals of an analyst as each shard dies in turn, before it has worked and after; each is answered later."""
    key = replica.principals.create(role="analyst", name="ana", dataset="survey")[1]
    headers = {"Authorization": f"Bearer {key}", "X-Request-Id": "r", **JSON}
    app = created_app(replica, HttpOptions())
    transport, seen = httpx.ASGITransport(app, raise_app_exceptions=False), []
    async with httpx.AsyncClient(transport=transport, base_url="http://sparing", headers=headers) as client:
        for number, is_done in [(number, is_done) for number in range(SHARDS) for is_done in (False, True)]:
            named = {"Idempotency-Key": f"{number} {is_done}"}
            backend.channels[number].dies_at = "answer_part", is_done
            where, body = "/v1/datasets/survey/queries", orjson.dumps(QUERY)
            response = await client.post(where, content=body, headers=named)
            seen.append((response.status_code, sorted(response.headers.items()), response.content))
            for _ in range(ATTEMPTS):
                if (response := await client.post(where, content=body, headers=named)).status_code == 200:
                    break
                await settled()
            assert response.status_code == 200
    return seen


def lost(kind: str) -> list[ReplicaExchange]:
    """The refusals in a world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.writer.shards.divided.RESTARTS_APART_S", 0.0)
        patch.setattr("service.writer.threads.RECOVERY_S", 0.0)
        with divided_dataset(ONE, KINDS[kind]) as (replica, backend, _):
            return asyncio.run(refused(replica, backend))


def test_a_lost_shard_shows_nothing_of_its_people() -> None:
    """One refusal, byte for byte, for each shard that dies, before or after its work, with any person on it."""
    seen = [exchange for kind in LOST for exchange in lost(kind)]
    assert len(seen) == len(LOST) * SHARDS * 2
    assert {status for status, _, _ in seen} == {503}
    assert any(name == "retry-after" for name, _ in seen[0][1])
    assert seen == seen[:1] * len(seen)


def refusal_by_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the number of shards with people that are left, as the seconds to wait."""
    real = DividedShards.answer

    def leaky(self: DividedShards, turns: list[Turn]) -> list[ShardRelease]:
        try:
            return real(self, turns)
        except ShardLost:
            raise Busy(len(peopled(self))) from None

    monkeypatch.setattr(DividedShards, "answer", leaky)


def test_a_refusal_that_depends_on_people_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded leak: the refusals of two worlds differ."""
    refusal_by_people(monkeypatch)
    assert lost("present") != lost("absent")
