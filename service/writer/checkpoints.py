"""Checkpoints of one dataset, written in the background: no answer waits for a page.

The writer copies the changed pages, which takes milliseconds, and hands the copies over. The thread that steps the
`Checkpointer` writes them. `service.ledger.model.rows.Checkpoint` explains why that is correct. The same thread makes
the indexes and tallies that queries have asked for, so that no answer waits for sorting.
"""

import queue
import threading
from typing import Final

from service.incidents import report_incident
from service.ledger.model.errors import Fenced, Unavailable
from service.ledger.model.rows import Checkpoint, DatasetRecord
from service.ledger.ports.shards import ShardLost
from service.ledger.ports.telemetry import Telemetry
from service.writer.rollback.guard import RollbackGuard
from service.writer.shards.divided import DividedShards, Shards
from service.writer.shards.shard import Shard

_WAITING_MAX: Final = 2
"""The most checkpoints that wait, with the one being written; when a writer ends, a second one may wait."""


class Checkpointer:
    """A queue of checkpoints that `step` writes one after the other.

    It has no thread; one caller of `step` at a time.
    """

    def __init__(self, *, record: DatasetRecord, guard: RollbackGuard, telemetry: Telemetry) -> None:
        self._record, self._guard, self._telemetry = record, guard, telemetry
        self._queue: queue.SimpleQueue[Checkpoint | Shards | None] = queue.SimpleQueue()
        self._waiting, self._lock = 0, threading.Lock()
        self.is_preparing = False  # shards wait to be prepared, or are

    @property
    def is_idle(self) -> bool:
        """Tell whether every checkpoint that was taken is written or given up."""
        return self._waiting == 0

    def take(self, checkpoint: Checkpoint) -> None:
        """Queue a checkpoint. It is dropped when others wait already, which costs only time at the next start."""
        with self._lock:
            if self._waiting < _WAITING_MAX:
                self._waiting += 1
                self._queue.put(checkpoint)

    def prepare(self, shards: Shards) -> None:
        """Have `step` make the indexes that queries lacked.

        The shards' owner calls this while no indexes are being made.
        """
        self.is_preparing = True
        self._queue.put(shards)

    def end(self) -> None:
        """Let `step` end after the last checkpoint."""
        self._queue.put(None)

    def step(self) -> bool:
        """Wait for a checkpoint and write it, or wait for shards and prepare them. Returns False at the end."""
        work = self._queue.get()
        if work is None:
            return False
        if isinstance(work, Shard | DividedShards):
            self._prepare(work)
            return True
        try:
            self._write(work)
        finally:
            with self._lock:
                self._waiting -= 1
        return True

    def _prepare(self, shards: Shards) -> None:
        """Make the indexes. A failure is only logged: without an index, queries look at every row."""
        try:
            shards.prepare()
        except ShardLost:
            return  # it is told of where it was lost
        except Exception as error:  # noqa: BLE001 - the same as of a checkpoint
            report_incident(error, f"indexes of dataset {self._record.id}", dataset=self._record.name)
        finally:
            self.is_preparing = False

    def _write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint. A failure is at most logged: losing a checkpoint, or half of one, costs only time."""
        try:
            with self._telemetry.checkpointing():
                is_finished = self._guard.write_checkpoint(checkpoint)
        except (Fenced, Unavailable):
            return  # what was copied may be of another history
        except Exception as error:  # noqa: BLE001 - a checkpoint must not end the thread that writes them
            report_incident(error, f"checkpoint of dataset {self._record.id}", dataset=self._record.name)
            return
        if is_finished:
            self._telemetry.committed("checkpoint")
