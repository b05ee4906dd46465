"""The witness port as a file, in memory, in Redis and combined: all pass the same tests."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.rows import WitnessRecord
from service.ledger.ports.witness import Witness
from service.store.witness.combined import CombinedWitness
from service.store.witness.file import FileWitness
from service.store.witness.redis import RedisWitness
from tests.memory.cache import MemoryWitness

DATASET = "survey-" + "0f" * 32
FIRST = WitnessRecord(fence=1, seq=1, acts=2, slots=3, worst_case_total_units=2**40, hash=bytes(31) + b"a")
PEPPER = Pepper(bytes(32))
REMEMBERS_ALL = ["memory", "file", "several"]


@pytest.fixture(params=[*REMEMBERS_ALL, "redis"])
def witness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Witness]:
    """Each adapter in turn."""
    made: dict[str, Callable[[], Witness]] = {
        "memory": MemoryWitness,
        "file": lambda: FileWitness(tmp_path / "witness"),
        "several": lambda: CombinedWitness(FileWitness(tmp_path / "witness"), [MemoryWitness()]),
    }
    if request.param != "redis":
        yield made[request.param]()
        return
    redis = RedisWitness(request.getfixturevalue("redis_url"), PEPPER.witness_key())
    yield redis
    redis.close()


def at(fence: int, seq: int, acts: int = 2) -> WitnessRecord:
    """A record at a fence, sequence and number of acts."""
    return replace(FIRST, fence=fence, seq=seq, acts=acts, hash=bytes(30) + bytes([fence, seq]))


def test_a_new_witness_is_empty_and_a_written_record_reads_back(witness: Witness) -> None:
    """An unknown dataset has an empty history; a record reads back whole."""
    assert witness.history(DATASET) == []
    assert witness.write(DATASET, FIRST) is None
    assert witness.history(DATASET) == [FIRST]


def test_a_witness_in_its_place_passes_its_check(witness: Witness) -> None:
    """Before anything is kept, and after."""
    witness.check()
    witness.write(DATASET, at(1, 1))
    witness.check()


def test_a_witness_moves_only_forward(witness: Witness) -> None:
    """Records are ordered by (fence, sequence, acts); a late write returns the farthest record."""
    order = [at(1, 1), at(1, 1, acts=3), at(1, 2), at(1, 9), at(2, 3), at(2, 4)]
    for before, record in zip([None, *order], order, strict=False):
        assert witness.write(DATASET, record) == before
    for late in (at(1, 100), at(2, 3, acts=9), at(2, 4)):
        assert witness.write(DATASET, late) == order[-1]
    assert witness.history(DATASET)[-1] == order[-1]


def test_another_hash_at_the_same_position_is_refused(witness: Witness) -> None:
    """The first record stays and is returned to the second writer, which shows two histories."""
    witness.write(DATASET, FIRST)
    assert witness.write(DATASET, replace(FIRST, hash=bytes(32))) == FIRST
    assert witness.history(DATASET) == [FIRST]


def test_datasets_have_separate_records(witness: Witness) -> None:
    """Datasets of the same name with different registrations do not share records either."""
    other = "survey-" + "1e" * 32
    witness.write(DATASET, at(1, 5))
    assert witness.history(other) == []
    witness.write(other, FIRST)
    assert (witness.history(DATASET), witness.history(other)) == ([at(1, 5)], [FIRST])


def test_numbers_of_any_size_in_use_read_back(witness: Witness) -> None:
    """The largest sums are saturated at 2^62."""
    large = WitnessRecord(
        fence=2**40, seq=2**53, acts=2**53, slots=2**31, worst_case_total_units=2**62, hash=bytes(range(32))
    )
    witness.write(DATASET, FIRST)
    witness.write(DATASET, large)
    assert witness.history(DATASET)[-1] == large


def test_many_writers_lose_nothing(witness: Witness) -> None:
    """Eight threads, each with its own records: the farthest record wins, not the last one written."""

    def write(first: int) -> None:
        for seq in range(first, 161, 8):
            witness.write(DATASET, at(1, seq))

    threads = [Thread(target=write, args=[first]) for first in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert witness.history(DATASET)[-1] == at(1, 160)


@pytest.mark.parametrize("witness", REMEMBERS_ALL, indirect=True)
def test_a_history_is_in_order(witness: Witness) -> None:
    """All accepted records, by position."""
    order = [at(1, 2), at(1, 5), at(2, 6), at(2, 7)]
    for record in order:
        witness.write(DATASET, record)
    assert witness.history(DATASET) == order
