"""Closing a replica: its writers finish waiting requests concurrently, accept no new ones, and settle every promise."""

import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from service.ledger.model.errors import Unavailable
from service.query.parse import parse_query
from service.workflows.replica import Replica
from service.writer.submission import QueryRequest, Submission
from tests.factories import analyst, ask, open_replica, register, upload
from tests.gated_store import GatedStore
from tests.waiting import PATIENCE_S, until

QUERY = parse_query(orjson.dumps({"version": 1, "select": [{"count": {}}], "noise": {"sigma": 30}, "reuse": False}))


@pytest.fixture
def store() -> GatedStore:
    """A store whose locked transactions are not held."""
    return GatedStore()


@pytest.fixture
def replica(store: GatedStore) -> Iterator[Replica]:
    """A replica with two datasets of three individuals."""
    with open_replica(store) as opened:
        for name in ("one", "two"):
            register(opened, name)
            upload(opened, "people", [("ann", "NO", 44, 1), ("bob", "SE", 30, 2), ("eve", "NO", 71, 0)], name)
        yield opened


def closing(replica: Replica) -> threading.Thread:
    """A thread that closes the replica, returned once the replica accepts no requests."""
    thread = threading.Thread(target=replica.close)
    thread.start()
    until(lambda: not replica.registry.are_open)
    return thread


def test_all_writers_finish_waiting_requests_concurrently(replica: Replica, store: GatedStore) -> None:
    """Both writers wait for the held store at the same time, and both answer."""
    who = analyst(replica)
    store.gate.clear()
    promises = [replica.analysts.submit(who, name, f"{name}{n}", QUERY) for name in ("one", "two") for n in range(3)]
    for _ in range(2):
        store.wait_until_reached()
    thread = closing(replica)
    store.gate.set()
    thread.join()
    assert len({promise.result(timeout=PATIENCE_S).query_id for promise in promises}) == 6
    for dataset in (1, 2):
        head = store.head(dataset)
        assert head.checkpoint_seq == head.seq == 3


def test_requests_after_the_close_are_refused(replica: Replica, store: GatedStore) -> None:
    """Unavailable at once, for queries, acts and reads, by open writers and by new ones."""
    who = analyst(replica)
    writer = replica.registry.writer(replica.registry.record("one"))
    thread = closing(replica)
    thread.join()
    with pytest.raises(Unavailable):
        replica.analysts.submit(who, "one", "late", QUERY)
    with pytest.raises(Unavailable):
        replica.overview.summary("two")
    with pytest.raises(Unavailable):
        replica.curators.open_epoch("two")
    with pytest.raises(Unavailable):
        writer.catch_up()
    assert store.head(1).seq == 0


def test_a_query_submitted_after_the_close_is_settled(replica: Replica) -> None:
    """Its writer was found before the replica closed: the promise fails, so that the request gets a response."""
    who = analyst(replica)
    ask(replica, who, "k", "one")
    writer = replica.registry.writer(replica.registry.record("one"))
    kept: list[Submission] = []
    real = writer.submit

    def keep(submission: Submission) -> None:
        (sent,) = submission.requests
        facts: dict[str, Any] = {"analyst": sent.analyst, "key": sent.key, "request_hash": sent.request_hash}
        again = QueryRequest(**facts, plan=sent.plan, accepted_at=sent.accepted_at, version=sent.version)
        kept.append(Submission([again], submission.cost, writer))
        real(submission)

    writer.submit = keep  # type: ignore[method-assign]
    replica.analysts.submit(who, "one", "l", QUERY).result(timeout=PATIENCE_S)
    replica.close()
    (late,) = kept
    real(late)
    assert [type(answer.exception(timeout=PATIENCE_S)) for answer in late.requests] == [Unavailable]


def test_closing_twice_is_allowed(replica: Replica) -> None:
    """The second call returns at once."""
    replica.close()
    replica.close()
    with pytest.raises(Unavailable):
        replica.curators.open_epoch("one")


def test_closing_does_not_wait_for_a_stuck_writer(
    replica: Replica, store: GatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing has a time limit; uncommitted answers were released to no client."""
    monkeypatch.setattr("service.writer.registry.CLOSING_S", 0.05)
    who = analyst(replica)
    store.gate.clear()
    promise = replica.analysts.submit(who, "one", "k", QUERY)
    store.wait_until_reached()
    replica.close()
    assert not promise.done()
    store.gate.set()
    assert promise.result(timeout=PATIENCE_S).sequence == 1


def test_the_queue_can_be_measured(replica: Replica, store: GatedStore) -> None:
    """The waiting requests of all writers are counted, without requests being answered."""
    who = analyst(replica)
    store.gate.clear()
    promises = [replica.analysts.submit(who, "one", "k0", QUERY)]
    store.wait_until_reached()
    promises += [replica.analysts.submit(who, "one", f"k{n}", QUERY) for n in (1, 2, 3)]
    assert replica.waiting() == 3
    store.gate.set()
    for promise in promises:
        promise.result(timeout=PATIENCE_S)
    assert replica.waiting() == 0
