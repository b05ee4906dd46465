"""Ownership: when a process considers itself the owner of a dataset, and the requests that it then accepts."""

import threading
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from uuid import UUID

import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import Unavailable
from service.ledger.model.rows import Lease, ReplicaAddress
from service.ledger.ports.store import StoreUnavailable
from service.workflows.replica import Replica, ReplicaOptions
from service.writer.replication import ownership
from service.writer.replication.ownership import LEASE_S, MARGIN_S, RENEWAL_EVERY_S, Ownership
from tests.factories import TWO_PEOPLE, analyst, ask, open_replica
from tests.memory.cache import MemoryLeases
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S, until
from tests.workflows.surveys import fill

ONE, OTHER = (ReplicaAddress(id=UUID(int=n), url=f"http://127.0.0.1:{n}") for n in (1, 2))
PEPPER = Pepper(b"p" * 32)


class Clock:
    """A clock in seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class SlowLeases(MemoryLeases):
    """Leases with latency: a call takes `there_s` to the store and `back_s` back, or fails."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.clock, self.there_s, self.back_s, self.is_gone = clock, 0.0, 0.0, False

    def claim(self, dataset_id: int, replica: ReplicaAddress, *, lease_s: float) -> Lease:
        self._pass()
        return super().claim(dataset_id, replica, lease_s=lease_s)

    def renew(self, replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        self._pass()
        leases = super().renew(replica, lease_s=lease_s)
        self.clock.now += self.back_s
        return leases

    def release(self, replica: ReplicaAddress) -> None:
        self._pass()
        super().release(replica)

    def _pass(self) -> None:
        self.clock.now += self.there_s
        if self.is_gone:
            raise StoreUnavailable


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> SlowLeases:
    """The leases shared by the processes of a test."""
    return SlowLeases(clock)


@pytest.fixture
def one(leases: SlowLeases, clock: Clock) -> Ownership:
    """A process."""
    return Ownership(leases=leases, replica=ONE, pepper=PEPPER, clock=clock)


@pytest.fixture
def other(leases: SlowLeases, clock: Clock) -> Ownership:
    """Another process."""
    return Ownership(leases=leases, replica=OTHER, pepper=PEPPER, clock=clock)


def test_the_first_that_claims_a_dataset_owns_it_and_the_others_know(one: Ownership, other: Ownership) -> None:
    """Both read the owner from memory afterwards; before a claim there is no owner."""
    assert one.at_hand(7) is None
    assert one.claim(7) == other.claim(7) == one.at_hand(7) == other.at_hand(7) == ONE
    assert one.is_here(ONE)
    assert not other.is_here(ONE)
    assert (one.admits(7), other.admits(7)) == (True, False)


def test_renewed_leases_last_and_those_of_others_are_read_along(one: Ownership, other: Ownership, clock: Clock) -> None:
    """One step a second keeps the own leases and reads the other process's claims."""
    one.claim(7)
    other.claim(8)
    for _ in range(10):
        clock.now += RENEWAL_EVERY_S
        one.step()
        other.step()
        assert (one.at_hand(7), one.at_hand(8)) == (ONE, OTHER)
        assert (other.at_hand(7), other.at_hand(8)) == (ONE, OTHER)


@pytest.mark.parametrize("there_s", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("back_s", [0.0, 0.4, 2.0, 4.0])
def test_a_process_stops_being_the_owner_before_another_can_be(
    one: Ownership, other: Ownership, leases: SlowLeases, clock: Clock, there_s: float, back_s: float
) -> None:
    """However long a renewal and its response take, there are never two owners at one instant."""
    one.claim(7)
    leases.there_s, leases.back_s = there_s, back_s
    one.step()
    leases.there_s = leases.back_s = 0.0
    ended_at = None if one.admits(7) else clock.now
    while other.claim(7) == ONE:
        clock.now += 0.01
        ended_at = ended_at or (None if one.admits(7) else clock.now)
    assert not one.admits(7)
    assert ended_at is not None
    assert there_s + back_s > 0 or clock.now - ended_at >= MARGIN_S - 0.02


def test_a_lease_that_cannot_be_renewed_lapses_and_is_claimed_again(
    one: Ownership, leases: SlowLeases, clock: Clock
) -> None:
    """While the store is away nothing changes until the lease has run out; then the dataset has no known owner."""
    one.claim(7)
    leases.is_gone = True
    clock.now += RENEWAL_EVERY_S
    with pytest.raises(StoreUnavailable):
        one.step()
    assert one.admits(7)
    clock.now += LEASE_S
    assert (one.at_hand(7), one.admits(7)) == (None, False)
    with pytest.raises(StoreUnavailable):
        one.claim(7)
    leases.is_gone = False
    assert one.claim(7) == ONE


def test_a_draining_process_releases_its_leases_and_finishes_its_requests(one: Ownership, other: Ownership) -> None:
    """It claims nothing more and still finishes its accepted requests; the other process is the owner at once."""
    one.claim(7)
    other.claim(8)
    one.leave()
    with pytest.raises(Unavailable):
        one.claim(9)
    one.step()
    one.leave()  # a second signal
    assert other.claim(7) == OTHER
    assert one.at_hand(7) is None
    assert [one.admits(each) for each in (7, 8, 9)] == [True, False, False]


def test_a_signal_amid_the_handler_of_another_does_not_wait_for_it(
    one: Ownership, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both embedded servers may end at once: a handler that sets the event again would wait for its own lock."""
    begun: list[int] = []

    class Interrupted(threading.Event):
        def set(self) -> None:
            begun.append(len(begun))
            if len(begun) == 1:
                one.leave()
            super().set()

    monkeypatch.setattr(one, "_closed", Interrupted())
    one.leave()
    assert begun == [0]


def test_an_owner_that_does_not_answer_is_looked_up_again(one: Ownership, other: Ownership) -> None:
    """Invalidation forgets one owner of one dataset; a newer owner stays."""
    one.claim(7)
    other.claim(7)
    other.invalidate(7, OTHER)
    assert other.at_hand(7) == ONE
    other.invalidate(7, ONE)
    assert other.at_hand(7) is None
    assert other.claim(7) == ONE


def test_a_dataset_that_has_moved_is_reported(one: Ownership, other: Ownership, clock: Clock) -> None:
    """By a claim of the dataset, and by every step that reads its lease."""
    moved: list[Collection[int]] = []
    one.watch(moved.append)
    one.claim(7)
    one.step()
    assert moved == []
    clock.now += LEASE_S
    other.claim(7)
    one.step()
    one.claim(7)
    assert moved == [[7], [7]]


def test_only_a_holder_of_the_pepper_answers_for_a_replica() -> None:
    """A proof is for one replica and one challenge."""
    ours = Ownership(leases=MemoryLeases(), replica=ONE, pepper=PEPPER)
    theirs = Ownership(leases=MemoryLeases(), replica=OTHER, pepper=PEPPER)
    strange = Ownership(leases=MemoryLeases(), replica=ONE, pepper=Pepper(b"q" * 32))
    assert theirs.is_proof(ONE, b"challenge", ours.proof(b"challenge"))
    assert not theirs.is_proof(OTHER, b"challenge", ours.proof(b"challenge"))
    assert not theirs.is_proof(ONE, b"another", ours.proof(b"challenge"))
    assert not theirs.is_proof(ONE, b"challenge", strange.proof(b"challenge"))
    assert not theirs.is_proof(ONE, b"challenge", b"")


@contextmanager
def opened(each: Ownership) -> Iterator[None]:
    """The thread of its own, during a block."""
    each.open()
    with closing(each):
        yield


def test_the_thread_renews_and_releases_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the store and unexpected ones do not stop the thread; after `close` the leases are free."""
    monkeypatch.setattr(ownership, "RENEWAL_EVERY_S", 0.01)
    clock = Clock()
    leases = SlowLeases(clock)
    renewed: list[float] = []
    renew = leases.renew

    def counted(replica: ReplicaAddress, *, lease_s: float) -> list[Lease]:
        renewed.append(lease_s)
        if len(renewed) == 2:
            raise StoreUnavailable
        if len(renewed) == 3:
            raise ZeroDivisionError
        return renew(replica, lease_s=lease_s)

    monkeypatch.setattr(leases, "renew", counted)
    one, other = (Ownership(leases=leases, replica=each, pepper=PEPPER, clock=clock) for each in (ONE, OTHER))
    with opened(one):
        one.claim(7)
        until(lambda: len(renewed) >= 5)
        assert other.claim(7) == ONE
    assert other.claim(7) == OTHER


def test_a_store_that_is_away_at_the_end_does_not_block_closing(leases: SlowLeases, one: Ownership) -> None:
    """Closing raises no error; the lease, which could not be released, expires."""
    with opened(one):
        one.claim(7)
        leases.is_gone = True
    leases.is_gone = False
    assert leases.claim(7, OTHER, lease_s=LEASE_S).replica == ONE
    leases.clock.now += LEASE_S
    assert leases.claim(7, OTHER, lease_s=LEASE_S).replica == OTHER


@pytest.fixture
def store(store: MemoryStore) -> MemoryStore:
    """A dataset of one person."""
    fill(store, TWO_PEOPLE[:1])
    return store


def owning(store: MemoryStore, ownership: Ownership) -> AbstractContextManager[Replica]:
    """A replica that works on what it owns alone."""
    return open_replica(store, options=ReplicaOptions(ownership=ownership))


def test_a_replica_works_only_on_what_it_owns(
    store: MemoryStore, one: Ownership, other: Ownership, clock: Clock
) -> None:
    """Queries, acts and account reads of a dataset owned by another replica are refused, and nothing is loaded.

    Readings from a snapshot work at any replica.
    """
    with owning(store, one) as mine, owning(store, other) as theirs:
        who = analyst(mine)
        one.claim(1)
        assert ask(mine, who, "k").sequence
        for refused in (
            lambda: ask(theirs, who, "k"),
            lambda: theirs.curators.open_epoch("survey"),
            lambda: theirs.overview.summary("survey"),
        ):
            with pytest.raises(Unavailable):
                refused()
        assert len(theirs.auditors.ledger("survey", cursor=None, limit=9).items) == 1
        assert theirs.registry.opened() == []


def test_a_writer_is_closed_when_its_dataset_has_moved(
    store: MemoryStore, one: Ownership, other: Ownership, clock: Clock
) -> None:
    """Its memory is released and waiting requests get an answer; a later claim loads the dataset anew."""
    with owning(store, one) as mine, owning(store, other) as theirs:
        who = analyst(mine)
        one.claim(1)
        answered = ask(mine, who, "k").body
        (line,) = mine.registry.opened()
        clock.now += LEASE_S
        other.claim(1)
        assert ask(theirs, who, "k").body == answered
        one.step()
        assert mine.registry.opened() == []
        assert line.ended(within_s=PATIENCE_S)
        assert line not in mine._exchange._followers.values()
        clock.now += LEASE_S
        one.claim(1)
        assert ask(mine, who, "k").body == answered


def test_a_draining_replica_finishes_its_requests(store: MemoryStore, one: Ownership, other: Ownership) -> None:
    """A request accepted earlier is finished, though another process owns the dataset by then."""
    with owning(store, one) as mine:
        who = analyst(mine)
        one.claim(1)
        mine.leave()
        one.step()
        assert other.claim(1) == OTHER
        assert ask(mine, who, "k").sequence


def test_without_ownership_every_replica_works_on_everything(store: MemoryStore) -> None:
    """Without leases replicas are symmetrical."""
    with open_replica(store) as mine, open_replica(store) as theirs:
        who = analyst(mine)
        assert ask(mine, who, "k").body == ask(theirs, who, "k").body
        mine.leave()
        assert ask(mine, who, "l").sequence
