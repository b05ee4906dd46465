"""`/metrics` for the operator: the replica's telemetry as Prometheus reads it, on a port of its own.

More people may read metrics than may read data. So no number comes from a record, except the count of alarms, which
curators set. Labels hold only a route's template, a status or a kind of commit. PUBLIC metrics are functions of public
events. OPERATOR metrics are not: they follow real durations or the acts of people, and belong to the operator alone.
The collectors that Prometheus' library offers for the process are left out, since its processor time is the length of
its evaluations.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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

from service.ledger.ports.telemetry import Commit, Telemetry
from service.workflows.readiness import ShardHealth

LABELS: Final = frozenset({"route", "status", "kind", "le"})
"""Every label that any metric may have."""

PUBLIC: Final[Mapping[str, str]] = {
    "sparing_requests": "requests on routes of analysts alone, by route and status",
    "sparing_fenced_datasets": "datasets closed, by their witness or for damage, as every request to them is told",
}
"""The metrics that are functions of public events: arrivals, disconnects, public costs and released answers."""

OPERATOR: Final[Mapping[str, str]] = {
    "sparing_ready": "1 while /readyz would answer 200, 0 while it names what keeps this process from serving",
    "sparing_other_requests": "requests on other routes, by route and status; individuals join and pause by them",
    "sparing_requests_in_flight": "requests in flight, of individuals and curators too, for as long as they take",
    "sparing_closed_connections": "connections of clients that the server has ended, by the bound that they passed",
    "sparing_dropped_headers": "headers of forwarded requests that the service does not read and does not pass on",
    "sparing_queue_length": "items that wait in all writer queues together",
    "sparing_opened_datasets": "datasets in the memory of this process, which faults may move to another one",
    "sparing_lost_shards": "shards of divided datasets that do not work, which faults of processes make",
    "sparing_shard_restarts": "how often shards were started again since their datasets were opened",
    "sparing_slot_overruns": "responses that were not ready at their instant, because work took too long",
    "sparing_batch_questions": "queries that shared a transaction; by real durations without slots or after a fault",
    "sparing_commits": "durable transactions by kind; individuals act too, and charges make checkpoints due",
    "sparing_unclear_commits": "commits without a clear reply, which are faults of the database or the way to it",
    "sparing_budget_alarms": "budget alarms that have rung, which curators set on what individuals have left",
    "sparing_checkpoint_seconds": "how long the writing of checkpoints takes, which are due by entries and charges",
}
"""The other metrics, each with the reason why it is for the operator alone."""

TIMED: Final = frozenset({"sparing_checkpoint_seconds"})
"""The only metrics that hold a duration: of checkpoints, which follow the answers. Coarse, and not for analysts."""

_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CHECKPOINTS_S: Final = (0.01, 0.1, 1, 10)


class PrometheusTelemetry(Telemetry):
    """The port's Telemetry, kept in a registry of its own."""

    def __init__(self) -> None:
        # The instants at which counters were made would differ between equal replicas.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        by = ["route", "status"]
        self._requests = Counter(*_described("sparing_requests"), by, registry=registry)
        self._other_requests = Counter(*_described("sparing_other_requests"), by, registry=registry)
        self._in_flight = Gauge(*_described("sparing_requests_in_flight"), registry=registry)
        self._closed = Counter(*_described("sparing_closed_connections"), ["kind"], registry=registry)
        self._dropped = Counter(*_described("sparing_dropped_headers"), registry=registry)
        self._overruns = Counter(*_described("sparing_slot_overruns"), registry=registry)
        self._batches = Histogram(*_described("sparing_batch_questions"), buckets=_BATCHES, registry=registry)
        self._commits = Counter(*_described("sparing_commits"), ["kind"], registry=registry)
        self._unclear = Counter(*_described("sparing_unclear_commits"), registry=registry)
        self._alarms = Counter(*_described("sparing_budget_alarms"), registry=registry)
        self._checkpoints = Histogram(
            *_described("sparing_checkpoint_seconds"), buckets=_CHECKPOINTS_S, registry=registry
        )
        self._waiting = Gauge(*_described("sparing_queue_length"), registry=registry)
        self._fenced = Gauge(*_described("sparing_fenced_datasets"), registry=registry)
        self._opened = Gauge(*_described("sparing_opened_datasets"), registry=registry)
        self._lost_shards = Gauge(*_described("sparing_lost_shards"), registry=registry)
        self._restarts = Gauge(*_described("sparing_shard_restarts"), registry=registry)
        self._ready = Gauge(*_described("sparing_ready"), registry=registry)

    def watch(
        self,
        *,
        waiting: Callable[[], int],
        fenced: Callable[[], int],
        opened: Callable[[], int],
        ready: Callable[[], bool],
        shards: Callable[[], Mapping[str, ShardHealth]],
    ) -> None:
        """Have each reading call these functions for the queue, the datasets, the readiness and the shards."""
        self._ready.set_function(ready)
        self._waiting.set_function(waiting)
        self._fenced.set_function(fenced)
        self._opened.set_function(opened)
        self._lost_shards.set_function(lambda: sum(each.shards - each.ready for each in shards().values()))
        self._restarts.set_function(lambda: sum(each.restarts for each in shards().values()))

    def request_began(self) -> None:
        """Count a request in."""
        self._in_flight.inc()

    def request_ended(self, route: str, status: int) -> None:
        """Count a request out."""
        self._in_flight.dec()
        requests = self._requests if of_analysts(route) else self._other_requests
        requests.labels(route, str(status)).inc()

    def connection_closed(self, kind: str) -> None:
        """Count a closed connection by kind."""
        self._closed.labels(kind).inc()

    def headers_dropped(self, headers: int) -> None:
        """Count dropped headers."""
        self._dropped.inc(headers)

    def slot_overrun(self) -> None:
        """Count a response that was not ready at its instant."""
        self._overruns.inc()

    def batched(self, requests: int) -> None:
        """Count a batch by its size."""
        self._batches.observe(requests)

    def committed(self, kind: Commit) -> None:
        """Count a commit by kind."""
        self._commits.labels(kind).inc()

    def commit_unclear(self) -> None:
        """Count a commit without a clear reply."""
        self._unclear.inc()

    def alarm_rang(self) -> None:
        """Count an alarm."""
        self._alarms.inc()

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        """Time a checkpoint."""
        with self._checkpoints.time():
            yield

    def text(self) -> str:
        """All metrics as text, as they are served."""
        return generate_latest(self.registry).decode()


def of_analysts(route: str) -> bool:
    """Tell whether a route, as `METHOD /template`, is about queries or allowances, and so never an individual's act."""
    return "/queries" in route or route.endswith("/allowances")


def _described(name: str) -> tuple[str, str]:
    """A metric's name and its HELP text, which begins with the readers it is for."""
    return name, f"Public: {PUBLIC[name]}." if name in PUBLIC else f"Operator only: {OPERATOR[name]}."


@contextmanager
def metrics_served(telemetry: PrometheusTelemetry, *, host: str, port: int) -> Iterator[str]:
    """Serve the metrics for the length of the block, and yield their URL. Raises OSError when the address is taken."""
    server, thread = start_http_server(port, host, telemetry.registry)
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
