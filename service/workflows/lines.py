"""The lines of a house: a registration, a guard and a line for each dataset, looked up or opened when first needed."""

import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from service.workflows.amender import Amender
from service.workflows.errors import NotFound, Unavailable
from service.workflows.ports import Store, Witness
from service.workflows.records import DatasetRecord
from service.workflows.start_checks import StartChecks
from service.workflows.threads import DatasetWriter
from service.workflows.witnessing import Guard

CLOSING_S: Final = 5.0
"""How long closing waits for the lines. Whatever has not committed by then was promised to nobody."""

Opening = Callable[[DatasetRecord, Guard], DatasetWriter]


class Lines:
    """At most one line and one guard of each dataset. Thread-safe."""

    def __init__(
        self, *, store: Store, witness: Witness, opening: Opening, admits: Callable[[int], bool] = lambda _: True
    ) -> None:
        """Nothing is looked up; `opening` makes a line, and is called by one thread at a time.

        `admits` says whether this process may work on a dataset.
        """
        self.witness = witness
        self._store, self._opening, self._admits = store, opening, admits
        self._records: dict[str, DatasetRecord] = {}
        self._guards: dict[int, Guard] = {}
        self._lines: dict[int, DatasetWriter] = {}
        self._let_go: list[DatasetWriter] = []
        self._checks: StartChecks | None = None
        self._amender: Amender | None = None
        self._door = threading.Lock()
        self.are_open = True

    def check_ledgers(self) -> None:
        """From now on have the end of a dataset's ledger checked, beside its line, each time that a line is opened."""
        self._checks = StartChecks(self._store)
        self._checks.open()

    def amend_ledgers(self) -> None:
        """From now on bring erasures to their end in the ledger, when they happen and when a line is opened."""
        self._amender = Amender()
        self._amender.open()

    def erased(self, record: DatasetRecord) -> None:
        """An individual was erased: have its places in the ledger amended."""
        if self._amender is not None:
            self._amender.ask(record, self.line(record))

    def record(self, name: str) -> DatasetRecord:
        """A registration, which never changes and so is looked up once. Raises NotFound."""
        record = self._records.get(name) or self._store.dataset(name)
        if record is None:
            raise NotFound
        self._records[name] = record
        return record

    def remembered(self, name: str) -> DatasetRecord | None:
        """A registration that was looked up before. Touches no database."""
        return self._records.get(name)

    def guard(self, record: DatasetRecord) -> Guard:
        """The guard of a dataset."""
        with self._door:
            if record.id not in self._guards:
                self._guards[record.id] = Guard(record=record, store=self._store, witness=self.witness)
            return self._guards[record.id]

    def line(self, record: DatasetRecord) -> DatasetWriter:
        """The line of a dataset. Raises Unavailable when all are closed, or another process works on the dataset."""
        if not self._admits(record.id):
            raise Unavailable
        guard = self.guard(record)
        with self._door:
            if not self.are_open:
                raise Unavailable
            if record.id not in self._lines:
                opened = self._lines[record.id] = self._opening(record, guard)
                if self._checks is not None:
                    self._checks.ask(record, guard, is_loaded=lambda: opened.position is not None)
                if self._amender is not None:
                    self._amender.ask(record, opened)
            return self._lines[record.id]

    def is_at_hand(self, name: str) -> bool:
        """Whether a dataset's line is open, so that nothing is asked of the store to find it."""
        record = self._records.get(name)
        return record is not None and record.id in self._lines

    def opened(self) -> list[DatasetWriter]:
        """The lines that are open."""
        with self._door:
            return list(self._lines.values())

    def let_go(self, dataset_ids: Collection[int]) -> list[DatasetWriter]:
        """Close the lines of datasets on which another process works; each finishes what waits. Returns them."""
        with self._door:
            closed = [self._lines.pop(each) for each in dataset_ids if each in self._lines]
            if closed:
                self._let_go = [line for line in self._let_go if not line.ended(within_s=0)] + closed
        for line in closed:
            line.end()
        return closed

    def closed(self) -> list[Guard]:
        """The guards of datasets that are known to be closed; looks nowhere."""
        with self._door:
            return [guard for guard in self._guards.values() if guard.code is not None]

    def close(self) -> None:
        """Take nothing new, let all lines finish what waits at the same time, and stop.

        A line that does not end in time is left behind: its thread ends with the process, and what it had not committed
        the database undoes.
        """
        if self._checks is not None:
            self._checks.close()
        if self._amender is not None:
            self._amender.close()
        with self._door:
            self.are_open = False
            lines = [*self._lines.values(), *self._let_go]
        for line in lines:
            line.end()
        until = time.monotonic() + CLOSING_S
        for line in lines:
            line.ended(within_s=max(until - time.monotonic(), 0))
