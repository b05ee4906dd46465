"""`/metrics` for the operator: the house's telemetry as Prometheus reads it, on a port of its own.

Metrics are read by more people than data may be, so only public things are counted, and no label holds anything but a
route's template, a status or a kind of commit. The collectors that Prometheus' library offers for the process are left
out: the processor time of a process is the length of its evaluations.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    start_http_server,
)

from service.workflows.telemetry import Commit

LABELS: Final = frozenset({"route", "status", "kind", "le"})
"""Every label that any metric may have."""

TIMED: Final = frozenset({"sparing_checkpoint_seconds"})
"""The only metrics that hold a duration: of checkpoints, which follow the answers. Coarse, and not for analysts."""

_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CHECKPOINTS_S: Final = (0.01, 0.1, 1, 10)


class PrometheusTelemetry:
    """The port's Telemetry, kept in a registry of its own."""

    def __init__(self) -> None:
        """Begin at zero."""
        # The instants at which counters were made would differ between equal houses.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "sparing_requests", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self._in_flight = Gauge("sparing_requests_in_flight", "Requests in the house.", registry=registry)
        self._overruns = Counter(
            "sparing_slot_overruns", "Responses that were not ready at their instant.", registry=registry
        )
        self._batches = Histogram(
            "sparing_batch_questions", "Questions that shared a transaction.", buckets=_BATCHES, registry=registry
        )
        self._commits = Counter("sparing_commits", "Durable transactions by kind.", ["kind"], registry=registry)
        self._unclear = Counter("sparing_unclear_commits", "Commits without a clear reply.", registry=registry)
        self._checkpoints = Histogram(
            "sparing_checkpoint_seconds", "Writing of checkpoints.", buckets=_CHECKPOINTS_S, registry=registry
        )
        self._waiting = Gauge("sparing_queue_length", "What waits in all lines together.", registry=registry)
        self._fenced = Gauge("sparing_fenced_datasets", "Datasets closed until reconciled.", registry=registry)

    def watch(self, *, waiting: Callable[[], int], fenced: Callable[[], int]) -> None:
        """Ask for the length of the queue and the number of closed datasets whenever somebody reads."""
        self._waiting.set_function(waiting)
        self._fenced.set_function(fenced)

    def request_began(self) -> None:
        """Count it in."""
        self._in_flight.inc()

    def request_ended(self, route: str, status: int) -> None:
        """Count it out."""
        self._in_flight.dec()
        self._requests.labels(route, str(status)).inc()

    def slot_overrun(self) -> None:
        """Count it."""
        self._overruns.inc()

    def batched(self, questions: int) -> None:
        """Count it by size."""
        self._batches.observe(questions)

    def committed(self, kind: Commit) -> None:
        """Count it by kind."""
        self._commits.labels(kind).inc()

    def commit_unclear(self) -> None:
        """Count it."""
        self._unclear.inc()

    def checkpointing(self) -> AbstractContextManager[None]:
        """Time it."""
        return self._checkpointing()

    def text(self) -> str:
        """All of it, as it is served."""
        return generate_latest(self.registry).decode()

    @contextmanager
    def _checkpointing(self) -> Iterator[None]:
        with self._checkpoints.time():
            yield


@contextmanager
def metrics_served(telemetry: PrometheusTelemetry, *, host: str, port: int) -> Iterator[str]:
    """Serve them for the length of the block: the URL. Raises OSError when the address is taken."""
    server, thread = start_http_server(port, host, telemetry.registry)
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
