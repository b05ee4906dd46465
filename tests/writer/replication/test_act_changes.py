"""A replica that follows another: it catches up in the background from a verified tail."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest

from service.ledger.model.errors import Unavailable
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Measure, pieces_digest, pieces_of
from service.ledger.model.rows import Asked
from service.ledger.ports.cache import CommitNotice, SharedEntry
from service.ledger.ports.witness import WitnessUnavailable
from tests.factories import ask, witness_of
from tests.memory.shards import only_shard
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.waiting import until
from tests.workflows.replicas import Replicas, replicas, truth
from tests.workflows.surveys import newest


class ReadCountingStore(MemoryStore):
    """A store that counts reads of ledger entries."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = 0

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            entries = transaction.entries

            def counted(*, after: int, limit: int | None = None) -> Iterator[LedgerEntry]:
                self.readings += 1
                return entries(after=after, limit=limit)

            transaction.entries = counted  # type: ignore[method-assign]
            yield transaction


@pytest.fixture
def world() -> Iterator[Replicas]:
    """Two replicas of a counting store."""
    with replicas(ReadCountingStore()) as made:
        yield made


def ask_first(world: Replicas, count: int) -> None:
    """Ask queries at the first replica alone."""
    for n in range(count):
        ask(world.replicas[0], world.analyst, f"k{n}", reuse=False)


def test_memory_follows_without_a_query_and_without_reading_the_ledger(world: Replicas) -> None:
    """The notice wakes the writer, and the tail is already loaded."""
    ask_first(world, 8)
    until(lambda: world.seq(1) == 8)
    assert world.spent(1) == world.spent(0) == truth(world.store)
    # A background read may come before its tail; the ledger is read far less often than it grows.
    assert world.store.readings <= 4


def test_a_replica_without_the_dataset_is_not_made_to_load_it(world: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notices concern only replicas that hold the dataset."""
    writer, cache, heard = world.writer(1), world.caches[1], list[list[CommitNotice]]()
    listen = cache.listen

    def noted(*, within_s: float) -> list[CommitNotice]:
        heard.append([])
        heard[-1] += listen(within_s=within_s)
        return heard[-1]

    monkeypatch.setattr(cache, "listen", noted)
    until(lambda: heard != [])
    writer._state.invalidate_all()
    ask_first(world, 3)
    until(lambda: 3 in {notice.seq for notices in heard for notice in notices})
    assert writer.position is None
    assert writer.length == 0


def test_new_people_are_read_in_the_background(world: Replicas) -> None:
    """The next query then does not wait for the load."""
    world.replicas[0].curators.append_rows(
        "survey", "people", "text/csv", BytesIO(b"person_id,country,age,spend\nzoe,NO,20,1\n")
    )
    until(lambda: int(only_shard(world.writer(1)._state).memory.people.present.sum()) == 4)


def test_a_pause_counts_in_the_next_query_of_another_replica(world: Replicas) -> None:
    """Also the end of a pause, and both after a start: the individual is left out, pays nothing, and is back."""
    bob, _ = world.replicas[0].principals.create(role="individual", name="bob", dataset="survey", individual="bob")

    def asked(number: int, key: str) -> tuple[int, int, int]:
        """The numbers of charged and left-out individuals of a query, and bob's spent total after it."""
        ask(world.replicas[number], world.analyst, key, reuse=False)
        row = newest(world.replicas[number])
        return row.charged, row.left_out, truth(world.store)[1]

    charge = asked(1, "before")[2]
    assert world.replicas[0].individuals.lower_limit(bob, "survey", pause=True).paused
    assert asked(1, "paused") == (2, 1, charge)
    world.unload(1)
    assert asked(1, "loaded") == (2, 1, charge)
    assert not world.replicas[0].individuals.resume(bob, "survey").paused
    assert asked(1, "resumed") == (3, 0, 2 * charge)
    outcomes = [each.outcome for each in world.replicas[1].individuals.receipts(bob, cursor=None, limit=9).items]
    assert outcomes == ["charged", "left_out", "left_out", "charged"]


@pytest.mark.parametrize("lie", ["cheaper", "for somebody else", "another history", "of another sequence"])
def test_forged_entries_are_not_used(world: Replicas, lie: str) -> None:
    """Even from a holder of the pepper: a tail that does not lead to the head is not used."""
    genesis = world.replicas[0].registry.record("survey").genesis
    second = world.writer(1)
    ask_first(world, 4)
    until(lambda: world.seq(1) == 4)
    with world.store.transaction(1, lock=False) as transaction:
        entries = list(transaction.entries(after=0))
    second._state.invalidate()
    second.tail.offer([], after=4)
    ask(world.replicas[1], world.analyst, "reload", reuse=False)
    last = entries[-1]
    told = last.quantities()

    def saying(**other: Any) -> LedgerEntry:
        blocks = replace(told, **other).blocks()
        pieces = pieces_of(blocks, Measure.NORMS, amount_max=2**62, slots=4, salt=last.salt)
        said: LedgerEntry = replace(last, pieces=pieces, pieces_digest=pieces_digest(pieces))
        return said

    forged = {
        "cheaper": saying(amounts=told.amounts * 0),
        "for somebody else": saying(active=told.touched == told.touched[0]),
        "another history": replace(last, values=last.values[::-1], previous_hash=bytes(32)),
        "of another sequence": last,
    }[lie]
    next_seq = world.store.head(1).seq + 1
    chained = replace(forged, seq=next_seq, previous_hash=world.store.head(1).hash)
    if lie == "another history":
        chained = replace(chained, previous_hash=bytes(32))
    lying = replace(chained, hash=b"").sealed()
    world.caches[0].share([SharedEntry(genesis=genesis, entry=lying)], [])
    second.tail.offer([lying], after=next_seq - 1)
    ask(world.replicas[0], world.analyst, "true", reuse=False)
    ask(world.replicas[1], world.analyst, "next", reuse=False)
    assert world.spent(1) == truth(world.store)


def test_replicas_agree_on_what_was_spent(world: Replicas) -> None:
    """Two replicas answer in turn, each following the other's commits."""
    for n in range(12):
        ask(world.replicas[n % 2], world.analyst, f"k{n}", reuse=False)
    assert truth(world.store) == world.spent(1)
    until(lambda: world.spent(0) == world.spent(1))


def test_an_unwitnessed_commit_is_not_shared(world: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A committed answer that was withheld; a later retry returns it."""
    told_of: list[object] = []
    monkeypatch.setattr(world.replicas[0]._exchange, "committed", lambda *told: told_of.append(told))

    def unwritable(*_: object) -> None:
        raise WitnessUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(witness_of(world.store), "write", unwritable)
        with pytest.raises(Unavailable):
            ask(world.replicas[0], world.analyst, "k")
    assert world.store.head(1).seq == 1
    assert told_of == []
    assert ask(world.replicas[0], world.analyst, "k").sequence == 1
    ask(world.replicas[0], world.analyst, "another", reuse=False)
    assert len(told_of) == 1
