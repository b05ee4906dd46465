"""The threads of one dataset: its writer, and its checkpoints at low priority."""

import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

from service.background import lower_priority
from service.core.noise import Entropy
from service.ledger.model.errors import WorkflowError
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.telemetry import Telemetry
from service.writer.committer import Operation, Result
from service.writer.queue import Look, WriterQueue
from service.writer.replication.exchange import ReplicaExchange
from service.writer.shards.divided import DividedShards, Shards

PEEKS: Final = 3
PEEK_EVERY_S: Final = 0.002
RECOVERY_S: Final = 0.5
LOOK_SOON_S: Final = 0.02
"""How long a look waits for queries in a row, in s.

They take milliseconds; if they take longer, the database is read.
"""


class WriterThread(WriterQueue):
    """A writer queue with two threads, for its steps and for its checkpoints. Callers wait for results."""

    def __post_init__(
        self,
        record: DatasetRecord,
        entropy: Entropy,
        telemetry: Telemetry,
        exchange: ReplicaExchange,
        shards_opened: Shards | None,
    ) -> None:
        super().__post_init__(record, entropy, telemetry, exchange, shards_opened)
        self.name = record.name
        self._recovery: threading.Thread | None = None
        if isinstance(self.shards, DividedShards):
            self.shards.on_lost = self._recover_soon
        steps, pages = partial(_exhaust, self.step), partial(_exhaust_slowly, self.checkpoints.step)
        self._threads = [
            threading.Thread(target=steps, name=f"writer-{record.name}", daemon=True),
            threading.Thread(target=pages, name=f"pages-{record.name}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _recover_soon(self) -> None:
        """Load a lost shard again without waiting for the next query."""
        if self._recovery is None or not self._recovery.is_alive():
            self._recovery = threading.Thread(target=self._recover, name=f"recovery-{self.name}", daemon=True)
            self._recovery.start()

    def _recover(self) -> None:
        time.sleep(RECOVERY_S)
        self.wake()

    def act(self, act: Operation[Result], *, principal: Hashable = None) -> Result:
        """Run an act in the writer, in the turn of `principal`, and wait until it is committed. Raises Busy."""
        return self.submit_act(act, principal=principal).result()

    def catch_up(self) -> None:
        """Wait until memory has caught up with the database. Raises Busy, Unavailable, Fenced."""
        self.submit_catch_up().result()

    def checkpoint(self) -> None:
        """Copy a checkpoint, if there are entries after the last one. Raises Busy."""
        self._job(self._copy_checkpoint_if_any, self._own).result()

    def peek(self, look: Look[Result]) -> Result | None:
        """The result of a glimpse, tried several times; None while step follows step without a pause.

        Nothing is queued.
        """
        for attempt in range(PEEKS):
            if attempt > 0:
                time.sleep(PEEK_EVERY_S)
            seen = self.glimpse(look)
            if seen is not None or self.position is None:
                return seen
        return None

    def look_soon(self, look: Look[Result]) -> Result | None:
        """The result of a look between two steps; None if there is no pause within LOOK_SOON_S, or memory is empty."""
        if self.position is None:
            return None
        try:
            return self.submit_look(look).result(timeout=LOOK_SOON_S)
        except (TimeoutError, WorkflowError):
            return None

    def look(self, look: Look[Result]) -> Result:
        """The result of a look at the state: at once if no step works on the state, and otherwise after that step."""
        seen = self.glimpse(look)
        return self.submit_look(look).result() if seen is None else seen

    def ended(self, *, within_s: float) -> bool:
        """Wait for the threads of a closed writer, with its last checkpoint. Returns False when they still run."""
        until = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)


def _exhaust(step: Callable[[], bool]) -> None:
    while step():
        pass


def _exhaust_slowly(step: Callable[[], bool]) -> None:
    lower_priority()
    _exhaust(step)
