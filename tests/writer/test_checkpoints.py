"""Checkpoints in the background: no answer waits for them, and a lost one costs time only."""

import logging
import threading
from collections.abc import Iterator

import pytest

from service.arrays import Codes
from service.engine.inverted import Inverted
from service.ledger.model.rows import Checkpoint
from service.ledger.ports.store import StoreUnavailable
from service.ledger.ports.telemetry import NULL_TELEMETRY
from service.maintenance.verify.report import verify_all
from service.query.columns import Coding
from service.writer.checkpoints import Checkpointer
from service.writer.queue import WriterQueue
from tests.factories import TWO_PEOPLE, analyst, ask, open_replica, register
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.workflows.surveys import surveyed, writer_of


class SlowDisk(MemoryStore):
    """A store whose page writes wait for the test; `faults` are raised instead, and `pages` counts."""

    def __init__(self) -> None:
        super().__init__()
        self.through, self.reached = threading.Event(), threading.Event()
        self.faults: list[Exception] = []
        self.pages = 0
        self.through.set()

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        self.reached.set()
        if not self.through.wait(30):
            raise TimeoutError
        if self.faults:
            raise self.faults.pop()
        self.pages += 1
        super().write_page(dataset_id, checkpoint, page)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    """A store that checkpoints after every entry; at the end the ledger and its pages must agree, put back or not."""
    monkeypatch.setattr(WriterQueue, "checkpoint_every", 1)
    made = SlowDisk()
    yield made
    assert [report.findings for report in verify_all(made)] == [[]]  # without the witness


def test_indexes_that_queries_ask_for_are_made_beside_them(store: SlowDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the thread of the checkpoints, before it ends; the writer makes none."""
    makers: list[str] = []
    real = Inverted.of

    def of(codes: Codes, coding: Coding) -> Inverted:
        makers.append(threading.current_thread().name.partition("-")[0])
        return real(codes, coding)

    with surveyed(store, TWO_PEOPLE) as replica:
        monkeypatch.setattr(Inverted, "of", of)
        ask(replica, analyst(replica), "by-age", where={"ge": [{"col": "age"}, 40]})
        memory = only_shard(writer_of(replica).committer.state).memory
    assert memory.take_prepared()
    assert makers == ["pages"]


def test_no_query_waits_for_a_page(store: SlowDisk) -> None:
    """Queries are answered while a page is written; the last checkpoint includes them."""
    with surveyed(store, TWO_PEOPLE) as replica:
        who = analyst(replica)
        store.through.clear()
        ask(replica, who, "k0")
        assert store.reached.wait(30)
        for n in range(1, 5):
            assert ask(replica, who, f"k{n}", reuse=False).sequence == n + 1
        assert store.head(1).checkpoint_seq == 0
        store.through.set()
    assert store.head(1).checkpoint_seq == 5
    assert store.pages == 2  # entries made while the first was being written share the last


def test_a_lost_checkpoint_is_made_up_for_by_the_next(store: SlowDisk, caplog: pytest.LogCaptureFixture) -> None:
    """An error is an incident that shows nothing about an individual; the thread and the writer go on."""
    with surveyed(store, TWO_PEOPLE) as replica:
        who = analyst(replica)
        store.faults = [StoreUnavailable("gone")]
        with caplog.at_level(logging.ERROR):
            ask(replica, who, "k0")
            assert store.reached.wait(30)
            ask(replica, who, "k1", reuse=False)
            replica.close()
    assert "checkpoint of dataset 1" in caplog.text
    assert store.head(1).checkpoint_seq == 2


def test_a_closed_dataset_writes_no_checkpoint(store: SlowDisk) -> None:
    """The copied pages may belong to another history than the database's."""
    with surveyed(store, TWO_PEOPLE) as replica:
        who = analyst(replica)
        before = store.kept[1]
        store.through.clear()
        ask(replica, who, "k0")
        assert store.reached.wait(30)
        store.kept[1] = before
        assert replica.readiness.check_witnesses() == ["ledger-rollback"]
        store.through.set()
    assert (store.head(1).checkpoint_seq, store.kept[1].pages) == (0, {})


def test_checkpoints_that_cannot_be_written_are_dropped() -> None:
    """Two checkpoints may wait; a third is worth less than the memory it takes."""
    with open_replica(MemoryStore()) as replica:
        register(replica)
        record = replica.registry.record("survey")
        checkpointer = Checkpointer(record=record, guard=replica.registry.guard(record), telemetry=NULL_TELEMETRY)
        assert checkpointer.is_idle
        for seq in (1, 2, 3):
            checkpointer.take(Checkpoint(since=0, seq=seq, hash=bytes(32), pages={}))
        checkpointer.end()
        assert not checkpointer._queue.empty()
        assert [checkpointer.step() for _ in range(3)] == [True, True, False]
        assert checkpointer.is_idle
        assert checkpointer._queue.empty()
