"""An in-memory store that can be held in the middle of a transaction."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from service.ledger.model.rows import Asked
from tests.memory.store import MemoryStore
from tests.memory.transaction import MemoryTransaction
from tests.waiting import PATIENCE_S


class GatedStore(MemoryStore):
    """Locked transactions wait at a gate while it is shut, and say that they have come to it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.reached = threading.Event(), threading.Semaphore(0)
        self.gate.set()

    def wait_until_reached(self) -> None:
        """Return when one more transaction stands at the gate."""
        if not self.reached.acquire(timeout=PATIENCE_S):
            raise TimeoutError("nobody came to the gate")

    @contextmanager
    def transaction(self, dataset_id: int, *, lock: bool, asked: Sequence[Asked] = ()) -> Iterator[MemoryTransaction]:
        if lock and not self.gate.is_set():
            self.reached.release()
            if not self.gate.wait(PATIENCE_S):
                raise TimeoutError("the gate stayed shut")
        with super().transaction(dataset_id, lock=lock, asked=asked) as transaction:
            yield transaction
