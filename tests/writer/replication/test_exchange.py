"""Messages between replicas: their content, their limits, and the tail that leads to the database's head."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.pieces import Piece
from service.ledger.model.rows import Head
from service.ledger.ports.cache import SharedEntry
from service.store.redis.sealed import SealedCache
from service.writer.replication.exchange import (
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


ENTRIES = chain(8)


def head_at(entries: list[LedgerEntry]) -> Head:
    """The head after these entries."""
    return replace(HEAD, seq=entries[-1].seq, hash=entries[-1].hash) if entries else HEAD


def offered(*entries: LedgerEntry, after: int = 0) -> Tail:
    """A tail that was offered these entries."""
    tail = Tail()
    tail.offer(entries, after=after)
    return tail


@given(start=st.integers(0, 8), end=st.integers(0, 8), held=st.sets(st.integers(0, 7)))
def test_only_a_complete_tail_is_used(start: int, end: int, held: set[int]) -> None:
    """All entries from one position to the other, or none."""
    tail = offered(*(ENTRIES[n] for n in held))
    own_hash = ENTRIES[start - 1].hash if start else GENESIS
    wanted = ENTRIES[start:end]
    is_whole = start < end and held >= set(range(start, end))
    assert tail.between(start, own_hash, head_at(ENTRIES[:end])) == (wanted if is_whole else [])


def test_another_history_of_the_same_length_is_not_used() -> None:
    """A clone of the database has the same seal and the same sequence; its hashes differ."""
    other = chain(8)
    assert offered(*other).between(0, GENESIS, head_at(ENTRIES)) == []
    assert offered(*ENTRIES[:4], *other[4:]).between(0, GENESIS, head_at(ENTRIES)) == []
    assert offered(*other[:4], *ENTRIES[4:]).between(0, GENESIS, head_at(ENTRIES)) == []
    assert offered(*ENTRIES).between(0, other[0].hash, head_at(ENTRIES)) == []
    assert offered(*ENTRIES).between(0, b"", head_at(ENTRIES)) == []


def test_an_entry_that_was_changed_is_passed_over() -> None:
    """Its hash does not match its content, whatever hash it claims."""
    cheaper = replace(ENTRIES[2], charged_units=0)
    tail = offered(*ENTRIES[:2], cheaper, *ENTRIES[3:])
    assert tail.between(0, GENESIS, head_at(ENTRIES)) == []
    assert tail.last(after=0) == 2


def test_entries_behind_are_dropped_and_those_far_ahead_are_not_kept() -> None:
    """A tail takes little memory."""
    tail = offered(*chain(TAIL_MAX + 5))
    assert tail.last(after=0) == TAIL_MAX
    tail.offer([], after=TAIL_MAX)
    assert tail._entries == {}
    assert tail.last(after=TAIL_MAX) == TAIL_MAX
