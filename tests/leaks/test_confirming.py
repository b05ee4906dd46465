"""An analyst's read does the same to store and witness after every act of one person elsewhere.

An act is witnessed before its caller is told; if an analyst's next request were to witness it, it would wait for a
disk because of a pause. The acts here happen on another replica, which is where they show first.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.rows import Asked, WitnessRecord
from service.ledger.model.views import Principal
from service.query.parse import parse_query
from service.workflows.replica import Replica
from tests.factories import SeededEntropy, analyst, ask, open_replica, register, upload
from tests.leaks.worlds import Act, erase, lower_to, nothing, pause, resume
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.waiting import PATIENCE_S

ROWS = [("ann", "NO", 44, 10), ("bob", "SE", 30, 20.5), ("p1", "NO", 71, 0)]
QUERY = parse_query(b'{"version":1,"select":[{"count":{}}],"noise":{"sigma":3.0}}')
STRANGE = parse_query(
    b'{"version":1,"select":[{"count":{}}],"where":{"eq":[{"col":"nothing"},1]},"noise":{"sigma":3.0}}'
)


def join(replica: Replica, _key: str) -> None:
    """A person joins."""
    upload(replica, "people", [("joe", "SE", 20, 1)])


def pause_and_resume(replica: Replica, key: str) -> None:
    """A person has paused for a while."""
    pause(replica, key)
    resume(replica, key)


ACTS: dict[str, Act] = {
    "paused": pause,
    "resumed": pause_and_resume,
    "lowered": lower_to("0.06"),
    "erased": erase,
    "joined": join,
}


class NotedTransaction(MemoryTransaction):
    """Notes what is read in it."""

    round_trips: list[str]

    def __getattribute__(self, name: str) -> Any:
        if name in ("known", "hashes", "burns", "individuals", "records", "entries", "pages"):
            self.round_trips.append(name)
        return super().__getattribute__(name)


class NotedStore(MemoryStore):
    """Notes every round trip."""

    def __init__(self) -> None:
        super().__init__()
        self.round_trips: list[str] = []

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.round_trips.append(f"transaction {lock} {len(asked)}")
        with super().transaction(dataset_id, lock=lock, asked=asked):
            noted = NotedTransaction(self, dataset_id, lock=lock, asked=asked)
            noted.round_trips = self.round_trips
            yield noted

    def head(self, dataset_id: int) -> Any:
        self.round_trips.append("head")
        return super().head(dataset_id)


class NotedWitness(MemoryWitness):
    """Notes every reading and writing."""

    def __init__(self, round_trips: list[str]) -> None:
        super().__init__()
        self.round_trips = round_trips

    def history(self, dataset: str) -> list[WitnessRecord]:
        self.round_trips.append("history")
        return super().history(dataset)

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        self.round_trips.append("write")
        return super().write(dataset, record)


def release(replica: Replica, who: Principal, answer: StoredAnswer) -> None:
    """One of the analyst's own answers, by its id."""
    assert replica.analysts.release(who, answer.query_id).body == answer.body


def preview(replica: Replica, who: Principal, _answer: StoredAnswer) -> None:
    """The preview of a query."""
    replica.analysts.preview(who, "survey", QUERY)


def listing(replica: Replica, who: Principal, answer: StoredAnswer) -> None:
    """The analyst's own answers."""
    assert replica.analysts.releases(who, cursor=None, limit=10).items[0].id == answer.query_id


def refused(replica: Replica, who: Principal, _answer: StoredAnswer) -> None:
    """A query that is refused, under a key that has an answer to another."""
    with suppress(InvalidRequest):
        replica.analysts.submit(who, "survey", "k", STRANGE).result(timeout=PATIENCE_S)


CALLS: dict[str, Callable[[Replica, Principal, StoredAnswer], None]] = {
    "release": release,
    "preview": preview,
    "listing": listing,
    "refused": refused,
}


def read_after(act: Act) -> dict[str, list[str]]:
    """The round trips of each call, after an act on the other replica."""
    store = NotedStore()
    witness = NotedWitness(store.round_trips)
    with open_replica(store, witness=witness) as here, open_replica(store, witness=witness) as there:
        register(here)
        upload(here, "people", ROWS)
        who = analyst(here)
        answer = ask(here, who, "k")
        act(there, "p1")
        found = {}
        for what, call in CALLS.items():
            store.round_trips.clear()
            call(here, who, answer)
            found[what] = list(store.round_trips)
    return found


@pytest.mark.parametrize("act", ACTS)
def test_every_read_of_an_analyst_is_confirmed_alike(act: str) -> None:
    """The transactions and the reads in them are the same, and nothing is written to the witness."""
    ours, theirs = read_after(nothing), read_after(ACTS[act])
    assert theirs == ours
    assert "transaction False 0" in ours["release"]
    assert "transaction False 1" in ours["refused"]
    assert not any("write" in round_trips or "history" in round_trips for round_trips in ours.values())


def test_the_comparison_sees_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded leak: a replica that witnessed how far the dataset has come by now would not be the same."""

    def confirm_recorded_up_to(self: Any, _seq: int, head: Any) -> None:
        self.confirm_recorded(head)

    monkeypatch.setattr("service.writer.rollback.guard.RollbackGuard.confirm_recorded_up_to", confirm_recorded_up_to)
    ours, theirs = read_after(nothing), read_after(pause)
    assert {what for what in ours if ours[what] != theirs[what]} == {"release"}
    assert "write" in theirs["release"]


def test_an_answer_that_was_withheld_is_witnessed_first() -> None:
    """By its own sequence: whatever was told before does not cover it."""
    store = NotedStore()
    witness = NotedWitness(store.round_trips)
    with open_replica(store, witness=witness) as here, open_replica(store, SeededEntropy(6), MemoryWitness()) as apart:
        register(here)
        who = analyst(here)
        ask(here, who, "k")
        witnessed = {name: list(records) for name, records in witness.kept.items()}
        apart.registry.witness.kept = {name: list(records) for name, records in witnessed.items()}  # type: ignore[attr-defined]
        elsewhere = ask(apart, who, "l", reuse=False)
        store.round_trips.clear()
        assert here.analysts.release(who, elsewhere.query_id).sequence == 2
        assert store.round_trips.count("write") == 1
        store.round_trips.clear()
        here.analysts.release(who, elsewhere.query_id)
        assert "write" not in store.round_trips
