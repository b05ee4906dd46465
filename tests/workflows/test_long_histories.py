"""A witness of thousands of records is judged in one pass, since a start and its clients wait for it."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FrameType

import pytest

from service.ledger.model.errors import Fenced
from service.ledger.model.rows import WitnessRecord
from service.ledger.model.views import Principal
from service.workflows.replica import Replica
from service.writer.rollback.guard import judge, unaccounted
from tests.factories import ask
from tests.memory.store import MemoryStore

LONG = 1000


@pytest.fixture
def replica(replica: Replica, ana: Principal) -> Replica:
    """A replica whose dataset has three answers."""
    for key in ("a", "b", "c"):
        ask(replica, ana, key, reuse=False)
    return replica


def calls_during(work: Callable[[], object]) -> int:
    """The number of Python calls during `work`, which does not depend on the machine's load."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def history(replica: Replica, store: MemoryStore, length: int) -> list[WitnessRecord]:
    """`length` different witness records of the ledger."""
    record = WitnessRecord.of(store.head(replica.registry.record("survey").id))
    return [replace(record, slots=number) for number in range(length)]


def test_a_history_of_twice_the_length_takes_twice_the_calls(replica: Replica, store: MemoryStore) -> None:
    """Comparing pairs once took a start nine seconds for eight thousand records, the most that a file keeps."""
    dataset = replica.registry.record("survey")
    with store.transaction(dataset.id, lock=False) as transaction:
        short, long = (
            calls_during(partial(judge, dataset, transaction, history(replica, store, length)))
            for length in (LONG, 2 * LONG)
        )
    assert 1.5 * short < long < 2.5 * short


def test_the_one_record_of_another_history_is_found_among_thousands(replica: Replica, store: MemoryStore) -> None:
    """The record is found at any position."""
    dataset = replica.registry.record("survey")
    records = history(replica, store, LONG)
    foreign = replace(records[0], slots=LONG, hash=bytes(32))
    with store.transaction(dataset.id, lock=False) as transaction:
        assert judge(dataset, transaction, records) is None
        for place in (0, LONG // 2, LONG):
            mixed = [*records[:place], foreign, *records[place:]]
            assert isinstance(judge(dataset, transaction, mixed), Fenced)
            assert unaccounted(dataset, transaction, mixed) == [foreign]
