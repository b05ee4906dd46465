"""What a line tells the operator: batches, commits and doubts, and nothing of anybody's."""

import inspect
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.workflows.ports.telemetry import NULL_TELEMETRY, Commit, NullTelemetry, Telemetry
from service.workflows.writer.threads import WriterThread
from tests.factories import SeededEntropy, analyst, ask, open_replica, register, upload
from tests.workflows.writer.test_queue import FaultyStore


class Tally(NullTelemetry):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.told = Counter[str]()

    def batched(self, requests: int) -> None:
        self.told[f"batch of {requests}"] += 1

    def committed(self, kind: Commit) -> None:
        self.told[kind] += 1

    def commit_unclear(self) -> None:
        self.told["unclear"] += 1

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        self.told["checkpointing"] += 1
        yield


def test_batches_commits_and_doubts_are_told() -> None:
    """A question, a replay, an act, a commit without a reply, a checkpoint."""
    store, tally = FaultyStore(), Tally()
    with open_replica(store, SeededEntropy(), telemetry=tally) as replica:
        register(replica)
        upload(replica, "people", [("ann", "NO", 44, 10)])
        who = analyst(replica)
        assert tally.told == {"act": 1}
        ask(replica, who, "a")
        ask(replica, who, "a")
        assert tally.told == {"act": 1, "questions": 1, "batch of 1": 2}
        store.faults = ["lost-reply"]
        ask(replica, who, "b", reuse=False)
        assert tally.told["unclear"] == 1
        store.faults = ["lost-reply"]
        with pytest.raises(Exception, match="retry"):
            replica.curators.open_epoch("survey")
        assert tally.told["unclear"] == 2
        ask(replica, who, "a")  # reads again what was in doubt
    assert tally.told["checkpoint"] == tally.told["checkpointing"] == 1


def test_questions_that_wait_together_are_told_as_one_batch() -> None:
    """By their number."""
    tally, gate = Tally(), threading.Event()
    with open_replica(None, None, telemetry=tally) as replica:
        register(replica)
        who = analyst(replica)
        writer: WriterThread = replica.registry.writer(replica.registry.record("survey"))
        holder = writer.submit_look(lambda _: gate.wait(30))
        while writer.length:
            pass
        threads = [threading.Thread(target=ask, args=[replica, who, f"k{n}"]) for n in range(3)]
        for thread in threads:
            thread.start()
        while writer.length < 3:
            pass
        gate.set()
        for thread in threads:
            thread.join()
        assert holder.result(timeout=30)
    assert tally.told["batch of 3"] == 1


def test_nothing_that_a_record_could_shape_can_be_told() -> None:
    """The port takes counts of public things and words of ours; an adapter cannot show what it was never told."""
    allowed = {"route", "status", "requests", "kind"}
    methods = [method for name, method in inspect.getmembers(Telemetry, inspect.isfunction) if name[0] != "_"]
    assert {name for method in methods for name in inspect.signature(method).parameters} - {"self"} == allowed


def test_silence_takes_everything() -> None:
    """The default: every method of the port, to no effect."""
    NULL_TELEMETRY.request_began()
    NULL_TELEMETRY.request_ended("GET /livez", 200)
    NULL_TELEMETRY.slot_overrun()
    NULL_TELEMETRY.batched(1)
    NULL_TELEMETRY.committed("questions")
    NULL_TELEMETRY.commit_unclear()
    with NULL_TELEMETRY.checkpointing():
        pass
