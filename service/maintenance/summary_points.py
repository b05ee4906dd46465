"""Points in time of each dataset's budget summary, kept beside its ledger; and the alarm that a curator has set.

One thread of low priority looks each second for datasets whose sequence has changed. It copies accounts page by page,
as every summary does, so that no query waits for more than a page.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from service.background import Background, handing_over_soon, lower_priority
from service.incidents import report_incident
from service.ledger.model.errors import ClockImplausible, WorkflowError
from service.ledger.model.rows import DatasetRecord
from service.ledger.ports.store import BudgetAlarm, Store, SummaryPoint
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.reads.budget_summary import all_accounts, quantiles_of, recent_queries
from service.reads.ledger import snapshot
from service.writer.rollback.guard import RollbackGuard
from service.writer.threads import WriterThread

log = logging.getLogger("sparing.alarm")

LOOK_EVERY_S: Final = 1.0
POINT_EVERY_S: Final = 10.0
WATCHED_EVERY_S: Final = 2.0
"""The least time between points of a dataset that a curator watches; POINT_EVERY_S is that of any other."""
POINTS_MAX: Final = 1000
POINTS_KEPT_WHOLE: Final = 200
"""How many of the newest points are always kept. Of the others every second one is dropped beyond POINTS_MAX."""


class SummaryPoints(Background):
    """The background service that makes points.

    `step` makes those that are due; `open` starts a thread that calls it.
    """

    def __init__(self, store: Store, *, clock: Callable[[], datetime], telemetry: Telemetry = NULL_TELEMETRY) -> None:
        """`clock` tells the wall clock's time; `telemetry` counts the alarms that ring."""
        super().__init__()
        self._store, self._clock, self._telemetry = store, clock, telemetry
        self._writers: dict[int, tuple[DatasetRecord, WriterThread]] = {}
        self._made: dict[int, tuple[int, datetime]] = {}
        self._watched: dict[int, int] = {}

    def open(self) -> None:
        """Start the thread."""
        self._begin_thread(self._run, "summaries")

    def writer_opened(self, record: DatasetRecord, guard: RollbackGuard, writer: WriterThread) -> None:  # noqa: ARG002
        """Make points of this dataset from now on."""
        self._writers[record.id] = record, writer

    @contextmanager
    def watching(self, dataset_id: int) -> Iterator[None]:
        """Make points of a dataset more often while this block lasts."""
        self._watched[dataset_id] = self._watched.get(dataset_id, 0) + 1
        try:
            yield
        finally:
            self._watched[dataset_id] -= 1

    def step(self) -> None:
        """Make a point of each dataset that is due and whose sequence has changed; none while the clock is wrong."""
        try:
            now = self._clock()
        except ClockImplausible:
            return
        for record, writer in list(self._writers.values()):
            if not writer.is_open:
                self._writers.pop(record.id, None)  # let go, or of a dataset that was deleted
                continue
            position = writer.position
            if self._closed.is_set() or position is None or not self._is_due(record.id, position[1], now):
                continue
            try:
                self._store_point(record, writer, now)
            except WorkflowError:
                self._made[record.id] = -1, now  # closed, busy or let go: later
            except Exception as error:  # noqa: BLE001 - the other datasets must go on
                self._made[record.id] = -1, now
                report_incident(error, f"summary of {record.name}", dataset=record.name)

    def _is_due(self, dataset_id: int, seq: int, now: datetime) -> bool:
        if dataset_id not in self._made:
            return True
        made_seq, made_at = self._made[dataset_id]
        every_s = WATCHED_EVERY_S if self._watched.get(dataset_id) else POINT_EVERY_S
        passed_s = (now - made_at).total_seconds()
        return seq != made_seq and not 0 <= passed_s < every_s  # a clock that was put back makes no point wait

    def _store_point(self, record: DatasetRecord, writer: WriterThread, now: datetime) -> None:
        taken = all_accounts(writer)
        with snapshot(writer.guard) as transaction:
            typical = taken.typical(recent_queries(transaction, seq=taken.seq))
        point = SummaryPoint(
            seq=taken.seq,
            at=now,
            individuals=taken.individuals,
            exhausted=taken.exhausted,
            paused=taken.pauses,
            cannot_afford=None if typical is None else typical.cannot_afford,
            quantiles=tuple(quantiles_of(taken.shares())),
        )
        self._store.summaries.add_point(record.id, point)
        self._made[record.id] = point.seq, point.at
        self._thin(record)
        self._ring(record, point)

    def _thin(self, record: DatasetRecord) -> None:
        points = self._store.summaries.points(record.id)
        if len(points) > POINTS_MAX:
            self._store.summaries.drop_points(record.id, [each.seq for each in points[1:-POINTS_KEPT_WHOLE:2]])

    def _ring(self, record: DatasetRecord, point: SummaryPoint) -> None:
        alarm = self._store.summaries.alarm(record.id)
        if alarm is None or alarm.rang_seq is not None or not point.individuals or point.cannot_afford is None:
            return
        if point.cannot_afford >= alarm.share * point.individuals:
            self._store.summaries.set_alarm(record.id, BudgetAlarm(share=alarm.share, rang_seq=point.seq))
            log.warning("the budget alarm of dataset %s has rung at sequence %d", record.name, point.seq)
            self._telemetry.alarm_rang()

    def _run(self) -> None:
        lower_priority()
        while not self._closed.wait(LOOK_EVERY_S):
            with handing_over_soon():
                self.step()
