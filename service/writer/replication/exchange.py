"""Exchange between replicas through the cache: commits made here, and commits of the other replicas.

No answer waits for the exchange. The writer hands over what is durable and witnessed and goes on. One thread shares
this with the other replicas. A second thread listens, fetches the ledger's tail in advance and wakes idle writers. A
value that finds no room is dropped, and a replica that lacks it reads the database. While no other replica listens, no
commit is shared.

Shared entries are used only if they lead, hash by hash, from where memory stands to exactly the head in the database.
Otherwise the entries are read from the database (`Tail`). So no cache, and no other history under the same name,
changes a spent total.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from service.background import Background
from service.incidents import report_incident
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import DatasetRecord, Head
from service.ledger.ports.cache import AccountSlice, Cache, CommitNotice, LedgerPosition, NoCache, Shared, SharedEntry

TAIL_MAX: Final = 64
"""The most entries that are kept. A replica that is farther behind reads the database."""


class Tail:
    """The entries of one dataset that may come next, ahead of memory. Thread-safe."""

    def __init__(self) -> None:
        self._entries: dict[int, LedgerEntry] = {}
        self._lock = threading.Lock()

    def offer(self, entries: Iterable[LedgerEntry], *, after: int) -> None:
        """Keep the entries after `after`, and drop those up to it.

        An entry whose hash is not that of its contents is ignored.
        """
        sound = {entry.seq: entry for entry in entries if entry.is_itself}
        with self._lock:
            ahead = {seq: entry for seq, entry in (self._entries | sound).items() if seq > after}
            self._entries = {seq: ahead[seq] for seq in sorted(ahead)[:TAIL_MAX]}

    def last(self, *, after: int) -> int:
        """The last sequence that entries without a gap reach from `after` on."""
        with self._lock:
            while after + 1 in self._entries:
                after += 1
            return after

    def between(self, seq: int, own_hash: bytes, head: Head) -> list[LedgerEntry]:
        """The entries from a known hash to a head; empty unless all are there, chained from the one to the other."""
        with self._lock:
            entries = [self._entries.get(each) for each in range(seq + 1, min(head.seq, seq + TAIL_MAX) + 1)]
        chained: list[LedgerEntry] = []
        for entry in entries:
            if entry is None or entry.previous_hash != own_hash:
                return []
            chained.append(entry)
            own_hash = entry.hash
        return chained if own_hash == head.hash else []


OUTBOX_MAX: Final = 256
ENTRY_BYTES_MAX: Final = 1 << 18
"""The most bytes of pieces in an entry that is shared.

A larger one would take more memory than reading it again is worth.
"""
SLICES_LEFT_MAX: Final = 65_536
LEFT_FOR_S: Final = 600.0
LOOK_EVERY_S: Final = 1.0
_GATHER_S: Final = 0.05
"""How long the sharing thread rests, in s, so that commits handed over meanwhile share one round trip.

A round trip costs a millisecond of processor time when caches are cold, and 0.1 ms a commit when ten commits share it.
"""
_LISTEN_S: Final = 0.2

Position = tuple[int, int, int]


class Follower(Protocol):
    """The part of a writer that is used when notices arrive. Called from the listening thread."""

    @property
    def tail(self) -> Tail:
        """The place for entries ahead of the writer's memory."""

    @property
    def position(self) -> Position | None:
        """Fence, sequence and version of the writer's memory; None while the memory is empty."""

    def wake(self) -> None:
        """Catch up in the background, unless work that waits already will do so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outgoing:
    """Values that the writer hands over together. `head` is None where there is no commit."""

    genesis: bytes
    head: Head | None
    entries: Sequence[LedgerEntry] = ()
    slices: Sequence[AccountSlice] = ()


class ReplicaExchange(Background):
    """One replica's side of the exchange. `publish` and `hear` are steps; `open` gives each a thread."""

    def __init__(self, cache: Cache, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without followers; `clock` counts seconds."""
        super().__init__()
        self._cache, self._clock = cache, clock
        self._followers: dict[bytes, Follower] = {}
        self._outbox: queue.Queue[_Outgoing | None] = queue.Queue(OUTBOX_MAX)
        self._is_alone, self._look_at = True, float("-inf")
        self.is_open = not isinstance(cache, NoCache)
        self._left: dict[tuple[bytes, int], tuple[LedgerPosition, float]] = {}

    def open(self) -> None:
        """Start the threads, once."""
        if self._threads or not self.is_open:
            return
        self._begin_thread(partial(self._run, self.publish, _GATHER_S), "sharing")
        self._begin_thread(partial(self._run, partial(self.hear, within_s=_LISTEN_S), 0.0), "listening")

    def close(self) -> None:
        """Stop the threads. Commits that are not shared yet are dropped."""
        if not self._threads:
            return
        self.is_open = False
        with suppress(queue.Full):
            self._outbox.put_nowait(None)
        super().close()

    def follow(self, genesis: bytes, follower: Follower) -> None:
        """Bring a dataset's notices to its writer from now on."""
        self._followers[genesis] = follower

    def unfollow(self, follower: Follower) -> None:
        """Stop bringing notices to a writer."""
        for genesis in [each for each, followed in list(self._followers.items()) if followed is follower]:
            del self._followers[genesis]

    # Called by writers

    def committed(self, record: DatasetRecord, head: Head, entries: Sequence[LedgerEntry]) -> None:
        """Share a durable, witnessed transaction: its entries, or the head after an act."""
        if not self._is_alone or self._clock() >= self._look_at:
            small = [entry for entry in entries if _charges_bytes(entry) <= ENTRY_BYTES_MAX]
            self._hand(_Outgoing(genesis=record.genesis, head=head, entries=small))

    def read(self, slices: Sequence[AccountSlice]) -> None:
        """Share slices of accounts that were read, since they may be wanted again."""
        if slices:
            if len(self._left) > SLICES_LEFT_MAX:
                self._left.clear()
            now = self._clock()
            self._left.update(((each.place.genesis, each.number), (each.place, now)) for each in slices)
            self._hand(_Outgoing(genesis=slices[0].place.genesis, head=None, slices=slices))

    def wants(self, place: LedgerPosition, number: int) -> bool:
        """Tell whether a slice is worth sharing: it was not shared in this state of the dataset a short while ago."""
        left, at = self._left.get((place.genesis, number), (None, 0.0))
        return self.is_open and (left != place or self._clock() - at > LEFT_FOR_S)

    # Called by readers

    def slices(self, genesis: bytes, numbers: Sequence[int]) -> list[AccountSlice]:
        """The shared slices among `numbers`, each in some state of the dataset."""
        return self._cache.slices(genesis, numbers)

    def _hand(self, outgoing: _Outgoing) -> None:
        if self.is_open:
            with suppress(queue.Full):
                self._outbox.put_nowait(outgoing)

    # The steps

    def publish(self) -> None:
        """Wait for a commit, and share all that were handed over, in one round trip."""
        outgoing = [self._outbox.get()]
        while not self._outbox.empty():
            outgoing.append(self._outbox.get_nowait())
        is_alone = self._look_around()
        values: list[Shared] = []
        notices: dict[bytes, CommitNotice] = {}
        for commit in outgoing:
            if commit is None:
                continue
            values += commit.slices
            if commit.head is not None and not is_alone:
                values += [SharedEntry(genesis=commit.genesis, entry=each) for each in commit.entries]
                head = commit.head
                notices[commit.genesis] = CommitNotice(
                    genesis=commit.genesis, fence=head.fence, seq=head.seq, data_version=head.data_version
                )
        if values or notices:
            self._cache.share(values, list(notices.values()))

    def hear(self, *, within_s: float) -> None:
        """Take in the notices that have come, which are new positions of the followed ledgers."""
        latest: dict[bytes, CommitNotice] = {}
        for notice in self._cache.listen(within_s=within_s):
            if notice.genesis not in latest or latest[notice.genesis].position < notice.position:
                latest[notice.genesis] = notice
        for genesis, notice in latest.items():
            follower = self._followers.get(genesis)
            position = None if follower is None else follower.position
            if follower is not None and position is not None and position < notice.position:
                self._bring(notice, follower, seq=position[1])

    def _bring(self, notice: CommitNotice, follower: Follower, *, seq: int) -> None:
        after = follower.tail.last(after=seq)
        if after < notice.seq <= seq + TAIL_MAX:
            follower.tail.offer(self._cache.entries(notice.genesis, after=after, to=notice.seq), after=seq)
        follower.wake()

    def _look_around(self) -> bool:
        """Tell whether no other replica listens. The cache is asked again after `LOOK_EVERY_S`."""
        if self._clock() >= self._look_at:
            self._is_alone = self._cache.audience() <= 1
            self._look_at = self._clock() + LOOK_EVERY_S
        return self._is_alone

    def _run(self, step: Callable[[], None], rest_s: float) -> None:
        while self.is_open:
            try:
                step()
                time.sleep(rest_s)
            except Exception as error:  # noqa: BLE001 - what is shared is a help; the replica does without
                report_incident(error, "sharing between replicas")
                time.sleep(_LISTEN_S)


def _charges_bytes(entry: LedgerEntry) -> int:
    return sum(len(piece.content) for piece in entry.pieces)


NO_EXCHANGE: Final = ReplicaExchange(NoCache())
"""The exchange for a writer that has no replica to share with."""
