"""The modelled store that several replicas share, with every fault of a database and of the connection to it.

Built on the in-memory store. The dataset's lock is serial; a crash keeps exactly what was committed; COMMIT may
be lost before or after it took effect, or be still under way when its sender has given up; a snapshot may be old, a
locked transaction never is. `Flaws` are faults that no correct database has: each of them must break a law.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from service.ledger.model.rows import Asked, Checkpoint, Head
from service.ledger.ports.store import CommitRejected, CommitUnclear, StoreUnavailable
from tests.factories import SeededEntropy
from tests.memory.store import MemoryConditionalAppend, MemoryStore
from tests.memory.transaction import CHECK_VIOLATION, MemoryTransaction
from tests.simulation.scheduler import Scheduler

READS = (
    "acts",
    "entries",
    "entry_records",
    "own_charges",
    "account_of",
    "pages",
    "individuals",
    "records",
    "slots_of",
    "are_plain_forms",
    "slots_of_tombstones",
    "keys_of",
)
WRITES = (
    "append",
    "add_individuals",
    "add_records",
    "delete_records",
    "erase",
    "set_limit",
    "set_paused",
    "journal",
    "lock",
)


@dataclass(slots=True, kw_only=True)
class Rates:
    """The rate of each fault, drawn for each seed: most worlds have few kinds of faults, some have many."""

    unavailable: float = 0.0
    refused_commit: float = 0.0
    lost_request: float = 0.0
    lost_response: float = 0.0
    slow_commit: float = 0.0
    lock_timeout: float = 0.0
    old_snapshot: float = 0.0
    replica_crash: float = 0.0
    store_crash: float = 0.0
    replica_pause: float = 0.0
    rolling_restart: float = 0.0
    impatient_client: float = 0.0
    clock_jump: float = 0.0

    @classmethod
    def drawn(cls, random: Random) -> "Rates":
        """Half of the rates are zero, the others anywhere up to their maximum."""
        wild = {
            "unavailable": 0.04,
            "refused_commit": 0.3,
            "lost_request": 0.3,
            "lost_response": 0.3,
            "slow_commit": 0.2,
            "lock_timeout": 0.3,
            "old_snapshot": 0.6,
            "replica_crash": 0.01,
            "store_crash": 0.01,
            "replica_pause": 0.02,
            "rolling_restart": 0.01,
            "impatient_client": 0.01,
            "clock_jump": 0.01,
        }
        return cls(**{name: random.choice([0, 0, 0.2, 1]) * most for name, most in wild.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaws:
    """Incorrect databases; the simulation must notice each."""

    no_lock: bool = False
    old_locked_reads: bool = False
    asynchronous_commit: bool = False


@dataclass(eq=False)
class Disk:
    """The durable dataset, the holder of its lock, and the COMMIT that is still under way (`late_commit`).

    `rejects` tells by a query's canonical form whether every transaction with its entry is rejected.
    """

    store: MemoryStore
    scheduler: Scheduler
    random: Random
    rates: Rates
    flaws: Flaws
    committed: "Callable[[SimulatedTransaction], None]"
    checkpointed: Callable[[Any], None]
    trace: Callable[[str], None]
    holder: "SimulatedTransaction | None" = None
    actor: "SimulatedTransaction | None" = None
    late_commit: "SimulatedTransaction | None" = None
    drain_state: int = 0
    rejects: Callable[[bytes], bool] = lambda _canonical: False
    faults: Counter[str] = field(default_factory=Counter)
    versions: list[Any] = field(default_factory=list)

    def happens(self, fault: str) -> bool:
        """Draw a fault by its rate, and count it."""
        rate: float = getattr(self.rates, fault)
        if rate == 0 or self.random.random() >= rate:
            return False
        self.faults[fault] += 1
        self.trace(f"fault: {fault}")
        return True

    def keep(self, transaction: "SimulatedTransaction") -> None:
        """Make a transaction durable and visible."""
        MemoryTransaction.commit(transaction)
        self.versions.append(self.store.kept[1])
        self.committed(transaction)

    def keep_pages(self) -> None:
        """Make a page, or the checkpoint's sequence, durable."""
        self.versions.append(self.store.kept[1])
        self.checkpointed(self.store.kept[1])

    def settle(self) -> None:
        """End a COMMIT whose sender has given up, durable or lost; only now the lock is released."""
        late, self.late_commit = self.late_commit, None
        if late is not None:
            durable = late.drain_state == self.drain_state and self.random.random() < 0.5
            self.trace(f"{late.owner.name}: the slow commit {'took effect' if durable else 'was lost'}")
            if durable:
                self.keep(late)
            self.free(late)

    def crash(self) -> None:
        """The server restarts: open transactions are gone, committed ones are not."""
        self.settle()
        self.drain_state += 1
        self.holder = self.actor = None
        if self.flaws.asynchronous_commit and len(self.versions) > 1:
            self.versions.pop()
            self.store.kept[1] = self.versions[-1]

    def free(self, transaction: "SimulatedTransaction") -> None:
        """Release a transaction's locks, unless its COMMIT is still under way."""
        if self.holder is transaction and self.late_commit is not transaction:
            self.holder = None
        if self.actor is transaction and self.late_commit is not transaction:
            self.actor = None


class SimulatedTransaction(MemoryTransaction):
    """The port's Transaction in which every call may be interrupted, disconnected or crashed.

    `act` is the client's request behind a curator's transaction; `words` are the entropy drawn since it began.
    """

    def __init__(self, owner: "ReplicaStore", *, lock: bool, asked: Sequence[Asked] = ()) -> None:
        """Begin at the present state; a database with that flaw shows an old one, which the witness must refuse."""
        self.owner, self.disk, self.drain_state = owner, owner.disk, owner.disk.drain_state
        super().__init__(self.disk.store, 1, lock=lock, asked=asked, wait_for_lock=self._await_lock)
        if self.disk.flaws.old_locked_reads and len(self.disk.versions) > 1 and self.disk.happens("old_snapshot"):
            self._draft = self.disk.versions[-self.disk.random.randint(2, min(4, len(self.disk.versions)))].draft()
        self.act: object = None
        self._drawn = len(owner.entropy.drawn)

    @property
    def words(self) -> list[Any]:
        """The words drawn in this transaction, draw by draw."""
        return self.owner.entropy.drawn[self._drawn :]

    @property
    def dataset(self) -> Any:
        """The dataset that has become durable with it, for the laws."""
        return self.disk.store.kept[1]

    def __getattribute__(self, name: str) -> Any:
        if name in READS or name in WRITES:
            self.called(name)
        return super().__getattribute__(name)

    def called(self, name: str) -> None:
        """Model one round trip to the server."""
        self.disk.scheduler.pause()
        if self.drain_state != self.disk.drain_state or self.disk.happens("unavailable"):
            raise StoreUnavailable(name)

    def _await_lock(self) -> None:
        self.owner.await_lock()
        if not self.disk.flaws.no_lock:
            self.disk.holder = self

    def commit(self) -> None:
        disk = self.disk
        disk.scheduler.pause()
        if self.drain_state != disk.drain_state or disk.happens("lost_request"):
            raise CommitUnclear
        if any(disk.rejects(entry.canonical) for entry in self._draft.entries[len(self.dataset.entries) :]):
            disk.faults["rejected_commit"] += 1
            raise CommitRejected(CHECK_VIOLATION)
        if disk.happens("refused_commit"):
            raise StoreUnavailable
        if disk.holder is self and disk.happens("slow_commit"):
            disk.late_commit = self
            raise CommitUnclear
        disk.keep(self)
        disk.trace(f"{self.owner.name}: committed, sequence {self.head.seq}")
        disk.scheduler.pause()  # a replica that crashes here has committed and does not know
        if disk.happens("lost_response"):
            raise CommitUnclear


class SimulatedConditionalAppend(MemoryConditionalAppend):
    """The port's ConditionalAppend: its noise was drawn before its transaction began."""

    def __init__(self, owner: "ReplicaStore", dataset_id: int, head: Head, *, asked: Sequence[Asked]) -> None:
        """The draws begin now."""
        super().__init__(owner, dataset_id, head, asked=asked)
        self._owner, self._drawn = owner, len(owner.entropy.drawn)

    def commit(self) -> None:
        with self._owner.transaction(self._dataset_id, lock=True, asked=self._asked) as transaction:
            transaction._drawn = self._drawn
            self.commit_in(transaction)


class ReplicaStore(MemoryStore):
    """One replica's connection to the disk. Reads outside a transaction go directly to it."""

    def __init__(self, name: str, disk: Disk, entropy: SeededEntropy) -> None:
        """Share the disk's dataset."""
        super().__init__()
        self.name, self.disk, self.entropy = name, disk, entropy
        self.kept = disk.store.kept
        self.principal_records = disk.store.principal_records

    @contextmanager
    def conditional_append(
        self, dataset_id: int, head: Head, *, asked: Sequence[Asked]
    ) -> Iterator[SimulatedConditionalAppend]:
        self.disk.scheduler.pause()
        yield SimulatedConditionalAppend(self, dataset_id, head, asked=asked)

    @contextmanager
    def transaction(
        self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()
    ) -> Iterator[SimulatedTransaction]:
        disk = self.disk
        self._connect()
        if lock:
            self.await_lock()
        transaction = SimulatedTransaction(self, lock=lock, asked=asked)
        if lock and not disk.flaws.no_lock:
            disk.holder = transaction
        try:
            disk.scheduler.pause()
            yield transaction
        finally:
            disk.free(transaction)

    @contextmanager
    def long_act(self, dataset_id: int) -> Iterator[SimulatedTransaction]:
        disk = self.disk
        self._connect()
        if disk.actor is not None and disk.happens("lock_timeout"):
            raise StoreUnavailable("lock timeout")
        while disk.actor is not None:
            disk.scheduler.pause(lambda: disk.actor is None)
        disk.actor = transaction = SimulatedTransaction(self, lock=False)
        try:
            disk.scheduler.pause()
            yield transaction
        finally:
            disk.free(transaction)

    def write_page(self, dataset_id: int, checkpoint: Checkpoint, page: int) -> None:
        self._connect()
        super().write_page(dataset_id, checkpoint, page)
        self.disk.keep_pages()
        self._hear()

    def finish_checkpoint(self, dataset_id: int, checkpoint: Checkpoint) -> bool:
        self._connect()
        self.await_lock()
        is_moved = super().move_checkpoint(dataset_id, checkpoint)
        self.disk.keep_pages()
        self._hear()
        return is_moved

    def _connect(self) -> None:
        self.disk.scheduler.pause()
        if self.disk.happens("unavailable"):
            raise StoreUnavailable("no connection")

    def await_lock(self) -> None:
        disk = self.disk
        if disk.flaws.no_lock:
            return
        if disk.holder is not None and disk.happens("lock_timeout"):
            raise StoreUnavailable("lock timeout")
        while disk.holder is not None:
            disk.scheduler.pause(lambda: disk.holder is None)

    def _hear(self) -> None:
        """Receive the response; a replica that crashes here, or gets none, has written and does not know."""
        self.disk.scheduler.pause()
        if self.disk.happens("lost_response"):
            raise StoreUnavailable("no response")
