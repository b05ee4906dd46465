"""The datasets of a replica: a registration, a guard and a writer for each, looked up or opened when first needed."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from service.incidents import report_incident
from service.ledger.model.errors import Unavailable, UnknownDataset, WorkflowError
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import Store, StoreUnavailable
from service.ledger.ports.witness import Witness
from service.writer.rollback.guard import RollbackGuard
from service.writer.threads import WriterThread

CLOSING_S: Final = 5.0
"""How long closing waits for the writers, in s. Answers that are not committed by then were promised to no client."""

REMEMBERED_S: Final = 5.0
"""How long a process may still know a dataset that another process has deleted, in s."""

Opening = Callable[[DatasetRecord, RollbackGuard], WriterThread]


class BackgroundService(Protocol):
    """Background work for every dataset on which this process works."""

    def open(self) -> None:
        """Begin to work."""

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:
        """Take up a dataset that was opened for writing.

        This is called under the registry's lock and must not block.
        """

    def close(self) -> None:
        """Finish or give up the work, and stop."""


class DatasetRegistry:
    """The writers and guards of datasets: at most one writer and one guard for each. Thread-safe."""

    def __init__(
        self,
        *,
        store: Store,
        witness: Witness,
        opening: Opening,
        admits: Callable[[int], bool],
        shards_for: Callable[[DatasetRecord], int],
        background: Sequence[BackgroundService],
    ) -> None:
        """Keep the parts; `opening` makes a writer, and is called by one thread at a time.

        `admits` tells whether this process may work on a dataset, and `shards_for` over how many shards the dataset
        will be divided. The services in `background` are opened here, and each is called with every writer that is
        opened.
        """
        self.witness = witness
        self._store, self._opening, self._admits, self.shards_for = store, opening, admits, shards_for
        self._records: dict[str, tuple[DatasetRecord, float]] = {}
        self._guards: dict[int, RollbackGuard] = {}
        self._writers: dict[int, WriterThread] = {}
        self._let_go: list[WriterThread] = []
        self._background = background
        self._lock = threading.Lock()
        self.are_open = True
        for service in background:
            service.open()

    def record(self, name: str) -> DatasetRecord:
        """The registration as it stands, from the dataset's writer or from the store. Raises UnknownDataset."""
        known = self._records.get(name)
        writer = None if known is None else self._writers.get(known[0].id)
        if writer is not None:
            return writer.committer.state.record
        record = self._store.dataset(name)
        if record is None:
            self._records.pop(name, None)
            raise UnknownDataset(name)
        self.displace(record)
        self._records[name] = record, time.monotonic()
        return record

    def shards(self, record: DatasetRecord) -> int:
        """The number of shards that a dataset's writer has, or would have when opened."""
        opened = self._writers.get(record.id)
        return self.shards_for(record) if opened is None else opened.shards.count

    def names(self) -> list[str]:
        """The names of all datasets."""
        return [record.name for record in self._store.datasets()]

    def remembered(self, name: str) -> DatasetRecord | None:
        """A registration that was looked up a moment ago, or whose writer is open; else None. Touches no database."""
        record, at = self._records.get(name, (None, 0.0))
        if record is None or (record.id not in self._writers and time.monotonic() - at > REMEMBERED_S):
            return None
        return record

    def forget(self, record: DatasetRecord) -> None:
        """Close the writer of a dataset that was deleted, and forget the dataset."""
        self.let_go([record.id])
        with self._lock:
            self._records.pop(record.name, None)
            self._guards.pop(record.id, None)

    def displace(self, record: DatasetRecord) -> None:
        """Forget another dataset of the same name or number, which the database had before it was put back."""
        with self._lock:
            numbers = {record.id} | ({self._records[record.name][0].id} if record.name in self._records else set())
            old = [each for each in numbers if each in self._guards and not self._guards[each].is_of(record)]
        for number in old:
            self.let_go([number])
            with self._lock:
                self._guards.pop(number, None)
                self._records = {name: each for name, each in self._records.items() if each[0].id != number}

    def guard(self, record: DatasetRecord) -> RollbackGuard:
        """The guard of a dataset."""
        with self._lock:
            if record.id not in self._guards:
                self._guards[record.id] = RollbackGuard(record=record, store=self._store, witness=self.witness)
            return self._guards[record.id]

    def writer(self, record: DatasetRecord) -> WriterThread:
        """The writer of a dataset. Raises Unavailable when all are closed, or another process works on the dataset."""
        if not self._admits(record.id):
            raise Unavailable
        opened = self._writers.get(record.id)
        if opened is not None and self.are_open:
            return opened
        guard = self.guard(record)
        with self._lock:
            if not self.are_open:
                raise Unavailable
            if record.id not in self._writers:
                opened = self._writers[record.id] = self._opening(record, guard)
                for service in self._background:
                    service.writer_opened(record, guard, opened)
            return self._writers[record.id]

    def is_open_for(self, name: str) -> bool:
        """Tell whether a dataset's writer is open, so that the dataset can be found without the store."""
        known = self._records.get(name)
        return known is not None and known[0].id in self._writers

    def opened(self) -> list[WriterThread]:
        """The open writers."""
        with self._lock:
            return list(self._writers.values())

    def let_go(self, dataset_ids: Collection[int]) -> list[WriterThread]:
        """Close the writers of datasets on which another process works, and return them.

        Each first finishes what waits.
        """
        with self._lock:
            closed = [self._writers.pop(each) for each in dataset_ids if each in self._writers]
            if closed:
                self._let_go = [writer for writer in self._let_go if not writer.ended(within_s=0)] + closed
        for writer in closed:
            writer.end()
        return closed

    def closed(self) -> list[RollbackGuard]:
        """The guards of datasets that this process knows to be closed. Nothing is read to find out."""
        with self._lock:
            return [guard for guard in self._guards.values() if guard.code is not None]

    def preload(self, claims: Callable[[int], bool]) -> None:
        """Load every dataset that this process `claims`. The first caller loads a dataset that cannot be loaded now.

        Each dataset is loaded before the next one is claimed, so that processes that start together share the datasets.
        """
        try:
            records = self._store.datasets()
        except StoreUnavailable:
            return
        for record in records:
            try:
                if not claims(record.id):
                    continue
                self.writer(record).catch_up()
                self.guard(record).confirm_head_recorded()
            except (WorkflowError, StoreUnavailable):
                continue  # a caller that asks is told
            except Exception as error:  # noqa: BLE001 - and the others are loaded
                report_incident(error, f"loading of dataset {record.id}", dataset=record.name)

    def close(self) -> None:
        """Take nothing new, let all writers finish at the same time, and stop.

        A writer that does not end in time is left behind. Its thread ends with the process, and the database undoes its
        open transaction.
        """
        for service in self._background:
            service.close()
        with self._lock:
            self.are_open = False
            writers = [*self._writers.values(), *self._let_go]
        for writer in writers:
            writer.end()
        until = time.monotonic() + CLOSING_S
        for writer in writers:
            writer.ended(within_s=max(until - time.monotonic(), 0))
