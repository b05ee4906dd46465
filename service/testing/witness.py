"""The witness's twin in one process's memory: the same contract, nothing durable."""

import threading
from collections.abc import Callable
from functools import partial

from service.workflows.model.rows import WitnessRecord


class MemoryWitness:
    """The port's Witness."""

    def __init__(self) -> None:
        self.kept: dict[str, list[WitnessRecord]] = {}
        self._lock = threading.Lock()

    def history(self, dataset: str) -> list[WitnessRecord]:
        with self._lock:
            return list(self.kept.get(dataset, ()))

    def write(self, dataset: str, record: WitnessRecord) -> WitnessRecord | None:
        with self._lock:
            records = self.kept.setdefault(dataset, [])
            before = records[-1] if records else None
            if before is None or before.position < record.position:
                records.append(record)
            return before

    def begin(self, dataset: str, record: WitnessRecord) -> Callable[[], WitnessRecord | None]:
        return partial(self.write, dataset, record)
