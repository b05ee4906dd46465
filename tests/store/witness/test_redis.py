"""Redis as a witness: whatever it does, it can only help."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from service.store.witness.redis import RedisWitness
from service.workflows.ports import WitnessUnavailable
from service.workflows.records import WitnessRecord
from service.workflows.secrets import Pepper
from tests.faults.meddling import OwnValkey

pytestmark = pytest.mark.slow

DATASET = "survey-" + "0f" * 32
KEY = f"sparing:witness:{DATASET}"
FIRST = WitnessRecord(fence=1, seq=1, acts=2, slots=3, worst_case_total_units=5, hash=bytes(32))
SECOND = replace(FIRST, seq=2)


@pytest.fixture
def witness(redis_url: str) -> Iterator[RedisWitness]:
    """A witness in an empty Redis."""
    opened = RedisWitness(redis_url, Pepper(bytes(32)).witness_seal)
    yield opened
    opened.close()


@pytest.fixture
def server(redis_url: str) -> Iterator["redis.Redis"]:
    """Anybody else on the same Redis."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


def test_flushed_it_knows_nothing(witness: RedisWitness, server: "redis.Redis") -> None:
    """Nothing, which is not zero; and it learns again."""
    witness.write(DATASET, SECOND)
    server.flushall()
    assert witness.history(DATASET) == []
    assert witness.write(DATASET, FIRST) is None
    assert witness.history(DATASET) == [FIRST]


@pytest.mark.parametrize("value", [b"", b"9" * 60, b"9" * 220, b"\xff" * 220, b"x" * 100_000])
def test_what_was_not_sealed_is_unknown(witness: RedisWitness, server: "redis.Redis", value: bytes) -> None:
    """A forged record neither closes a dataset nor opens one."""
    server.set(KEY, value)
    assert witness.history(DATASET) == []
    assert witness.write(DATASET, FIRST) is None


def test_a_record_of_another_dataset_or_another_pepper_is_unknown(
    witness: RedisWitness, server: "redis.Redis", redis_url: str
) -> None:
    """A seal binds the record to its dataset."""
    witness.write(DATASET, SECOND)
    other = "survey-" + "1e" * 32
    server.copy(KEY, f"sparing:witness:{other}")
    assert witness.history(other) == []
    stranger = RedisWitness(redis_url, Pepper(b"x" * 32).witness_seal)
    assert stranger.history(DATASET) == []
    stranger.close()


def test_a_key_of_another_kind_and_a_server_that_is_away_are_told(witness: RedisWitness, server: "redis.Redis") -> None:
    """The caller goes on without it."""
    server.rpush(KEY, "x")
    for refused in (lambda: witness.history(DATASET), lambda: witness.write(DATASET, FIRST)):
        with pytest.raises(WitnessUnavailable, match="ResponseError"):
            refused()
    nobody = RedisWitness("unix:///nowhere/redis.sock", Pepper(bytes(32)).witness_seal)
    with pytest.raises(WitnessUnavailable, match="ConnectionError"):
        nobody.history(DATASET)


def test_a_server_that_sends_byte_by_byte_is_not_waited_for(tmp_path: Path) -> None:
    """Answers wait for this witness: its time-out is for the whole reply."""
    server = OwnValkey(tmp_path)
    server.start()
    witness = RedisWitness(server.url, Pepper(bytes(32)).witness_seal)
    witness.write(DATASET, FIRST)
    server.drip()
    with pytest.raises(WitnessUnavailable):
        witness.history(DATASET)
    witness.close()
    server.close()


def test_a_reply_that_comes_too_late_is_nobody_elses(witness: RedisWitness, server: "redis.Redis") -> None:
    """The connection on which it may still come is given up."""
    other = "survey-" + "1e" * 32
    witness.write(DATASET, FIRST)
    server.client_pause(600)
    with pytest.raises(WitnessUnavailable, match="TimeoutError"):
        witness.write(DATASET, SECOND)
    server.client_unpause()
    assert witness.write(other, FIRST) is None
    assert witness.write(DATASET, SECOND) in (FIRST, SECOND)


def test_two_writes_under_way_at_once_get_the_reply_that_is_theirs(witness: RedisWitness) -> None:
    """Finished in any order, by any thread."""
    other = "survey-" + "1e" * 32
    witness.write(DATASET, FIRST)
    begun = [witness.begin(DATASET, SECOND), witness.begin(other, FIRST)]
    assert [finish() for finish in reversed(begun)] == [None, FIRST]


def test_a_server_that_was_started_anew_is_told_at_once(witness: RedisWitness, server: "redis.Redis") -> None:
    """It has ended the connection and forgotten the script; the record is written all the same."""
    witness.write(DATASET, FIRST)
    server.script_flush()
    server.client_kill_filter(_type="normal", skipme=True)
    assert witness.write(DATASET, SECOND) == FIRST
    assert witness.history(DATASET) == [SECOND]
