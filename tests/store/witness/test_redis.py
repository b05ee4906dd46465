"""Redis as a witness: whatever it does, it can only help."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import WitnessUnavailable
from service.store.witness import redis as module
from service.store.witness.redis import RedisWitness
from tests.faults.meddling import OwnValkey

DATASET = "survey-" + "0f" * 32
OTHER = "survey-" + "1e" * 32
PEPPER = Pepper(bytes(32))
FIRST = WitnessRecord(fence=1, seq=1, acts=2, slots=3, worst_case_total_units=5, hash=bytes(32))
SECOND = replace(FIRST, seq=2)
THIRD = replace(FIRST, seq=3)


def opened(url: str, pepper: Pepper = PEPPER) -> RedisWitness:
    """One process's witness there."""
    return RedisWitness(url, pepper.witness_key())


def sealed_name(server: "redis.Redis") -> bytes:
    """The name of the one sealed record."""
    (name,) = server.keys("*")
    assert isinstance(name, bytes)
    return name


def put_over(server: "redis.Redis", name: Any, other: Any) -> None:
    """A record in another's place."""
    held = server.get(name)
    assert isinstance(held, bytes)
    server.set(other, held)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for a reply of a slow machine; a test that waits for it to pass gives less."""
    monkeypatch.setattr(module, "_TIMEOUT_S", 30.0)


@pytest.fixture
def witness(redis_url: str) -> Iterator[RedisWitness]:
    """A witness in an empty Redis."""
    with closing(opened(redis_url)) as made:
        yield made


@pytest.fixture
def server(redis_url: str) -> Iterator["redis.Redis"]:
    """Another client of the same Redis."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


def test_flushed_it_knows_nothing(witness: RedisWitness, server: "redis.Redis") -> None:
    """Nothing, which is not zero; and it learns again."""
    witness.write(DATASET, SECOND)
    server.flushall()
    assert witness.history(DATASET) == []
    assert witness.write(DATASET, FIRST) is None
    assert witness.history(DATASET) == [FIRST]


@pytest.mark.parametrize("value", [b"", b"9" * 60, b"9" * 220, b"\xff" * 560, b"x" * 100_000])
def test_what_was_not_sealed_is_unknown(witness: RedisWitness, server: "redis.Redis", value: bytes) -> None:
    """A forged record neither closes a dataset nor opens one, and is gone with the next that is written."""
    witness.write(DATASET, FIRST)
    server.set(sealed_name(server), value)
    assert witness.history(DATASET) == []
    assert witness.write(DATASET, SECOND) is None
    assert witness.history(DATASET) == [SECOND]


def test_a_record_of_another_dataset_or_another_pepper_is_unknown(
    witness: RedisWitness, server: "redis.Redis", redis_url: str
) -> None:
    """A seal binds the record to its dataset."""
    witness.write(DATASET, SECOND)
    ours = sealed_name(server)
    witness.write(OTHER, FIRST)
    (theirs,) = (name for name in server.keys("*") if name != ours)
    put_over(server, ours, theirs)
    assert witness.history(OTHER) == []
    with closing(opened(redis_url, Pepper(b"x" * 32))) as stranger:
        assert stranger.history(DATASET) == []
        stranger.write(DATASET, FIRST)
        for name in {*server.keys("*")} - {ours, theirs}:
            put_over(server, ours, name)
        assert stranger.history(DATASET) == []


def test_a_key_of_another_kind_and_a_server_that_is_away_are_told(witness: RedisWitness, server: "redis.Redis") -> None:
    """The caller goes on without it."""
    witness.write(DATASET, FIRST)
    name = sealed_name(server)
    server.delete(name)
    server.rpush(name, "x")
    for refused in (lambda: witness.history(DATASET), lambda: witness.write(DATASET, SECOND)):
        with pytest.raises(WitnessUnavailable, match="ResponseError"):
            refused()
    nobody = opened("unix:///nowhere/redis.sock")
    with pytest.raises(WitnessUnavailable, match="ConnectionError"):
        nobody.history(DATASET)


def test_a_server_that_sends_byte_by_byte_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers wait for this witness: its time-out is for the whole reply."""
    server = OwnValkey(tmp_path)
    server.start()
    with closing(opened(server.url)) as patient:
        patient.write(DATASET, FIRST)
        server.drip()
        monkeypatch.setattr(module, "_TIMEOUT_S", 0.25)
        with closing(opened(server.url)) as witness, pytest.raises(WitnessUnavailable):
            witness.history(DATASET)
    server.close()


def test_a_late_reply_is_taken_for_no_other(
    redis_url: str, server: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection on which it may still come is given up."""
    monkeypatch.setattr(module, "_TIMEOUT_S", 1.0)
    with closing(opened(redis_url)) as witness:
        witness.write(DATASET, FIRST)
        server.client_pause(60_000, all=False)  # what writes waits, and the end of the pause does not
        with pytest.raises(WitnessUnavailable, match="TimeoutError"):
            witness.write(DATASET, SECOND)
        server.client_unpause()
        assert witness.write(OTHER, FIRST) is None
        assert witness.write(DATASET, SECOND) in (FIRST, SECOND)


def test_two_writes_under_way_at_once_get_the_reply_that_is_theirs(witness: RedisWitness) -> None:
    """Finished in any order, by any thread."""
    witness.write(DATASET, FIRST)
    begun = [witness.begin(DATASET, SECOND), witness.begin(OTHER, FIRST)]
    assert [finish() for finish in reversed(begun)] == [None, FIRST]


def test_a_server_that_was_started_anew_is_told_at_once(witness: RedisWitness, server: "redis.Redis") -> None:
    """It has ended the connection and forgotten the script; the record is written all the same."""
    witness.write(DATASET, FIRST)
    server.script_flush()
    server.client_kill_filter(_type="normal", skipme=True)
    assert witness.write(DATASET, SECOND) == FIRST
    assert witness.history(DATASET) == [SECOND]


def test_a_writer_that_looked_earlier_does_not_take_another_back(witness: RedisWitness, redis_url: str) -> None:
    """It replaces the record that it remembers and no other: it is told how far the other had come."""
    with closing(opened(redis_url)) as other:
        witness.write(DATASET, FIRST)
        assert other.write(DATASET, THIRD) == FIRST
        assert witness.write(DATASET, SECOND) == THIRD
        assert witness.history(DATASET) == [THIRD]
        assert witness.write(DATASET, replace(FIRST, seq=4)) == THIRD


def test_a_server_that_never_lets_anything_lie_is_given_up(
    witness: RedisWitness, server: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner could otherwise delay every answer: here the record changes before each try."""
    tries = iter(range(1000))
    witness.write(DATASET, FIRST)
    name = sealed_name(server)

    def change(*_arguments: object) -> None:
        server.set(name, b"%d" % next(tries) * 560)

    def send(connection: Any, command: str, script: str, swap: Any) -> None:
        change()
        sends(connection, command, script, swap)

    sends = module._send
    monkeypatch.setattr(module, "_send", send)
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.02)
    with pytest.raises(WitnessUnavailable, match="TimeoutError"):
        witness.write(DATASET, SECOND)
    assert next(tries) > 2
