"""Messages between replicas: their content, their limits, and that no commit waits for them."""

from dataclasses import dataclass, field, replace

import pytest

from service.store.redis.sealed import SealedCache
from service.workflows.model.pieces import Piece
from service.workflows.ports.cache import SharedEntry
from service.workflows.replication.exchange import (
    ENTRY_BYTES_MAX,
    LOOK_EVERY_S,
    OUTBOX_MAX,
    TAIL_MAX,
    ReplicaExchange,
    Tail,
)
from tests.contracts.caches import GENESIS, HEAD, KEY, account_slice, chain, notice
from tests.contracts.stores import dataset
from tests.memory.cache import MemoryKeyValueStore, MemoryServer

RECORD = replace(dataset(), genesis=GENESIS)
SOON_S = 0.01


@dataclass
class Follower:
    """A writer at a fixed position that counts its wake-ups."""

    position: tuple[int, int, int] | None = (1, 0, 1)
    tail: Tail = field(default_factory=Tail)
    woken: int = 0

    def wake(self) -> None:
        self.woken += 1


@dataclass
class World:
    """Two exchanges over one key-value store, and a clock that stands."""

    room: MemoryServer = field(default_factory=MemoryServer)
    now_s: float = 0.0
    caches: list[SealedCache] = field(default_factory=list)
    exchanges: list[ReplicaExchange] = field(default_factory=list)
    follower: Follower = field(default_factory=Follower)

    def __post_init__(self) -> None:
        self.caches = [SealedCache(MemoryKeyValueStore(self.room), KEY) for _ in range(2)]
        self.exchanges = [ReplicaExchange(each, clock=lambda: self.now_s) for each in self.caches]
        self.exchanges[1].follow(GENESIS, self.follower)

    def both_listen(self) -> None:
        """Let both begin to listen, which the first call does."""
        for each in self.exchanges:
            each.hear(within_s=SOON_S)


@pytest.fixture
def world() -> World:
    """Two listening exchanges."""
    made = World()
    made.both_listen()
    return made


def test_a_commit_is_sent_with_its_entries(world: World) -> None:
    """The other replica has the tail, and is woken once."""
    ours, theirs = world.exchanges
    entries = chain(3)
    head = replace(HEAD, seq=3, hash=entries[2].hash)
    ours.committed(RECORD, head, entries[:1])
    ours.committed(RECORD, head, entries[1:])
    ours.publish()
    theirs.hear(within_s=SOON_S)
    assert world.follower.woken == 1
    assert world.follower.tail.between(0, GENESIS, head) == entries


def test_a_single_replica_shares_nothing_and_looks_for_others_rarely() -> None:
    """A single replica pays nothing: its publishing thread is not even woken."""
    world = World()
    ours = world.exchanges[0]
    ours.hear(within_s=SOON_S)
    ours.committed(RECORD, HEAD, chain(1))
    ours.publish()
    assert world.room.values == {}
    ours.committed(RECORD, HEAD, chain(1))
    assert ours._outbox.empty()
    world.both_listen()
    world.now_s += LOOK_EVERY_S
    ours.committed(RECORD, HEAD, chain(1))
    ours.publish()
    assert len(world.room.values) == 1


def test_messages_beyond_the_bound_are_dropped_without_waiting(world: World) -> None:
    """The writer goes on, however slow the key-value store is."""
    ours = world.exchanges[0]
    for _ in range(3 * OUTBOX_MAX):
        ours.committed(RECORD, HEAD, [])
    assert ours._outbox.qsize() == OUTBOX_MAX


def test_large_charges_are_left_to_the_database(world: World) -> None:
    """Holding them back costs memory; the notice tells others to read them."""
    (entry,) = chain(1)
    large = replace(entry, pieces=(Piece.of(bytes(32), 0, bytes(ENTRY_BYTES_MAX + 1)),))
    world.exchanges[0].committed(RECORD, HEAD, [large])
    world.exchanges[0].publish()
    assert world.room.values == {}


def test_a_writer_that_is_up_to_date_or_empty_is_not_woken(world: World) -> None:
    """So are the writers of datasets without requests here."""
    ours, theirs = world.exchanges
    for position, woken in [((1, 3, 1), 0), ((1, 4, 1), 0), ((2, 0, 1), 0), (None, 0), ((1, 2, 1), 1), ((1, 3, 0), 2)]:
        world.follower.position = position
        world.caches[0].share([], [notice(3)])
        theirs.hear(within_s=SOON_S)
        assert world.follower.woken == woken
    world.caches[0].share([], [notice(9)])
    ours.hear(within_s=SOON_S)
    assert world.follower.woken == 2


def test_old_notices_do_not_hide_new_ones(world: World) -> None:
    """Among simultaneous notices the farthest counts, in any order."""
    entries = chain(3)
    world.caches[0].share([SharedEntry(genesis=GENESIS, entry=each) for each in entries], [])
    world.caches[0].share([], [notice(2), notice(3), notice(1)])
    world.exchanges[1].hear(within_s=SOON_S)
    assert world.follower.woken == 1
    assert world.follower.tail.last(after=0) == 3


def test_a_replica_far_behind_reads_the_database(world: World) -> None:
    """A tail that would be too short is not fetched."""
    world.caches[0].share([SharedEntry(genesis=GENESIS, entry=each) for each in chain(3)], [notice(TAIL_MAX + 1)])
    world.exchanges[1].hear(within_s=SOON_S)
    assert (world.follower.woken, world.follower.tail.last(after=0)) == (1, 0)


def test_a_single_replica_shares_accounts_too(world: World) -> None:
    """The replica's own next reading may use them."""
    lonely = World()
    lonely.exchanges[0].read([account_slice(5), account_slice(5, number=1)])
    lonely.exchanges[0].read([])
    lonely.exchanges[0].publish()
    assert len(lonely.caches[0].slices(GENESIS, [0, 1])) == 2
