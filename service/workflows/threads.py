"""A dataset's line and its checkpoints, on threads of their own."""

import threading
import time
from collections.abc import Callable

from service.core.noise import Entropy
from service.workflows.desk import Act, Result
from service.workflows.records import DatasetRecord
from service.workflows.sharing import UNSHARED, Exchange
from service.workflows.telemetry import SILENT, Telemetry
from service.workflows.witnessing import Guard
from service.workflows.writer import Line


class DatasetWriter(Line):
    """A line with threads of its own that step it and its checkpoints; whoever brings an act or a reading waits."""

    def __init__(
        self,
        *,
        record: DatasetRecord,
        guard: Guard,
        entropy: Entropy,
        telemetry: Telemetry = SILENT,
        exchange: Exchange = UNSHARED,
    ) -> None:
        """Start the threads."""
        super().__init__(record=record, guard=guard, entropy=entropy, telemetry=telemetry, exchange=exchange)
        steps = {"writer": self.step, "pages": self.checkpoints.step}
        self._threads = [
            threading.Thread(target=_exhaust, args=[step], name=f"{name}-{record.name}", daemon=True)
            for name, step in steps.items()
        ]
        for thread in self._threads:
            thread.start()

    def act(self, act: Act[Result]) -> Result:
        """Run a change in the line and wait until it is committed."""
        return self.submit_act(act).result()

    def read(self, reading: Act[Result]) -> Result:
        """Run a reading in the line and wait for it."""
        return self.submit_reading(reading).result()

    def ended(self, *, within_s: float) -> bool:
        """Wait for a line that was told to end, and for its last checkpoint; False when they have not by then."""
        until = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)


def _exhaust(step: Callable[[], bool]) -> None:
    while step():
        pass
