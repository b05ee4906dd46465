"""Readiness: whether a process can answer queries, and the public codes of what prevents it or closes a dataset.

A closed dataset makes a process not ready only where no other dataset is open.
"""

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from service.background import on_own_thread
from service.ledger.model.errors import ClockImplausible
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import Principal
from service.ledger.ports.shards import ShardBackend
from service.ledger.ports.store import Store, StoreUnavailable
from service.ledger.ports.witness import WitnessUnavailable
from service.query.schema import doc
from service.workflows.clock import PlausibleClock
from service.writer.registry import DatasetRegistry
from service.writer.rollback.guard import WITNESS_UNAVAILABLE, RollbackGuard

log = logging.getLogger("sparing.witness")

READY_FOR: Final = timedelta(seconds=1)
LOOK_S: Final = 2.0
"""How long `is_ready` waits for the database, which then counts as not ready: a scrape of metrics waits no longer."""
OPEN: Final = "open"
"""The code of a dataset that is not closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessReport:
    """Codes of what keeps the whole process from serving, none when ready, and the code of each closed dataset."""

    codes: list[str] = field(default_factory=list)
    closed: Mapping[str, str] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """The number of closed datasets by code. It names no dataset, so that it may be read without a key."""
        codes = list(self.closed.values())
        return {code: codes.count(code) for code in sorted(set(codes))}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardHealth:
    """The shards of an open dataset that is divided."""

    backend: Annotated[str, doc("Where they are: `processes` beside the service.")]
    shards: Annotated[int, doc("How many there are.")]
    ready: Annotated[int, doc("How many of them work; the others are being started again.")]
    restarts: Annotated[int, doc("How often any was started again since the dataset was opened.")]


class Readiness:
    """The problems that keep this process from serving, checked again at most once a second."""

    def __init__(
        self, *, store: Store, registry: DatasetRegistry, clock: PlausibleClock, backend: ShardBackend
    ) -> None:
        self._store, self._registry, self.clock = store, registry, clock
        self._found = datetime.min.replace(tzinfo=UTC), ReadinessReport()
        self._backend = backend.backend
        self._look_under_way: Future[ReadinessReport] | None = None
        self._lock = threading.Lock()
        self._is_witness_gone = False

    def report(self) -> ReadinessReport:
        """The report, at most a second old."""
        found = self.remembered()
        if found is None:
            now = self.clock()
            found = self._look()
            self._found = now, found
        return found

    def remembered(self) -> ReadinessReport | None:
        """The last report if it is less than a second old, else None. Reads only the clock."""
        asked_at, found = self._found
        try:
            return found if asked_at <= self.clock() < asked_at + READY_FOR else None
        except ClockImplausible as fault:
            return ReadinessReport(codes=[fault.slug])

    def is_ready(self) -> bool:
        """Tell whether no problem keeps this process from serving, for a gauge.

        False if the check takes over LOOK_S.
        """
        with self._lock:
            look = self._look_under_way
            if look is None or look.done():
                look = self._look_under_way = on_own_thread(self.report, name="readiness")
        wait([look], LOOK_S)
        return look.done() and not look.result().codes

    def datasets_for(self, principal: Principal) -> dict[str, str]:
        """The code of each dataset that a principal may use, `open` or why it is closed. Raises StoreUnavailable."""
        closed = self.report().closed
        names = self._registry.names() if principal.dataset is None else [principal.dataset]
        return {name: closed.get(name, OPEN) for name in names}

    def shards_for(self, principal: Principal) -> dict[str, ShardHealth]:
        """The shards of each divided dataset that a curator may use and that is open in this process."""
        if principal.role != "curator":
            return {}
        return {name: each for name, each in self.shards().items() if principal.dataset in {None, name}}

    def shards(self) -> dict[str, ShardHealth]:
        """The shards of each divided dataset that is open in this process."""
        divided = [writer for writer in self._registry.opened() if writer.shards.count > 1]
        return {
            writer.committer.state.record.name: ShardHealth(
                backend=self._backend,
                shards=writer.shards.count,
                ready=writer.shards.count - len(writer.shards.lost),
                restarts=writer.shards.restarts,
            )
            for writer in divided
        }

    def check_witnesses(self) -> list[str]:
        """Compare every dataset with its witness; the public codes of the problems. Later reports include them."""
        guards = [self._registry.guard(record) for record in self._store.datasets()]
        return sorted({code for guard in guards if (code := guard.recheck()) is not None})

    def _guard(self, record: DatasetRecord) -> RollbackGuard:
        self._registry.displace(record)
        return self._registry.guard(record)

    def _witness_problems(self) -> list[str]:
        """The code of a witness whose records are gone or cannot be added to; a change is logged."""
        try:
            self._registry.witness.check()
        except WitnessUnavailable as fault:
            if not self._is_witness_gone:
                log.warning("the witness cannot be used, and no answer leaves: %s", fault)
            self._is_witness_gone = True
            return [WITNESS_UNAVAILABLE]
        if self._is_witness_gone:
            log.warning("the witness can be used again")
        self._is_witness_gone = False
        return []

    def _look(self) -> ReadinessReport:
        codes = self._store.problems() or self._witness_problems()
        if codes:
            return ReadinessReport(codes=codes)
        if not self._registry.closed():
            return ReadinessReport()
        try:  # other processes may have registered some that are open, or deleted some
            guards = {record.name: self._guard(record) for record in self._store.datasets()}
        except StoreUnavailable:
            return ReadinessReport(codes=self._store.problems())
        # Each that is closed is checked again: it may have been reconciled.
        suspects = {name: guard for name, guard in guards.items() if guard.code is not None}
        closed = {name: code for name, guard in suspects.items() if (code := guard.recheck()) is not None}
        is_any_open = len(closed) < len(guards)
        return ReadinessReport(codes=[] if is_any_open else sorted(set(closed.values())), closed=closed)
