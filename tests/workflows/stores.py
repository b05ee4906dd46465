"""In-memory stores that fail or count, for tests of workflows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from service.ledger.model.rows import Asked
from service.ledger.ports.store import CommitUnclear, StoreUnavailable
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction


class FaultyStore(MemoryStore):
    """The in-memory store with faults: `faults` sets the outcome of each locked transaction's commit.

    A commit of which the reply is `late` is still on its way, and holds the lock: it has ended when that is had again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.late: list[Callable[[], None]] = []
        self.locked = 0

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        self.locked += lock
        while lock and self.late:
            self.late.pop()()
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            if lock and self.faults:
                _break_commit(transaction, self.faults.pop(0), self.late)
            yield transaction


def _break_commit(transaction: Any, fault: str, late: list[Callable[[], None]]) -> None:
    commit = transaction.commit

    def broken() -> None:
        if fault in {"lost-reply", "fine"}:
            commit()
        if fault == "late":
            late.append(commit)
        if fault in {"lost-reply", "late", "lost-request"}:
            raise CommitUnclear
        if fault == "gone":
            raise StoreUnavailable

    transaction.commit = broken
