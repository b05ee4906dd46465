"""A dataset's line on a thread of its own."""

import threading

from service.core.noise import Entropy
from service.workflows.ports import DatasetRecord
from service.workflows.sharing import UNSHARED, Exchange
from service.workflows.telemetry import SILENT, Telemetry
from service.workflows.witnessing import Guard
from service.workflows.writer import Act, Line, Result


class DatasetWriter(Line):
    """A line with a thread of its own that steps it; whoever brings an act or a reading waits for it."""

    def __init__(
        self,
        *,
        record: DatasetRecord,
        guard: Guard,
        entropy: Entropy,
        telemetry: Telemetry = SILENT,
        exchange: Exchange = UNSHARED,
    ) -> None:
        """Start the thread."""
        super().__init__(record=record, guard=guard, entropy=entropy, telemetry=telemetry, exchange=exchange)
        self._thread = threading.Thread(target=self._run, name=f"writer-{record.name}", daemon=True)
        self._thread.start()

    def act(self, act: Act[Result]) -> Result:
        """Run a change in the line and wait until it is committed."""
        return self.submit_act(act).result()

    def read(self, reading: Act[Result]) -> Result:
        """Run a reading in the line and wait for it."""
        return self.submit_reading(reading).result()

    def ended(self, *, within_s: float) -> bool:
        """Wait for a line that was told to end; False when it has not by then."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self.step():
            pass
