"""The telemetry of a writer: batches, commits and invalidations, and nothing about individuals."""

import inspect
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.ledger.ports.telemetry import NULL_TELEMETRY, Commit, Telemetry
from service.workflows.replica import ReplicaOptions
from tests.factories import TWO_PEOPLE, analyst, ask
from tests.waiting import until
from tests.workflows.stores import FaultyStore
from tests.workflows.surveys import held, surveyed, writer_of


class Tally(Telemetry):
    """Telemetry that counts its calls."""

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


def test_batches_commits_and_invalidations_are_reported() -> None:
    """A query, a replay, an act, a commit without an answer, a checkpoint."""
    store, tally = FaultyStore(), Tally()
    with surveyed(store, TWO_PEOPLE[:1], options=ReplicaOptions(telemetry=tally)) as replica:
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
        ask(replica, who, "a")  # reads the invalidated state again
    assert tally.told["checkpoint"] == tally.told["checkpointing"] == 1


def test_queries_that_wait_together_are_reported_as_one_batch() -> None:
    """The batch is reported with its size."""
    tally = Tally()
    with surveyed(options=ReplicaOptions(telemetry=tally)) as replica:
        who, writer = analyst(replica), writer_of(replica)
        threads = [threading.Thread(target=ask, args=[replica, who, f"k{n}"]) for n in range(3)]
        with held(writer):
            for thread in threads:
                thread.start()
            until(lambda: writer.length == 3)
        for thread in threads:
            thread.join()
    assert tally.told["batch of 3"] == 1


def test_the_port_takes_nothing_that_depends_on_a_record() -> None:
    """The port takes counts of public things and fixed words, so an adapter cannot show data of records."""
    allowed = {"route", "status", "requests", "kind", "headers"}
    methods = [method for name, method in inspect.getmembers(Telemetry, inspect.isfunction) if name[0] != "_"]
    assert {name for method in methods for name in inspect.signature(method).parameters} - {"self"} == allowed


def test_the_default_telemetry_accepts_every_call() -> None:
    """The default telemetry accepts every call of the port and does nothing."""
    NULL_TELEMETRY.request_began()
    NULL_TELEMETRY.request_ended("GET /livez", 200)
    NULL_TELEMETRY.connection_closed("slow")
    NULL_TELEMETRY.slot_overrun()
    NULL_TELEMETRY.batched(1)
    NULL_TELEMETRY.committed("questions")
    NULL_TELEMETRY.commit_unclear()
    with NULL_TELEMETRY.checkpointing():
        pass
