"""Start checks, one dataset after the other on a thread of low priority, beside every line.

A dataset is answered from before its check has ended, so that nobody waits for it. When damage is found the guard is
told, and from then on the dataset is closed.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.workflows.background import handing_over_soon, lower_priority
from service.workflows.errors import LedgerDamaged
from service.workflows.incidents import report_incident
from service.workflows.ports import Store, StoreUnavailable
from service.workflows.records import DatasetRecord
from service.workflows.start_check import StartCheck
from service.workflows.witnessing import Guard

RETRY_S: Final = 1.0
SILENT_RETRIES: Final = 30
"""A database that is away this often is an incident; every retry is a second, and other datasets have their turn."""
LOOKS: Final = 100
LOOK_EVERY_S: Final = 0.1
"""A check waits so often and so long for its dataset to be loaded, which somebody may be waiting for."""
_ENDING_S: Final = 2.0


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A dataset whose ledger is to be checked, and how often the store was away when it was its turn."""

    record: DatasetRecord
    guard: Guard
    is_loaded: Callable[[], bool]
    failures: int = 0


class StartChecks:
    """What is to be checked. Passive; one caller of `step` at a time, and `open` gives it a thread."""

    def __init__(self, store: Store) -> None:
        """Nothing waits."""
        self._store = store
        self._queue: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="start-checks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the piece that is looked at; what was not checked is not. The store must outlive this call."""
        self._closed.set()
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(_ENDING_S)

    def ask(self, record: DatasetRecord, guard: Guard, *, is_loaded: Callable[[], bool]) -> None:
        """Have a dataset's ledger checked, once `is_loaded` or after a while; `guard` is told of damage."""
        self._queue.put(_Asked(record=record, guard=guard, is_loaded=is_loaded))

    def step(self) -> bool:
        """Wait for a dataset and check it. False at the end."""
        asked = self._queue.get()
        if asked is None or self._closed.is_set():
            return False
        try:
            self._check(asked)
        except StoreUnavailable as fault:
            self._ask_again(asked, fault)
        except Exception as error:  # noqa: BLE001 - and the others are checked
            report_incident(error, f"start check of dataset {asked.record.id}")
        return True

    def _check(self, asked: _Asked) -> None:
        """To the end, or to the first damage. Raises StoreUnavailable."""
        self._await_load(asked)
        check, is_more = StartCheck(asked.record), True
        with handing_over_soon():
            while is_more and not self._closed.is_set():
                with self._store.transaction(asked.record.id, lock=False) as transaction:
                    is_more = check.step(transaction)
        if check.finding is not None:
            asked.guard.close_for_damage()
            report_incident(LedgerDamaged(), f"start check of dataset {asked.record.id}: {check.finding}")

    def _await_load(self, asked: _Asked) -> None:
        for _ in range(LOOKS):
            if asked.is_loaded() or self._closed.wait(LOOK_EVERY_S):
                return

    def _ask_again(self, asked: _Asked, fault: StoreUnavailable) -> None:
        """At the end of the queue, after a while."""
        asked.failures += 1
        if asked.failures == SILENT_RETRIES:
            report_incident(fault, f"start check of dataset {asked.record.id}: its rows cannot be read; tried on")
        self._closed.wait(RETRY_S)
        self._queue.put(asked)

    def _run(self) -> None:
        lower_priority()
        while self.step():
            pass
